//go:build cgo && verbs

package verbs

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/internal/group"
)

// ranks is what the ranks of a communicator share in one process.
type ranks struct {
	job       *job
	name      string // the same in all processes, of no other communicator
	world     []int  // rank -> rank in the job
	nodes     []rma.Node
	where     []int32 // rank -> index in nodes
	local     []int   // ranks of this process
	processes []int   // that have ranks

	mu       sync.Mutex
	arrived  int
	returned int // ranks of this process that have returned from the Run
	calls    int // collective calls that are over
	call     *collective
}

// collective is a collective call that some ranks of this process have entered.
type collective struct {
	brought map[int][]byte // by rank, of this process
	finish  finish
	done    chan struct{} // closed when all ranks have entered it
	all     [][]byte      // by rank
	shared  any           // of this process's ranks
	err     error
}

// finish is what the last rank of a process to enter a call does with what its ranks brought,
// before they go to the other processes.
type finish func(brought map[int][]byte) (shared any)

// newRanks makes the communicator of some ranks of the job.
func newRanks(j *job, name string, world []int) *ranks {
	g := &ranks{job: j, name: name, world: world}
	at := make([]int, len(world))
	for r, w := range world {
		at[r] = j.nodeOf(w)
		p := w / j.perProcess
		if p == j.cfg.Process {
			g.local = append(g.local, r)
		}
		if !contains(g.processes, p) {
			g.processes = append(g.processes, p)
		}
	}
	g.nodes, g.where = group.Nodes(at)
	g.call = g.newCall()
	return g
}

func contains(list []int, v int) bool {
	for _, x := range list {
		if x == v {
			return true
		}
	}
	return false
}

func (g *ranks) newCall() *collective {
	return &collective{brought: make(map[int][]byte, len(g.local)), done: make(chan struct{})}
}

// meet is a collective call: all learn what all brought.
func (g *ranks) meet(rank int, mine []byte, f finish) (*collective, error) {
	call, last, err := g.enter(rank, mine, f)
	if err != nil {
		return nil, err
	}
	if last {
		g.complete(call)
	}
	select {
	case <-call.done:
	case <-g.job.life.failed:
		select {
		case <-call.done: // this call was complete when another rank failed
		default:
			return nil, g.job.life.why()
		}
	}
	return call, call.err
}

// enter notes that a rank has come to the collective call that it returns.
func (g *ranks) enter(rank int, mine []byte, f finish) (call *collective, last bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.job.life.check(); err != nil {
		return nil, false, err
	}
	if g.returned > 0 {
		g.job.life.fail(errors.New("a rank returned that others wait for in a collective call"))
		return nil, false, g.job.life.why()
	}
	call = g.call
	call.brought[rank] = mine
	if f != nil {
		call.finish = f
	}
	if g.arrived++; g.arrived < len(g.local) {
		return call, false, nil
	}
	g.arrived = 0
	g.calls++
	g.call = g.newCall()
	return call, true, nil
}

// complete ends a call that all ranks of this process have entered.
func (g *ranks) complete(call *collective) {
	defer close(call.done)
	if call.finish != nil {
		call.shared = call.finish(call.brought)
	}
	call.all = make([][]byte, len(g.world))
	if len(g.processes) == 1 {
		for r, b := range call.brought {
			call.all[r] = b
		}
		return
	}
	body, err := json.Marshal(call.brought)
	if err != nil {
		call.err = fmt.Errorf("verbs: %v: %w", err, rma.ErrTransport)
		return
	}
	parts, err := g.job.gather(fmt.Sprintf("%s#%d", g.name, g.calls), g.processes, body)
	if err != nil {
		call.err = err
		return
	}
	for _, part := range parts {
		var theirs map[int][]byte
		if err := json.Unmarshal(part, &theirs); err != nil {
			call.err = fmt.Errorf("verbs: what another process brought: %v: %w", err, rma.ErrTransport)
			return
		}
		for r, b := range theirs {
			if r >= 0 && r < len(call.all) {
				call.all[r] = b
			}
		}
	}
}

// leave notes that a rank of this process has returned.
func (g *ranks) leave(rank int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.returned++; g.arrived > 0 {
		g.job.life.fail(fmt.Errorf("rank %d returned while others wait for it in a collective call", rank))
	}
}
