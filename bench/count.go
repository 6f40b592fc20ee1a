package bench

import (
	"errors"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
)

// Bounds of the counted pass, in acquires per rank. The ranks leave the barrier before it
// one after the other; the pass is long enough that they compete.
const (
	fewest = 200
	most   = 20000
)

// opCounts is what the counted pass found, at rank 0: acquires and operations of all ranks.
type opCounts struct {
	acquires int64
	sum      hook.Tally
}

// count runs about n acquires of the workload and counts the lock's operations.
// Each rank may pass another number. Collective.
func count(c rma.Comm, lck *Lock, cfg *Config, n int64) (*opCounts, error) {
	var tally hook.Tally
	bare := *cfg
	bare.Observe = nil
	w, err := open(c, hook.Count(c, &tally), lck, &bare)
	if err != nil {
		return nil, err
	}
	tally.Reset() // opening is not counted
	n = min(max(n, fewest), most)
	if cfg.Acquires > 0 {
		n = min(n, int64(cfg.Acquires))
	}
	if !w.active() {
		n = 0
	}
	if err := errors.Join(w.run(int(n)), w.leave()); err != nil {
		return nil, err
	}
	acquires, _, _ := w.taken(n)
	all, err := c.Allgather([]int64{acquires})
	if err != nil {
		return nil, err
	}
	t := &opCounts{}
	if c.Rank() == 0 { // it reports
		for _, n := range all {
			t.acquires += n
		}
	}
	if t.sum, err = tally.Total(c); err != nil {
		return nil, err
	}
	return t, w.free()
}

// perAcquire is the number of operations per acquire by kind and distance, as in
// "FetchAndOp.far", without zeros, and the number of those on other ranks.
func (t *opCounts) perAcquire() (ops map[string]float64, remote float64) {
	ops = map[string]float64{}
	add := func(name string, n int64) {
		if n > 0 {
			ops[name] = float64(n) / float64(t.acquires)
		}
	}
	for d := range hook.Distances {
		for k := range rma.Kinds {
			add(k.String()+"."+d.String(), t.sum.Ops(k, d))
		}
		add("Flush."+d.String(), t.sum.Flushes(d))
		add("Await."+d.String(), t.sum.Awaits(d))
		add("Backoff."+d.String(), t.sum.Backoffs(d))
	}
	add("FlushAll", t.sum.FlushAlls())
	return ops, float64(t.sum.Remote()) / float64(t.acquires)
}
