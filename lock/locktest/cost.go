package locktest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/rmatest"
)

// OneFetchAndAdd checks that an acquire of a free lock is one FetchAndOp and no other remote
// operation, that its release is the same, in either mode, and that a lock takes 8 bytes. The locks
// that rank 0 takes have their homes all over the job. Collective.
func OneFetchAndAdd(c rma.Comm, open func(c rma.Comm, locks int) (lock.Table, error)) error {
	const each = 100 // locks of a home
	var n hook.Tally
	s := &sized{Comm: c}
	homes := c.Size()
	if c.MemoryNodes() > 0 {
		homes = c.MemoryNodes()
	}
	t, err := open(hook.Count(s, &n), each*homes)
	if err != nil {
		return err
	}
	if s.bytes != 8*each {
		err = fmt.Errorf("a home of %d locks has %d bytes, want 8 for each", each, s.bytes)
	}
	one := func(what string, mode lock.Mode, id int, did error) error {
		adds, all := int64(0), int64(0)
		for d := hook.Own; d <= hook.Far; d++ {
			adds += n.Ops(rma.KindFetchAndOp, d)
			for k := range rma.Kinds {
				all += n.Ops(k, d)
			}
		}
		if did == nil && (adds != 1 || all != 1) {
			did = fmt.Errorf("%s, %v, lock %d: want one FetchAndOp alone; counted are\n%v", what, mode, id, &n)
		}
		n.Reset()
		return did
	}
	if c.Rank() == 0 {
		n.Reset()
		for id := range 2 * homes {
			for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
				err = errors.Join(err, one("acquire", mode, id, t.Lock(context.Background(), id, mode)),
					one("release", mode, id, t.Unlock(id, mode)))
			}
		}
	}
	return errors.Join(err, c.Barrier(), t.Free())
}

// NoAllocations tests that no acquire and no release of a rank allocates, in either mode, while it
// holds up to three locks.
func NoAllocations(t *testing.T, open func(c rma.Comm, locks int) (lock.Table, error)) {
	t.Helper()
	if rmatest.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	const locks = 3
	err := inproc.Run(1, func(c rma.Comm) error {
		table, err := open(c, locks)
		if err != nil {
			return err
		}
		for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
			n := testing.AllocsPerRun(200, func() {
				for id := range locks {
					err = errors.Join(err, table.Lock(context.Background(), id, mode))
				}
				for id := range locks {
					err = errors.Join(err, table.Unlock(id, mode))
				}
			})
			if n != 0 || err != nil {
				return fmt.Errorf("%v: %v allocations, %w", mode, n, err)
			}
		}
		return table.Free()
	})
	if err != nil {
		t.Error(err)
	}
}

// sized counts the bytes of a host's part of the windows.
type sized struct {
	rma.Comm
	bytes int
}

func (s *sized) Allocate(spec rma.Spec) (*rma.Window, error) {
	w, err := s.Comm.Allocate(spec)
	if err == nil {
		s.bytes += 8 * w.Words()
	}
	return w, err
}
