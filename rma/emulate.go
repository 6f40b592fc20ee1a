package rma

// Emulate gives a Transport the operations on Far words that it lacks, as loops of
// CompareAndSwap at their Flush: without c.NativeSwap FetchAndOp(REPLACE), and without
// c.AtomicPut Put and Accumulate(REPLACE), as on plain InfiniBand verbs (rma-rw, table 3,
// whose Fortran 2008 has no swap either). The first try takes the word for 0, so it ends at
// once if the word is 0; each other try costs a round trip and knows what the one before
// found. Other ranks may change the word before every try, so the operation no longer ends
// after one step: a queue that is entered by a swap is entered in the order in which tries
// succeed.
func Emulate(t Transport, c Caps) Transport {
	return &emulator{Transport: t, swap: !c.NativeSwap, put: !c.AtomicPut}
}

// emulator is the Transport of Emulate.
type emulator struct {
	Transport
	swap, put bool        // what is emulated
	held      []Operation // emulated operations, and those that follow one
	tried     Results
}

// Less is for Decorate.
func (x *emulator) Less(c *Caps) {
	c.NativeSwap = c.NativeSwap && !x.swap
	c.AtomicPut = c.AtomicPut && !x.put
	c.MaskedSwap = c.MaskedSwap && !x.swap
}

func (x *emulator) Issue(o Operation) {
	hold := x.emulates(&o)
	for i := range x.held {
		hold = hold || o.Follows(&x.held[i])
	}
	if hold {
		x.held = append(x.held, o)
	} else {
		x.Transport.Issue(o)
	}
}

// emulates reports whether an operation is a loop.
func (x *emulator) emulates(o *Operation) bool {
	switch {
	case o.Class != Far:
		return false
	case o.Kind == KindFetchAndOp:
		return x.swap && o.Op == Replace
	}
	return x.put && (o.Kind == KindPut || o.Kind == KindPutBulk || o.Kind == KindAccumulate && o.Op == Replace)
}

func (x *emulator) Flush(target int, r *Results) (int, error) {
	kept := x.held[:0]
	var failed error
	for _, o := range x.held {
		switch {
		case failed != nil:
		case target >= 0 && o.Target != target:
			kept = append(kept, o)
		case !x.emulates(&o):
			x.Transport.Issue(o)
		default:
			failed = x.emulate(o, r)
		}
	}
	x.held = kept
	pending, err := x.Transport.Flush(target, r)
	if failed != nil {
		err = failed
	}
	return pending + len(x.held), err
}

// emulate does an operation, after what was issued to its target before.
func (x *emulator) emulate(o Operation, r *Results) error {
	if _, err := x.Transport.Flush(o.Target, r); err != nil {
		return err
	}
	if o.Kind == KindPutBulk {
		for i, v := range o.Data {
			if _, err := x.replace(v, o.Target, o.Disp+i); err != nil {
				return err
			}
		}
		return nil
	}
	was, err := x.replace(o.Operand, o.Target, o.Disp)
	if err == nil && o.Kind == KindFetchAndOp {
		r[o.Slot] = was
	}
	return err
}

// replace puts v into a word that holds what it finds, and returns that.
func (x *emulator) replace(v int64, target, disp int) (was int64, err error) {
	try := Operation{Kind: KindCompareAndSwap, Class: Far, Target: target, Disp: disp, Operand: v}
	for {
		x.Transport.Issue(try)
		if _, err := x.Transport.Flush(target, &x.tried); err != nil {
			return 0, err
		}
		if x.tried[0] == try.Compare {
			return try.Compare, nil
		}
		try.Compare = x.tried[0]
	}
}
