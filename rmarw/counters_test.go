package rmarw_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rmarw"
)

// A turns runs steps on all ranks, one step after the other.
type turns struct {
	t *testing.T
	c rma.Comm
	l lock.Table
}

// all runs a step on each rank, and waits for all of them.
func (s turns) all(step func() error) error {
	if err := step(); err != nil {
		return err
	}
	return s.c.Barrier()
}

// one runs a step on one rank.
func (s turns) one(rank int, step func() error) error {
	return s.all(func() error {
		if s.c.Rank() != rank {
			return nil
		}
		return step()
	})
}

func (s turns) lock(rank, id int, mode lock.Mode) error {
	return s.one(rank, func() error { return s.l.Lock(context.Background(), id, mode) })
}

func (s turns) unlock(rank, id int, mode lock.Mode) error {
	return s.one(rank, func() error { return s.l.Unlock(id, mode) })
}

// hold is a TryLock that succeeds: unlike lock it does not wait where the lock is wrong.
func (s turns) hold(rank, id int, mode lock.Mode) error {
	return s.one(rank, func() error {
		got, err := s.l.TryLock(id, mode)
		if !got && err == nil {
			err = fmt.Errorf("rank %d cannot take lock %d, %v", rank, id, mode)
		}
		return err
	})
}

// try is a TryLock whose outcome is known.
func (s turns) try(id int, mode lock.Mode, want bool, when string) error {
	got, err := s.l.TryLock(id, mode)
	if got != want {
		s.t.Errorf("rank %d, lock %d, %v: TryLock is %v, want %v: %s", s.c.Rank(), id, mode, got, want, when)
	}
	if got && err == nil {
		err = s.l.Unlock(id, mode)
	}
	return err
}

// inTurns opens n locks over a machine of one node for each way in which readers and
// writers meet.
func inTurns(t *testing.T, ranks, n int, tdc string, body func(s turns) error) {
	for _, dc := range dcs {
		t.Run(fmt.Sprintf("%v, %d ranks, T_DC %s", dc, ranks, tdc), func(t *testing.T) {
			in, _ := on(t, dc, fmt.Sprintf("node:1 rank:%d", ranks), 2, 1000, tdc)
			err := inproc.Run(ranks, func(c rma.Comm) error {
				l, err := in.Open(c, n, 0)
				if err != nil {
					return err
				}
				if err := c.Barrier(); err != nil { // on has set the phase of all counters
					return err
				}
				if err := body(turns{t, c, l}); err != nil {
					return err
				}
				if err := l.(*rmarw.Table).Idle(); err != nil {
					t.Error(err)
				}
				return l.Free()
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestWriterVisitsEachCounter: with more counters than a writer visits together, it takes
// all of them from the readers, and gives all of them back. Section 3.2.1 of rma-rw.
func TestWriterVisitsEachCounter(t *testing.T) {
	for _, ranks := range []int{16, 17, 33} {
		inTurns(t, ranks, 1, "1", func(s turns) error {
			for _, writer := range []int{0, ranks - 1} {
				if err := s.lock(writer, 0, lock.Exclusive); err != nil {
					return err
				}
				err := s.all(func() error {
					if s.c.Rank() == writer {
						return nil
					}
					return s.try(0, lock.Shared, false, "a writer is in")
				})
				if err != nil {
					return err
				}
				if err := s.unlock(writer, 0, lock.Exclusive); err != nil {
					return err
				}
				err = s.all(func() error { return s.try(0, lock.Shared, true, "the writer has left") })
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// TestFailedTryReopensEachCounter: a writer's try that finds a reader leaves all counters
// open, those of the batches before the reader's too.
func TestFailedTryReopensEachCounter(t *testing.T) {
	for _, ranks := range []int{17, 40} {
		inTurns(t, ranks, 1, "1", func(s turns) error {
			for _, reader := range []int{0, 15, 16, ranks - 1} {
				if err := s.hold(reader, 0, lock.Shared); err != nil {
					return err
				}
				err := s.one((reader+1)%ranks, func() error { return s.try(0, lock.Exclusive, false, "a reader is in") })
				if err != nil {
					return err
				}
				err = s.all(func() error {
					if s.c.Rank() == reader {
						return nil
					}
					return s.try(0, lock.Shared, true, "a writer has tried and failed")
				})
				if err != nil {
					return err
				}
				if err := s.unlock(reader, 0, lock.Shared); err != nil {
					return err
				}
				err = s.one((reader+1)%ranks, func() error { return s.try(0, lock.Exclusive, true, "the reader has left") })
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// TestUnevenCounters: counters of 3, 3 and 1 ranks, or 2, 2 and 1, and more locks than
// ranks. Each rank finds the counters of each lock, and of no other one.
func TestUnevenCounters(t *testing.T) {
	const locks = 11
	for ranks, tdc := range map[int]string{7: "3", 5: "2"} {
		inTurns(t, ranks, locks, tdc, func(s turns) error {
			for id := range locks {
				for writer := range ranks {
					if err := s.lock(writer, id, lock.Exclusive); err != nil {
						return err
					}
					err := s.all(func() error {
						for other := range locks {
							if other == id && s.c.Rank() == writer {
								continue
							}
							if err := s.try(other, lock.Shared, other != id, fmt.Sprintf("rank %d has lock %d", writer, id)); err != nil {
								return err
							}
						}
						return nil
					})
					if err != nil {
						return err
					}
					if err := s.unlock(writer, id, lock.Exclusive); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
}
