package inproc

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/internal/group"
)

// Run runs f as n ranks of one node and returns when all have returned: nil if
// all did so with nil, else the errors of the ranks that failed first, each with
// its rank. A panic of a rank stops the others and is raised again here.
func Run(n int, f func(rma.Comm) error) error { return Job{Nodes: 1, PerNode: n}.Run(f) }

// RunNodes is Run with nodes times perNode ranks; node k holds the ranks from
// k*perNode on.
func RunNodes(nodes, perNode int, f func(rma.Comm) error) error {
	return Job{Nodes: nodes, PerNode: perNode}.Run(f)
}

// A Job is the shape of a run.
type Job struct {
	Nodes, PerNode int
	MemoryNodes    int // parts of memory for windows of rma.MemoryNodes
	// MayDie lets a rank die: the job goes on without one that returns an error that wraps
	// rma.ErrDied. What it has not flushed never takes effect. Collective calls count the
	// living; what the dead would have brought is zero words, or no bytes. Without MayDie
	// the death of a rank ends the job, as any error of a rank does.
	MayDie bool
}

// Run runs f as the job's ranks, as the function Run does.
func (j Job) Run(f func(rma.Comm) error) error {
	if err := j.check(); err != nil {
		return err
	}
	g := j.ranks()
	w, n := g.world, len(g.where)
	errs := make([]error, n)
	var panicked atomic.Pointer[any]
	var wg sync.WaitGroup
	wg.Add(n)
	for r := range n {
		w.groups[r] = []*ranks{g}
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
	return j.summary(errs)
}

// check refuses shapes that cannot be.
func (j Job) check() error {
	if j.Nodes < 1 || j.PerNode < 1 || j.Nodes > maxRanks/j.PerNode {
		return fmt.Errorf("inproc: %d nodes of %d ranks: want at least 1 rank and at most %d: %w", j.Nodes, j.PerNode, maxRanks, rma.ErrRank)
	}
	if j.MemoryNodes < 0 || j.MemoryNodes > maxRanks {
		return fmt.Errorf("inproc: %d memory nodes: want 0 to %d: %w", j.MemoryNodes, maxRanks, rma.ErrRank)
	}
	return nil
}

// ranks makes the job's communicator.
func (j Job) ranks() *ranks {
	n := j.Nodes * j.PerNode
	w := &world{
		start: time.Now(), failed: make(chan struct{}), groups: make([][]*ranks, n),
		memoryNodes: j.MemoryNodes, mayDie: j.MayDie,
	}
	where := make([]int, n)
	for r := range where {
		where[r] = r / j.PerNode
	}
	return newRanks(w, where)
}

// maxRanks bounds a run; at about 4 KiB a goroutine it is 64 GiB.
const maxRanks = 1 << 24

// summary joins what went wrong first, without the ranks that only suffered.
func (j Job) summary(errs []error) error {
	var own, peers []error
	for r, err := range errs {
		switch {
		case err == nil || j.MayDie && errors.Is(err, rma.ErrDied):
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
	groups [][]*ranks // by rank: the communicators it is a member of; its own goroutine appends

	memoryNodes int
	mayDie      bool

	once   sync.Once
	failed chan struct{} // closed when a rank failed
	cause  error
}

// fail ends the waits of all ranks.
func (w *world) fail(cause error) {
	w.once.Do(func() {
		w.cause = cause
		close(w.failed)
	})
}

// now is the time that all ranks have.
func (w *world) now() int64 { return int64(time.Since(w.start)) }

// peer is the error of a rank that was waiting when another one failed.
func (w *world) peer() error {
	<-w.failed
	return fmt.Errorf("inproc: %v: %w", w.cause, rma.ErrPeer)
}

// leave notes that a rank has returned. No rank may wait for it in a collective call, unless
// it has died and ranks may.
func (w *world) leave(rank int, err error) {
	died := w.mayDie && errors.Is(err, rma.ErrDied)
	if err != nil && !died {
		w.fail(fmt.Errorf("rank %d failed: %v", rank, err))
		return
	}
	for _, g := range w.groups[rank] {
		g.mu.Lock()
		if died {
			g.dead++
			g.complete()
		} else {
			g.returned++
		}
		stuck := !died && g.arrived > 0
		g.mu.Unlock()
		if stuck {
			w.fail(fmt.Errorf("rank %d returned while others wait for it in a collective call", rank))
		}
	}
}

// ranks is what the ranks of a communicator share.
type ranks struct {
	world *world
	nodes []rma.Node
	where []int32 // rank -> index in nodes
	order []int32 // rank -> position in node-major order, where its memory lies

	mu       sync.Mutex
	arrived  int
	returned int // ranks that have returned from the Run
	dead     int // ranks that have died
	call     *collective
}

// collective is a collective call that some ranks of a group have entered.
type collective struct {
	brought []any // by rank; nil of the dead
	combine func(brought []any) (any, error)
	done    chan struct{} // closed when all have entered it
	result  any           // of all ranks, then
	err     error
}

func newCollective(ranks int) *collective {
	return &collective{brought: make([]any, ranks), done: make(chan struct{})}
}

// newRanks makes a communicator whose rank r lies on the node named where[r].
func newRanks(w *world, where []int) *ranks {
	g := &ranks{world: w, order: make([]int32, len(where)), call: newCollective(len(where))}
	g.nodes, g.where = group.Nodes(where)
	position := int32(0)
	for _, n := range g.nodes {
		for _, r := range n.Ranks {
			g.order[r] = position
			position++
		}
	}
	return g
}

// meet is a collective call: the last rank to enter it makes of what all brought the
// result of all. An error of combine is every rank's.
func (g *ranks) meet(rank int, v any, combine func(brought []any) (any, error)) (any, error) {
	call, err := g.enter(rank, v, combine)
	if err != nil {
		return nil, err
	}
	select {
	case <-call.done:
		return call.result, call.err
	default:
	}
	runtime.Gosched()
	select {
	case <-call.done:
		return call.result, call.err
	case <-g.world.failed:
	}
	select {
	case <-call.done: // this call was complete when another rank failed
		return call.result, call.err
	default:
		return nil, g.world.peer()
	}
}

// enter notes that a rank has come to the collective call that it returns.
func (g *ranks) enter(rank int, v any, combine func(brought []any) (any, error)) (*collective, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.world.failed: // ranks that left a call then still count as arrived
		return nil, g.world.peer()
	default:
	}
	if g.returned > 0 {
		g.world.fail(errors.New("a rank returned that others wait for in a collective call"))
		return nil, g.world.peer()
	}
	call := g.call
	call.brought[rank], call.combine = v, combine
	g.arrived++
	g.complete()
	return call, nil
}

// complete ends the collective call if all living ranks have entered it.
func (g *ranks) complete() {
	call := g.call
	if g.arrived == 0 || g.arrived < len(call.brought)-g.dead {
		return
	}
	g.arrived = 0
	g.call = newCollective(len(call.brought))
	if call.combine != nil {
		call.result, call.err = call.combine(call.brought)
	}
	call.brought, call.combine = nil, nil
	close(call.done)
}
