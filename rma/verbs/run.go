//go:build cgo && verbs

package verbs

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rmalock/rmalock/rma"
)

// Run runs f as n ranks of this process, with the memory nodes and other processes that
// [FromEnvironment] finds.
func Run(n int, f func(rma.Comm) error) error {
	cfg, err := FromEnvironment()
	if err != nil {
		return err
	}
	return cfg.Run(n, f)
}

// Run runs f as n ranks of this process and returns when all have returned: nil if all did so
// with nil, else the errors of the ranks that failed first, each with its rank. All processes of
// the job call it with the same n; their ranks are numbered by process. A panic of a rank stops the
// others and is raised again here.
func (cfg Config) Run(n int, f func(rma.Comm) error) error {
	if err := cfg.check(n); err != nil {
		return err
	}
	cfg.Job = fmt.Sprintf("%s/%d", cfg.Job, runs.Add(1))
	j, err := openJob(cfg, n)
	if err != nil {
		return err
	}
	errs := make([]error, n)
	var panicked atomic.Pointer[any]
	var all sync.WaitGroup
	for r := range n {
		all.Go(func() {
			returned := false
			defer func() {
				if p := recover(); p != nil {
					panicked.CompareAndSwap(nil, &p)
					errs[r] = fmt.Errorf("panic: %v", p)
				} else if !returned {
					errs[r] = errors.New("the rank's goroutine ended without returning (runtime.Goexit, or FailNow of a test)")
				}
				j.leave(cfg.Process*n+r, errs[r])
			}()
			errs[r] = f(&comm{g: j.all, rank: cfg.Process*n + r})
			returned = true
		})
	}
	all.Wait()
	end := j.end()
	if p := panicked.Load(); p != nil {
		panic(*p)
	}
	return errors.Join(summary(cfg.Process*n, errs), end)
}

// runs counts this process's Runs. All processes of a job make the same ones, and a Run may begin
// at one of them before the memory node has seen the end of the one before.
var runs atomic.Int64

// summary joins what went wrong first, without the ranks that only suffered.
func summary(first int, errs []error) error {
	var own, peers []error
	for r, err := range errs {
		switch {
		case err == nil:
		case errors.Is(err, rma.ErrPeer):
			peers = append(peers, fmt.Errorf("rank %d: %w", first+r, err))
		default:
			own = append(own, fmt.Errorf("rank %d: %w", first+r, err))
		}
	}
	if len(own) > 0 {
		return errors.Join(own[:min(len(own), 8)]...)
	}
	return errors.Join(peers[:min(len(peers), 1)]...)
}

var started = time.Now()

// monotonic is the time of this process.
func monotonic() int64 { return int64(time.Since(started)) }

// A job is one Run in this process.
type job struct {
	cfg        Config
	perProcess int
	nodes      []*node // that this process is; without a device they are nil
	life       *life
	all        *ranks
	text       string
	id         string // of the job, at the memory nodes

	mu   sync.Mutex
	made map[string]*ranks // communicators of Split, by name

	gone    map[int]bool      // processes that ended before their time
	reached map[int][]*target // the nodes of each process
}

// openJob connects the process to the memory nodes and to the other processes.
func openJob(cfg Config, n int) (*job, error) {
	j := &job{cfg: cfg, perProcess: n, nodes: make([]*node, cfg.Nodes), life: newLife(), id: rand.Text(), text: "verbs"}
	j.made, j.gone, j.reached = map[string]*ranks{}, map[int]bool{}, map[int][]*target{}
	world := make([]int, n*cfg.Processes)
	for r := range world {
		world[r] = r
	}
	j.all = newRanks(j, "all", world)
	if len(cfg.MemoryNodes) == 0 && len(j.all.nodes) == 1 {
		j.text += ", one process without a device"
		return j, nil
	}
	for i := range j.nodes {
		var err error
		if j.nodes[i], err = openNode(&cfg, j.lose); err != nil {
			return nil, errors.Join(err, j.close())
		}
	}
	j.text += ", " + j.nodes[0].nic.text + ", " + strconv.Itoa(len(cfg.MemoryNodes)) + " memory node(s), " + strconv.Itoa(len(j.all.nodes)) + " compute node(s)"
	if err := j.introduce(); err != nil {
		return nil, errors.Join(err, j.close())
	}
	return j, nil
}

// introduce makes the pairs between the nodes of the job, and learns the byte order of atomics.
func (j *job) introduce() error {
	if j.cfg.Processes > 1 {
		_, err := j.nodes[0].controls[0].call(request{Call: callJob, Name: j.cfg.Job, Index: j.cfg.Process, Count: j.cfg.Processes}, controlLimit)
		if err != nil {
			return err
		}
	}
	nodes := len(j.all.nodes)
	if nodes > 1 {
		if err := j.mesh(nodes); err != nil {
			return err
		}
	}
	for _, n := range j.nodes {
		if err := n.probe(); err != nil {
			return err
		}
	}
	return nil
}

// mesh makes a pair between every two nodes, and one of each node with itself: its own words of
// class Far are the device's too.
func (j *job) mesh(nodes int) error {
	mine := make(map[int][]*address, len(j.nodes))
	for i, n := range j.nodes {
		to := make([]*address, nodes)
		for k := range nodes {
			p, err := n.nic.newPair()
			if err != nil {
				return err
			}
			n.targets = append(n.targets, j.target(k, p))
			to[k] = n.nic.address(p)
		}
		n.self = n.targets[len(j.cfg.MemoryNodes)+j.firstNode()+i]
		mine[j.firstNode()+i] = to
	}
	theirs, err := j.exchange("addresses", mine)
	if err != nil {
		return err
	}
	for i, n := range j.nodes {
		for k := range nodes {
			if len(theirs[k]) != nodes || theirs[k][j.firstNode()+i] == nil {
				return fmt.Errorf("verbs: node %d gives no address to node %d: %w", k, j.firstNode()+i, rma.ErrMismatch)
			}
			if err := n.nic.connect(n.targets[len(j.cfg.MemoryNodes)+k].pair, theirs[k][j.firstNode()+i]); err != nil {
				return err
			}
		}
	}
	_, err = j.exchange("connected", nil) // no operation goes to an end that is not there yet
	return err
}

// target is a node of the job.
func (j *job) target(k int, p pair) *target {
	process := k / j.cfg.Nodes
	t := &target{name: fmt.Sprintf("node %d of the job", k), pair: p, lost: func() error {
		j.mu.Lock()
		defer j.mu.Unlock()
		if !j.gone[process] {
			return nil
		}
		return fmt.Errorf("process %d of the job is gone: %w", process, rma.ErrPeer)
	}}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reached[process] = append(j.reached[process], t)
	return t
}

// lose ends what waits for a process that is gone: collective calls, and steps at its nodes.
func (j *job) lose(process int) {
	j.life.fail(fmt.Errorf("process %d of the job is gone", process))
	j.mu.Lock()
	j.gone[process] = true
	reached := j.reached[process]
	j.mu.Unlock()
	for _, t := range reached {
		t.breakOff()
	}
}

// exchange tells all processes what each brings.
func (j *job) exchange(what string, mine map[int][]*address) (map[int][]*address, error) {
	if j.cfg.Processes == 1 {
		return mine, nil
	}
	body, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	parts, err := j.gather(what, j.all.processes, body)
	if err != nil {
		return nil, err
	}
	all := map[int][]*address{}
	for _, part := range parts {
		if err := json.Unmarshal(part, &all); err != nil {
			return nil, fmt.Errorf("verbs: what another process brought: %v: %w", err, rma.ErrTransport)
		}
	}
	return all, nil
}

// gather is a collective call between processes, at the first memory node.
func (j *job) gather(name string, processes []int, mine []byte) ([][]byte, error) {
	for i, p := range processes {
		if p == j.cfg.Process {
			r, err := j.nodes[0].controls[0].call(request{Call: callGather, Name: name, Index: i, Count: len(processes), Data: mine}, 0)
			if err != nil {
				return nil, err
			}
			return r.All, nil
		}
	}
	return nil, fmt.Errorf("verbs: process %d is not of group %q: %w", j.cfg.Process, name, rma.ErrMismatch)
}

// nodeOf is the number of the node of a rank of the job.
func (j *job) nodeOf(world int) int { return world / (j.perProcess / j.cfg.Nodes) }

// firstNode is the number of the first node of this process.
func (j *job) firstNode() int { return j.cfg.Process * j.cfg.Nodes }

// localNode is the node of a rank of this process.
func (j *job) localNode(world int) *node { return j.nodes[j.nodeOf(world)-j.firstNode()] }

// shared is the communicator that ranks of this process have in common.
func (j *job) shared(name string, world []int) *ranks {
	j.mu.Lock()
	defer j.mu.Unlock()
	g := j.made[name]
	if g == nil {
		g = newRanks(j, name, world)
		j.made[name] = g
	}
	return g
}

// leave notes that a rank has returned. No rank may wait for it in a collective call.
func (j *job) leave(world int, err error) {
	if err != nil {
		j.life.fail(fmt.Errorf("rank %d failed: %v", world, err))
		return
	}
	j.all.leave(world)
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, g := range j.made {
		for _, r := range g.local {
			if g.world[r] == world {
				g.leave(r)
			}
		}
	}
}

// end closes the job once all processes are through: until then they may use each other's words.
func (j *job) end() error {
	var err error
	if j.life.check() == nil && j.cfg.Processes > 1 {
		if _, err = j.gather("end", j.all.processes, nil); err == nil {
			_, err = j.nodes[0].controls[0].call(request{Call: callDone}, controlLimit)
		}
	}
	return errors.Join(err, j.close())
}

// close gives everything back.
func (j *job) close() error {
	var errs []error
	for _, n := range j.nodes {
		if n != nil {
			errs = append(errs, n.close())
		}
	}
	return errors.Join(errs...)
}
