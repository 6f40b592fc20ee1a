package inproc

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rmalock/rmalock/rma"
)

// Run runs f as n ranks of one node and returns when all have returned: nil if
// all did so with nil, else the errors of the ranks that failed first, each with
// its rank. A panic of a rank stops the others and is raised again here.
func Run(n int, f func(rma.Comm) error) error { return RunNodes(1, n, f) }

// RunNodes is Run with nodes times perNode ranks; node k holds the ranks from
// k*perNode on.
func RunNodes(nodes, perNode int, f func(rma.Comm) error) error {
	if nodes < 1 || perNode < 1 || nodes > maxRanks/perNode {
		return fmt.Errorf("inproc: %d nodes of %d ranks: want at least 1 rank and at most %d: %w", nodes, perNode, maxRanks, rma.ErrRank)
	}
	n := nodes * perNode
	w := &world{start: time.Now(), failed: make(chan struct{}), groups: make([][]*group, n)}
	where := make([]int, n)
	for r := range where {
		where[r] = r / perNode
	}
	g := newGroup(w, where)
	errs := make([]error, n)
	var panicked atomic.Pointer[any]
	var wg sync.WaitGroup
	wg.Add(n)
	for r := range n {
		w.groups[r] = []*group{g}
		go func() {
			defer wg.Done()
			returned := false
			defer func() {
				if p := recover(); p != nil {
					panicked.CompareAndSwap(nil, &p)
					errs[r] = fmt.Errorf("panic: %v", p)
				} else if !returned {
					errs[r] = errors.New("the rank's goroutine ended without returning (runtime.Goexit, or FailNow of a test)")
				}
				w.leave(r, errs[r])
			}()
			errs[r] = f(&comm{g: g, rank: r, world: r})
			returned = true
		}()
	}
	wg.Wait()
	if p := panicked.Load(); p != nil {
		panic(*p)
	}
	return summary(errs)
}

// maxRanks bounds a run; at about 4 KiB a goroutine it is 64 GiB.
const maxRanks = 1 << 24

// summary joins what went wrong first, without the ranks that only suffered.
func summary(errs []error) error {
	var own, peers []error
	for r, err := range errs {
		switch {
		case err == nil:
		case errors.Is(err, rma.ErrPeer):
			peers = append(peers, fmt.Errorf("rank %d: %w", r, err))
		default:
			own = append(own, fmt.Errorf("rank %d: %w", r, err))
		}
	}
	if len(own) > 0 {
		return errors.Join(own[:min(len(own), 8)]...)
	}
	return errors.Join(peers[:min(len(peers), 1)]...)
}

// world is one Run.
type world struct {
	start  time.Time
	groups [][]*group // by rank: the communicators it is a member of; its own goroutine appends

	once   sync.Once
	failed chan struct{} // closed when a rank failed
	cause  error
}

// fail stops everybody who waits.
func (w *world) fail(cause error) {
	w.once.Do(func() {
		w.cause = cause
		close(w.failed)
	})
}

// peer is the error of a rank that was waiting when another one failed.
func (w *world) peer() error {
	<-w.failed
	return fmt.Errorf("inproc: %v: %w", w.cause, rma.ErrPeer)
}

// leave notes that a rank has returned. Nobody may wait for it in a collective.
func (w *world) leave(rank int, err error) {
	if err != nil {
		w.fail(fmt.Errorf("rank %d failed: %v", rank, err))
		return
	}
	for _, g := range w.groups[rank] {
		g.mu.Lock()
		g.gone++
		stuck := g.arrived > 0
		g.mu.Unlock()
		if stuck {
			w.fail(fmt.Errorf("rank %d returned while others wait for it in a collective call", rank))
		}
	}
}

// group is what the ranks of a communicator share.
type group struct {
	world *world
	nodes []rma.Node
	where []int32 // rank -> index in nodes
	order []int32 // rank -> place in node-major order, where its memory lies

	mu      sync.Mutex
	arrived int
	gone    int // ranks that returned
	gate    chan struct{}
	turn    uint
	slots   [2][]any // what ranks brought to the exchange of an even or odd turn
}

// newGroup makes a group whose rank r lies on the node named where[r].
func newGroup(w *world, where []int) *group {
	n := len(where)
	g := &group{world: w, where: make([]int32, n), order: make([]int32, n), gate: make(chan struct{})}
	g.slots = [2][]any{make([]any, n), make([]any, n)}
	index := map[int]int{}
	for r, name := range where {
		k, ok := index[name]
		if !ok {
			k = len(g.nodes)
			index[name] = k
			g.nodes = append(g.nodes, rma.Node{Index: k})
		}
		g.nodes[k].Ranks = append(g.nodes[k].Ranks, r)
		g.where[r] = int32(k)
	}
	place := int32(0)
	for k := range g.nodes {
		g.nodes[k].Count = len(g.nodes)
		for _, r := range g.nodes[k].Ranks {
			g.order[r] = place
			place++
		}
	}
	return g
}

// exchange brings everybody's value to everybody. Two sets of slots are enough: a
// rank cannot begin the exchange after next before all have left this one.
func (g *group) exchange(rank int, v any) ([]any, error) {
	g.mu.Lock()
	select {
	case <-g.world.failed: // who was let go then is still counted as arrived
		g.mu.Unlock()
		return nil, g.world.peer()
	default:
	}
	slots := g.slots[g.turn%2]
	slots[rank] = v
	gate := g.gate
	g.arrived++
	switch {
	case g.gone > 0:
		g.mu.Unlock()
		g.world.fail(errors.New("a rank returned that others wait for in a collective call"))
		return nil, g.world.peer()
	case g.arrived == len(slots):
		g.arrived = 0
		g.turn++
		g.gate = make(chan struct{})
		close(gate)
		g.mu.Unlock()
		return slots, nil
	}
	g.mu.Unlock()
	select {
	case <-gate:
		return slots, nil
	default:
	}
	runtime.Gosched()
	select {
	case <-gate:
		return slots, nil
	case <-g.world.failed:
	}
	select {
	case <-gate: // this call was complete when another rank failed
		return slots, nil
	default:
		return nil, g.world.peer()
	}
}
