package hook

import "github.com/rmalock/rmalock/rma"

// NoSwap makes a window of a transport without a native swap: FetchAndOp with Replace
// is a loop of CompareAndSwap at its Flush, as on plain InfiniBand verbs (rma-rw, table
// 3, whose Fortran 2008 has none either). The first try takes the word for 0, so a swap of
// a word that is 0 costs what it did; each other try costs a round trip and knows what the
// one before found. Other ranks may change the word before every try, so a swap no longer
// ends after one step. A queue that is entered by a swap is entered in the order in which
// tries succeed.
func NoSwap(c rma.Comm) rma.Comm {
	return decorate(c, func(_ handleID, below rma.Transport) rma.Transport { return &swapper{Transport: below} })
}

// swapper is the Transport of NoSwap.
type swapper struct {
	rma.Transport
	held []rma.Operation // swaps, and what came after one on its word
}

// Less is for rma.Decorate.
func (x *swapper) Less(c *rma.Caps) { c.NativeSwap = false }

func (x *swapper) Issue(o rma.Operation) {
	hold := isSwap(&o)
	for i := range x.held {
		hold = hold || overlap(&x.held[i], &o)
	}
	if hold {
		x.held = append(x.held, o)
	} else {
		x.Transport.Issue(o)
	}
}

func isSwap(o *rma.Operation) bool { return o.Kind == rma.KindFetchAndOp && o.Op == rma.Replace }

func (x *swapper) Flush(target int, r *rma.Results) (int, error) {
	kept := x.held[:0]
	var failed error
	for _, o := range x.held {
		switch {
		case failed != nil:
		case target >= 0 && o.Target != target:
			kept = append(kept, o)
		case isSwap(&o):
			failed = x.swap(o, r)
		default:
			x.Transport.Issue(o)
		}
	}
	x.held = kept
	pending, err := x.Transport.Flush(target, r)
	if failed != nil {
		err = failed
	}
	return pending + len(x.held), err
}

// swap puts a value into a word that held what it finds.
func (x *swapper) swap(o rma.Operation, r *rma.Results) error {
	o.Kind, o.Compare = rma.KindCompareAndSwap, 0
	for {
		x.Transport.Issue(o)
		if _, err := x.Transport.Flush(o.Target, r); err != nil || r[o.Slot] == o.Compare {
			return err
		}
		o.Compare = r[o.Slot]
	}
}
