package degree

import (
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
)

// sampleEdges is the number of edges per rank whose inserts are counted.
const sampleEdges = 2000

// counted is what the inserts of the sample did, of all ranks.
type counted struct {
	inserts int64
	sum     hook.Tally
}

// sample counts the operations of some inserts, the lock's included, while all
// ranks insert theirs. Collective; errors are agreed on.
func (j *job) sample() (counted, error) {
	// As full as the first table was, so that chains are as long.
	vertices := j.most
	if j.cfg.Slots == 0 && j.cfg.Heap == 0 {
		vertices = min(vertices, 2*sampleEdges*int64(j.c.Size()))
	}
	var tally hook.Tally
	t, err := open(hook.Count(j.c, &tally), j.cfg.Lock, j.tableConfig(vertices), nil)
	if err != nil {
		return counted{}, err
	}
	n, err := j.samplePass(t)
	err = rma.Agree(j.c, err)
	if err == nil {
		tally.Reset()
		n, err = j.samplePass(t)
		err = rma.Agree(j.c, err)
	}
	var sum hook.Tally
	if err == nil {
		sum, err = tally.Total(j.c)
	}
	if err = errors.Join(err, t.free()); err != nil {
		return counted{}, err
	}
	all, err := j.c.Allgather([]int64{n})
	if err != nil {
		return counted{}, err
	}
	r := counted{sum: sum}
	for _, n := range all {
		r.inserts += n
	}
	return r, nil
}

// samplePass inserts edges from all over the share, evenly spaced.
func (j *job) samplePass(t *table) (inserts int64, err error) {
	edges := len(j.ends) / 2
	n := min(edges, sampleEdges)
	for i := range n {
		at := 2 * (i * edges / n)
		for _, v := range j.ends[at : at+2] {
			if _, err := t.dht.Add(v, 1); err != nil {
				return inserts, fmt.Errorf("degree: insert of the counted sample: %w", err)
			}
			inserts++
		}
	}
	return inserts, nil
}

// perInsert is the number of operations per insert by kind and distance, as in
// "FetchAndOp.far", without zeros, and the number of those on other ranks.
func (r *counted) perInsert() (ops map[string]float64, remote float64) {
	ops = map[string]float64{}
	add := func(name string, n int64) {
		if n > 0 {
			ops[name] = float64(n) / float64(r.inserts)
		}
	}
	for d := range hook.Distances {
		for k := range rma.Kinds {
			add(k.String()+"."+d.String(), r.sum.Ops(k, d))
		}
		add("Flush."+d.String(), r.sum.Flushes(d))
		add("Await."+d.String(), r.sum.Awaits(d))
		add("Backoff."+d.String(), r.sum.Backoffs(d))
	}
	add("FlushAll", r.sum.FlushAlls())
	return ops, float64(r.sum.Remote()) / float64(r.inserts)
}
