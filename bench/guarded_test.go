package bench_test

import (
	"errors"
	"testing"

	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// homed is D-MCS with a say of its own about homes.
type homed struct {
	lock.Table
	home func(id int) int
}

func (h homed) Home(id int) int { return h.home(id) }

func init() {
	for name, home := range map[string]func(id, ranks int) int{
		"testonehome": func(int, int) int { return 0 },                   // as on one memory node
		"testblocks":  func(id, ranks int) int { return id / 3 % ranks }, // three locks in a row
		"testback":    func(id, ranks int) int { return ranks - 1 - id%ranks },
		"testnowhere": func(id, ranks int) int { return id }, // from the number of ranks on, no rank
	} {
		lock.Register(lock.Info{Name: name, Open: func(c rma.Comm, n, first int) (lock.Table, error) {
			d, err := lock.Lookup("dmcs")
			if err != nil {
				return nil, err
			}
			t, err := d.Open(c, n, first)
			return homed{t, func(id int) int { return home(id, c.Size()) }}, err
		}})
	}
}

// TestHomes: each lock guards a word of its own, wherever its home is. Two locks with one word
// would lose increments, and the lock be blamed.
func TestHomes(t *testing.T) {
	for _, name := range []string{"dmcs", "testonehome", "testblocks", "testback"} {
		for _, locks := range []int{4, 7, 12} {
			sane(t, measure(t, 1, 4, bench.Config{Lock: name, Mode: bench.WCSB, Locks: locks, Acquires: 500}))
		}
	}
	for _, nodes := range []int{1, 3, 6} {
		for _, mode := range []bench.Mode{bench.SOB, bench.WCSB, bench.Clients} {
			err := inproc.Job{Nodes: 2, PerNode: 2, MemoryNodes: nodes}.Run(func(c rma.Comm) error {
				_, err := bench.Run(c, bench.Config{Lock: "testmemory", Mode: mode, Locks: 7, Acquires: 500, Readers: 0.3})
				return err
			})
			if err != nil {
				t.Errorf("%s, locks on %d memory nodes: %v", mode, nodes, err)
			}
		}
	}
	err := inproc.Run(2, func(c rma.Comm) error {
		_, err := bench.Run(c, bench.Config{Lock: "testnowhere", Mode: bench.WCSB, Locks: 4, Acquires: 10})
		return err
	})
	if !errors.Is(err, lock.ErrConfig) {
		t.Errorf("a lock at home nowhere: error %v, want ErrConfig", err)
	}
}
