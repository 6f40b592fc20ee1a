package dslr_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/dslr"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/sim"
	"github.com/rmalock/rmalock/rma/sim/netmodel"
)

// TestOneFetchAndAdd: one to acquire and one to release, and 8 bytes a lock, here and in the
// simulator; TestOneFetchAndAddUnderMPI has it under MPI, and that of rma/verbs on verbs.
func TestOneFetchAndAdd(t *testing.T) {
	body := func(c rma.Comm) error {
		return locktest.OneFetchAndAdd(c, func(c rma.Comm, locks int) (lock.Table, error) {
			return dslr.New(c, dslr.Config{Locks: locks, Lease: 60e9})
		})
	}
	for _, memory := range []int{0, 2} {
		t.Run(fmt.Sprintf("inproc, %d memory nodes", memory), func(t *testing.T) {
			if err := (inproc.Job{Nodes: 2, PerNode: 2, MemoryNodes: memory}).Run(body); err != nil {
				t.Error(err)
			}
		})
		for _, verbs := range []bool{false, true} {
			t.Run(fmt.Sprintf("sim, %d memory nodes, verbs %v", memory, verbs), func(t *testing.T) {
				if _, err := timed(t, []int{0, 0, 1, 1}, memory, verbs).Run(body); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// timed is a job in virtual time on ConnectX-3, the NIC of the paper.
func timed(t *testing.T, node []int, memory int, verbs bool) sim.Timed {
	t.Helper()
	m, err := netmodel.Load("cx3")
	if err != nil {
		t.Fatal(err)
	}
	all := append([]int{}, node...)
	for i := range memory {
		all = append(all, node[len(node)-1]+1+i)
	}
	net, err := netmodel.New(m, netmodel.Placement{Node: all})
	if err != nil {
		t.Fatal(err)
	}
	return sim.Timed{Node: node, MemoryNodes: memory, Model: net, Verbs: verbs}
}

// victim is what became of the rank that is stopped.
type victim struct {
	doing string // when it stopped
	lost  bool   // a release told it that it had lost the lock
	ended bool
}

// grants runs five clients, of which the first stops at a moment, for ever or for a while. It returns
// what became of that one, and the longest time without a grant to another one while they wanted
// the lock.
func grants(t *testing.T, lease, at, forNs int64) (v victim, longest int64) {
	t.Helper()
	const ranks, rounds, inside = 5, 60, 20_000
	j := timed(t, []int{0, 1, 2, 3, 4}, 1, true)
	j.Faults = []sim.TimedFault{{Rank: 0, At: at, For: forNs}}
	holder, token, last := -1, int64(-1), int64(0)
	took := map[int]int64{} // by living holder: when its lease began, at the latest
	ended := 0
	_, err := j.Run(func(c rma.Comm) error {
		l, err := dslr.New(c, dslr.Config{Lease: lease})
		if err != nil {
			return err
		}
		me := c.Rank()
		does := func(what string) {
			if me == 0 && (c.Now() < at || v.doing == "") {
				v.doing = what
			}
		}
		for range rounds {
			does("waits")
			if err := l.Lock(background, 0, lock.Exclusive); err != nil && !errors.Is(err, lock.ErrOwnerDied) {
				return err
			}
			does("holds")
			now := c.Now()
			if has, ok := took[holder]; ok && now-has < lease && holder != 0 {
				return fmt.Errorf("at %d ns rank %d has the lock, which rank %d has had since %d", now, me, holder, has)
			}
			if holder == 0 && me != 0 && now-took[0] < lease {
				return fmt.Errorf("at %d ns rank %d has the lock within the lease of rank 0, which began at %d", now, me, took[0])
			}
			if now := l.Token(0); now <= token {
				return fmt.Errorf("rank %d has token %d after %d: it was granted what another one had", me, now, token)
			} else {
				token = now
			}
			if me != 0 {
				if last > 0 {
					longest = max(longest, now-last)
				}
				last = now
			}
			holder, took[me] = me, now
			c.Sleep(inside)
			does("releases")
			err := l.Unlock(0, lock.Exclusive)
			if holder == me {
				holder = -1
			}
			delete(took, me)
			if lost := errors.Is(err, lock.ErrLeaseLost); lost && me == 0 {
				v.lost = true
			} else if err != nil {
				return fmt.Errorf("rank %d: %w", me, err)
			}
		}
		if me == 0 {
			v.ended = true
		} else {
			ended++
		}
		return nil
	})
	if err != nil && (forNs > 0 || !errors.Is(err, sim.ErrDeadlock)) { // a rank that is stopped for ever does not end
		t.Fatalf("rank 0 is stopped at %d ns: %v", at, err)
	}
	if ended != ranks-1 {
		t.Fatalf("rank 0 is stopped at %d ns: %d of the others end, want %d", at, ended, ranks-1)
	}
	return v, longest
}

// TestClientIsKilledOrStopped: in virtual time a client stops at any moment of its visits. The
// others have the lock again within two leases, and no two have it at a time. A client that stops
// for longer than that and goes on learns that it has lost the lock which it held.
func TestClientIsKilledOrStopped(t *testing.T) {
	const lease = 1_000_000
	for _, k := range []struct {
		name  string
		forNs int64
	}{{"killed", 0}, {"stopped", 5 * lease}} {
		t.Run(k.name, func(t *testing.T) {
			met, step := map[string]int{}, int64(9_700)
			if locktest.Quick() {
				step *= 2
			}
			for at := int64(1_000_000); at < 1_400_000; at += step {
				v, longest := grants(t, lease, at, k.forNs)
				met[v.doing]++
				if longest > 2*lease+100_000 { // and the pauses of those that draw again
					t.Errorf("rank 0 stops at %d ns, as it %s: no other rank has the lock for %d ns, want up to two leases", at, v.doing, longest)
				}
				if v.ended != (k.forNs > 0) {
					t.Errorf("rank 0 stops at %d ns, as it %s: it ends: %v", at, v.doing, v.ended)
				}
				if k.forNs > 0 && v.doing == "holds" && !v.lost {
					t.Errorf("rank 0 stops at %d ns, as it %s, and does not learn that it has lost the lock", at, v.doing)
				}
			}
			if met["holds"] == 0 || met["waits"] == 0 {
				t.Errorf("what rank 0 did as it stopped: %v, want that it held and that it waited", met)
			}
			t.Logf("what rank 0 did as it stopped: %v", met)
		})
	}
}
