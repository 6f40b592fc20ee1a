package shiftlock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// code is the lock of the authors' public code (src/shiftlock/mod.rs) with its recovery, in
// words of 8 bytes: messages name neither lock nor reset, and no rank looks at the age of what
// it holds. A reset changes rel by half its range.
type code struct {
	c     rma.Comm
	w     *rma.Window // the lock
	box   *rma.Window // of each rank: successor, turn
	lease int64
	k     int64
	repairs

	cons int64
	word int64
}

// repairs are what the code lacks.
type repairs struct {
	readersLook bool // a reader leaves by CompareAndSwap, on a word without a reset since
	writersLook bool // so does a writer that hands over, by a Get
	tagged      bool // messages name the reset that they come after
}

var (
	codeMode = rma.Field{Name: "mode", Shift: 0, Bits: 1}
	codeRdr  = rma.Field{Name: "rdr", Shift: 1, Bits: 15}
	codeTail = rma.Field{Name: "tail", Shift: 16, Bits: 16}
	codeRel  = rma.Field{Name: "rel", Shift: 32, Bits: 31, Wraps: true}
	codeEra  = rma.Field{Name: "era", Shift: 63, Bits: 1} // the top bit of the code's rel

	codeThere = rma.Field{Name: "there", Shift: 0, Bits: 1}
	codeTag   = rma.Field{Name: "era", Shift: 1, Bits: 1}
	codeFlip  = rma.Field{Name: "flipped", Shift: 2, Bits: 1}
	codeCons  = rma.Field{Name: "cons", Shift: 3, Bits: 5}
	codeLow   = rma.Field{Name: "rel", Shift: 8, Bits: 31}
	codeFrom  = rma.Field{Name: "from", Shift: 8, Bits: 16}
)

func public(lease, k int64, r repairs) lock.Info {
	return lock.Info{Name: "the public code", Shared: true, Recovers: true, Open: func(c rma.Comm, _, _ int) (lock.Table, error) {
		w, err := c.Allocate(rma.Spec{Name: "lock", Hosts: rma.MemoryNodes, Regions: []rma.Region{
			{Count: 1, Words: []rma.Word{{Name: "L", Fields: []rma.Field{codeEra, codeRel, codeTail, codeRdr, codeMode}}}},
		}})
		if err != nil {
			return nil, err
		}
		box, err := c.Allocate(rma.Spec{Name: "mail", Regions: []rma.Region{{Count: 1, Words: []rma.Word{
			{Name: "SUCCESSOR", Class: rma.Plain, Fields: []rma.Field{codeThere, codeTag, codeFrom}},
			{Name: "TURN", Class: rma.Plain, Fields: []rma.Field{codeThere, codeTag, codeFlip, codeCons, codeLow}},
		}}}})
		return &code{c: c, w: w, box: box, lease: lease, k: k, repairs: r}, err
	}}
}

func (t *code) Len() int             { return 1 }
func (t *code) Home(int) int         { return 0 }
func (t *code) Hosts() rma.Hosts     { return rma.MemoryNodes }
func (t *code) Free() error          { return errors.Join(t.w.Free(), t.box.Free()) }
func (t *code) Mutex(int) lock.Mutex { return nil }
func (t *code) Idle() error          { return nil }
func (t *code) Promise(lock.Mode) lock.Promise {
	return lock.Promise{Bypass: lock.Unbounded, Acquire: lock.Unbounded, Release: lock.Unbounded, Lease: t.lease}
}
func (t *code) TryLock(int, lock.Mode) (bool, error) { return false, errors.ErrUnsupported }

func (t *code) Lock(_ context.Context, _ int, m lock.Mode) error {
	for {
		in, err := t.acquire(m)
		if err != nil {
			return err
		}
		if in {
			return lock.ErrOwnerDied // the code tells no rank of a death; here all are told
		}
	}
}

func (t *code) acquire(m lock.Mode) (bool, error) {
	if m == lock.Shared {
		v, err := t.w.FetchAndOpFlush(codeRdr.One(), 0, 0, rma.Sum)
		if t.word = v; err != nil || codeTail.Get(v) == 0 {
			return true, err
		}
		return t.poll(rma.NotEqual(v & 1).In(1))
	}
	me := t.c.Rank()
	t.box.Put(0, me, 0)
	t.box.Put(0, me, 1)
	if err := t.box.Flush(me); err != nil {
		return false, err
	}
	v, err := t.w.GetFlush(0, 0)
	for found := int64(0); err == nil; v = found {
		if found, err = t.w.CompareAndSwapFlush(codeTail.With(v, int64(me)+1), v, 0, 0); found == v {
			break
		}
	}
	t.word, t.cons = v, 0
	if err != nil {
		return false, err
	}
	if before := int(codeTail.Get(v)) - 1; before >= 0 {
		message := codeThere.One() | codeTag.With(0, codeEra.Get(v)) | codeFrom.With(0, int64(me)+1)
		if err := t.box.PutFlush(message, before, 0); err != nil {
			return false, err
		}
		turn, err := t.hear(1)
		if turn == 0 || err != nil {
			return false, err
		}
		if t.cons = codeCons.Get(turn); codeFlip.Get(turn) != 0 {
			return t.poll(rma.Equal(codeRel.With(0, codeLow.Get(turn))).In(codeRel.Mask()))
		}
		return true, nil
	}
	if codeRdr.Get(v) > 0 {
		return t.poll(rma.Equal(codeRel.With(0, codeRel.Get(v)+codeRdr.Get(v))).In(codeRel.Mask()))
	}
	return true, nil
}

// poll waits for a condition on the lock; false after a reset.
func (t *code) poll(want rma.Cond) (bool, error) {
	moves := codeEra.Mask() | codeRel.Mask()
	still, since := t.word&moves, t.c.Now()
	for v := t.word; ; {
		switch {
		case codeEra.Get(v) != codeEra.Get(t.word):
			return false, nil
		case want.Holds(v):
			return true, nil
		case v&moves != still:
			still, since = v&moves, t.c.Now()
		case t.c.Now()-since > 3*t.lease:
			if err := t.reset(v); err != nil {
				return false, err
			}
		}
		var err error
		if _, _, err = t.w.AwaitUntil(0, 0, rma.NotEqual(v&(moves|1)).In(moves|1), since+3*t.lease+1); err == nil {
			v, err = t.w.GetFlush(0, 0)
		}
		if err != nil {
			return false, err
		}
	}
}

// hear waits for a message; 0 after a reset.
func (t *code) hear(word int) (int64, error) {
	moves := codeEra.Mask() | codeRel.Mask()
	still, since := t.word&moves, t.c.Now()
	want := rma.Equal(1).In(1)
	if t.tagged {
		want = rma.Equal(1 | codeTag.With(0, codeEra.Get(t.word))).In(1 | codeTag.Mask())
	}
	for {
		m, came, err := t.box.AwaitUntil(t.c.Rank(), word, want, since+3*t.lease+1)
		if came || err != nil {
			return m, err
		}
		v, err := t.w.GetFlush(0, 0)
		switch {
		case err != nil || codeEra.Get(v) != codeEra.Get(t.word):
			return 0, err
		case v&moves != still:
			still, since = v&moves, t.c.Now()
		case t.c.Now()-since > 3*t.lease:
			if err := t.reset(v); err != nil {
				return 0, err
			}
		}
	}
}

// reset is the server's: if rel is the same, all fields are 0 and rel jumps.
func (t *code) reset(v int64) error {
	for rel := codeRel.Get(v); codeRel.Get(v) == rel; {
		found, err := t.w.CompareAndSwapFlush(v&(codeEra.Mask()|codeRel.Mask())^codeEra.Mask(), v, 0, 0)
		if err != nil || found == v {
			return err
		}
		v = found
	}
	return nil
}

func (t *code) Unlock(_ int, m lock.Mode) error {
	if m == lock.Shared {
		leaves := codeRel.One() - codeRdr.One()
		if !t.readersLook {
			_, err := t.w.FetchAndOpFlush(leaves, 0, 0, rma.Sum)
			return err
		}
		for v := t.word; codeEra.Get(v) == codeEra.Get(t.word); {
			found, err := t.w.CompareAndSwapFlush(v+leaves, v, 0, 0)
			if err != nil || found == v {
				return err
			}
			v = found
		}
		return lock.ErrLeaseLost
	}
	t.cons++
	next, err := t.box.GetFlush(t.c.Rank(), 0)
	if err != nil {
		return err
	}
	mine := int64(t.c.Rank()) + 1
	v := t.word
	if next != 0 && t.writersLook {
		now, err := t.w.GetFlush(0, 0)
		if err != nil {
			return err
		}
		if codeEra.Get(now) != codeEra.Get(v) {
			return lock.ErrLeaseLost
		}
	}
	for next == 0 {
		if codeEra.Get(v) != codeEra.Get(t.word) {
			return lock.ErrLeaseLost
		}
		if codeTail.Get(v) == mine {
			found, err := t.w.CompareAndSwapFlush(codeTail.With(v^1, 0)+codeRel.One(), v, 0, 0)
			if err != nil || found == v {
				return err
			}
			v = found
			continue
		}
		if next, err = t.hear(0); next == 0 || err != nil {
			return err
		}
	}
	turn := codeThere.One() | codeTag.With(0, codeEra.Get(t.word)) | codeCons.With(0, t.cons)
	if t.cons >= t.k {
		for {
			if codeEra.Get(v) != codeEra.Get(t.word) {
				return lock.ErrLeaseLost
			}
			found, err := t.w.CompareAndSwapFlush(v^1+codeRel.One(), v, 0, 0)
			if err != nil {
				return err
			}
			if found == v {
				break
			}
			v = found
		}
		turn = codeLow.With(codeCons.With(turn|codeFlip.One(), 0), codeRel.Get(v)+1+codeRdr.Get(v))
	}
	return t.box.PutFlush(turn, int(codeFrom.Get(next))-1, 1)
}

// TestErrata: the public code fails where docs/errata.md says so.
func TestErrata(t *testing.T) {
	const lease = sim.DefaultTickNs
	for _, k := range []struct {
		name    string
		plan    check.Plan
		explore sim.Scheduler
		k       int64
		repairs repairs
		want    error // nil: it passes
	}{
		{"without time it passes", check.Plan{Ranks: 3, Acquires: 1, Writers: 2, Ticks: 1, MaxDelay: 1}, sim.Exhaustive(2), 1, repairs{}, nil},
		{"a late reader leaves after a reset", check.Plan{Ranks: 2, Acquires: 1, Writers: 1, Ticks: 6, MaxDelay: 1},
			sim.Random(1, 0, 5000), 16, repairs{}, sim.ErrCarry},
		{"a late writer hands over after a reset", check.Plan{Ranks: 3, Acquires: 1, Writers: 3, Ticks: 5, MaxDelay: 1},
			sim.Exhaustive(3), 16, repairs{readersLook: true}, check.ErrUntold},
		{"a chain of hand-overs outlasts the patience", check.Plan{Ranks: 3, Acquires: 4, Writers: 2, Ticks: 12, MaxDelay: 1},
			sim.Random(1, 0, 40000), 16, repairs{readersLook: true, writersLook: true, tagged: true}, check.ErrExclusion},
	} {
		t.Run(k.name, func(t *testing.T) {
			k.plan.Info, k.plan.MemoryNodes = public(lease, k.k, k.repairs), 1
			r, err := check.Run(k.plan, k.explore)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case k.want == nil && r.Failure != nil:
				t.Errorf("it fails: %v", r.Failure)
			case k.want != nil && r.Failure == nil:
				t.Errorf("it passes, want %v; %d executions", k.want, r.Stats.Executions)
			case k.want != nil && !errors.Is(r.Failure.Err, k.want):
				t.Errorf("it fails with %v, want %v", r.Failure, k.want)
			}
			if r.Failure != nil {
				t.Log(r.Failure.Err, r.Failure.Schedule)
			}
		})
	}
}
