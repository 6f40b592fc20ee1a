package dht_test

import (
	"math/rand/v2"
	"runtime"
	"testing"

	_ "github.com/rmalock/rmalock/baseline"
	"github.com/rmalock/rmalock/dht"
	_ "github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// A way is a way of synchronising.
type way struct {
	name string
	lock string // registered name; "" for none
}

var ways = []way{{"atomics", ""}, {"dmcs", "dmcs"}, {"rw", "fompi-rw"}} // fompi-rw has a shared mode

// A machine is nodes times ranks per node.
type machine struct{ nodes, perNode int }

// with opens a table on every rank of a machine and runs f there. wrap, which may
// be nil, decorates the Comm of the table and of the locks.
func (way way) with(m machine, cfg dht.Config, wrap func(rma.Comm) rma.Comm, f func(c rma.Comm, t *dht.Table) error) error {
	return inproc.RunNodes(m.nodes, m.perNode, func(c rma.Comm) error {
		cfg, below := cfg, c
		if wrap != nil {
			below = wrap(c)
		}
		if way.lock != "" {
			info, err := lock.Lookup(way.lock)
			if err != nil {
				return err
			}
			if cfg.Locks, err = info.Open(below, c.Size(), 0); err != nil {
				return err
			}
		}
		t, err := dht.New(below, cfg)
		if err != nil {
			return err
		}
		if err := rma.Agree(c, f(c, t)); err != nil {
			return err
		}
		if err := t.Free(); err != nil {
			return err
		}
		if cfg.Locks != nil {
			return cfg.Locks.Free()
		}
		return nil
	})
}

// each runs f as a subtest for each way.
func each(t *testing.T, f func(t *testing.T, way way)) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) { f(t, way) })
	}
}

// shuffled decorates a Comm so that its windows are as unkind as the memory model
// allows: nothing takes effect before the Flush, then words take effect one by one,
// those of bulk operations included, in random order except on the same word, and
// the rank loses the processor at random in between.
func shuffled(seed uint64) func(rma.Comm) rma.Comm {
	return func(c rma.Comm) rma.Comm {
		return shuffler{c, rand.New(rand.NewPCG(seed, uint64(c.Rank())))}
	}
}

type shuffler struct {
	rma.Comm
	random *rand.Rand
}

func (s shuffler) Allocate(spec rma.Spec) (*rma.Window, error) {
	w, err := s.Comm.Allocate(spec)
	if err != nil {
		return nil, err
	}
	return rma.Decorate(w, func(t rma.Transport) rma.Transport {
		return &shuffle{Transport: t, random: s.random}
	}), nil
}

type shuffle struct {
	rma.Transport
	random  *rand.Rand
	pending []rma.Operation
}

func (s *shuffle) Issue(o rma.Operation) {
	if o.Data == nil {
		s.pending = append(s.pending, o)
		return
	}
	for i := range o.Data {
		word := o
		word.Disp, word.Data = o.Disp+i, o.Data[i:i+1]
		s.pending = append(s.pending, word)
	}
}

func (s *shuffle) Flush(target int, r *rma.Results) (int, error) {
	for len(s.pending) > 0 { // flushing other targets too is allowed
		i := s.random.IntN(len(s.pending))
		for j := range i {
			if s.pending[j].Disp == s.pending[i].Disp && s.pending[j].Target == s.pending[i].Target {
				i = j
				break
			}
		}
		o := s.pending[i]
		s.pending = append(s.pending[:i], s.pending[i+1:]...)
		if s.random.IntN(3) == 0 {
			for range s.random.IntN(12) {
				runtime.Gosched()
			}
		}
		s.Transport.Issue(o)
		if _, err := s.Transport.Flush(o.Target, r); err != nil {
			return 0, err
		}
	}
	return 0, nil
}
