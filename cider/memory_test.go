package cider

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// TestHour: in an hour of changes, in virtual time, no memory is lost. What is given out, less
// what lies in the pool and what clients keep, is the blocks of the keys that are there.
func TestHour(t *testing.T) {
	const clients, keys, most = 4, 8, 100
	hour := int64(time.Hour)
	if locktest.Quick() {
		hour = int64(2 * time.Minute)
	}
	for _, policy := range []Policy{{Scheme: Cider, HotnessThreshold: 1}, {Scheme: Combining, Local: 4}} {
		t.Run(fmt.Sprintf("%v, local %d", policy.Scheme, policy.Local), func(t *testing.T) {
			t.Parallel()
			changes := int64(0)
			job := sim.Timed{Node: make([]int, clients), MemoryNodes: 1, Model: sim.Uneven(1), MaxTime: 2 * int64(time.Hour)}
			_, err := job.Run(func(c rma.Comm) error {
				s, err := New(c, Config{Keys: keys, Most: most, Section: 8, Words: 1 << 17, Policy: policy})
				if err != nil {
					return err
				}
				for n := 0; c.Now() < hour; n++ {
					changes++
					key, v := int(s.draw(keys)), make([]byte, s.draw(most))
					switch s.draw(8) {
					case 0:
						_, err = s.Delete(key)
					case 1:
						_, err = s.Insert(key, v)
					default:
						_, err = s.Update(key, v)
					}
					if err != nil {
						return fmt.Errorf("change %d: %w", n, err)
					}
					if n%16 == 0 { // others have a burst meanwhile
						if err := s.Rest(); err != nil {
							return err
						}
						c.Sleep(int64(2*time.Second) + s.draw(1000))
					}
				}
				if err := errors.Join(s.Rest(), c.Barrier()); err != nil {
					return err
				}
				held, err := c.Allgather([]int64{int64(s.heap.Held())})
				if err != nil || c.Rank() != 0 {
					return err
				}
				if err := s.lost(held); err != nil {
					return fmt.Errorf("after %d changes: %w", changes, err)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			t.Logf("%d changes", changes)
		})
	}
}

// errLost is wrapped where blocks are lost, or in two hands.
var errLost = errors.New("memory is lost")

// lost is an error if words are given out, less those that clients hold, that are not in the blocks
// of keys.
func (s *Store) lost(held []int64) error {
	u, err := s.Usage()
	if err != nil {
		return err
	}
	live := int64(0)
	for key := range s.cfg.Keys {
		at := s.slot(key)
		p, err := s.w.GetFlush(at.Host, at.Pointer)
		if err != nil {
			return err
		}
		if !Empty(p) {
			_, words := block(p)
			live += int64(s.heap.Size(words))
		}
	}
	used := u.Taken - u.Pooled
	for _, n := range held {
		used -= n
	}
	if used != live {
		return fmt.Errorf("%w: %d words are in use, and %d of keys: %+v, held %v", errLost, used, live, u, held)
	}
	return nil
}
