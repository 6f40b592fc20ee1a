package bench

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rmalock/rmalock/btree"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/sim"
	"github.com/rmalock/rmalock/topo"
)

// A Machine is a model of a machine for runs in virtual time.
type Machine interface {
	Name() string  // as LoadMachine takes it
	About() string // a description in one line
	// Weak lists the constants that are known as a range only.
	Weak() []Constant
	// With returns the machine with another value of a weak constant.
	With(constant string, value float64) (Machine, error)
	// Model returns a new model, for one run of v whose choices follow a seed.
	Model(v *Virtual, seed uint64) (sim.Model, error)
}

// A Constant is a weak constant of a machine.
type Constant struct {
	Name  string  `json:"name"`           // as Machine.With takes it
	Unit  string  `json:"unit,omitempty"` // empty for none
	Low   float64 `json:"low"`            // least plausible value
	Value float64 `json:"value"`          // without Band
	High  float64 `json:"high"`           // greatest plausible value
}

// Virtual is a job in virtual time: any number of ranks in this process, on a model
// of a machine. Equal seeds give equal results, whatever the computer.
//
// A Config with neither Duration nor Acquires runs for 5 ms, or 20 us per rank if that is more.
// That is some ten acquires of each rank when one takes 2 us and all want one lock. It ends at
// 1,000 acquires per rank if that is sooner, as with readers that do not delay each other. In mode
// dht each rank does 100 operations.
type Virtual struct {
	// Topology has the place of each rank. Those of one element of the level node share
	// memory; without such a level, all do.
	Topology *topo.Topology
	Machine  Machine // model of the machine
	// MemoryNodes is the number of memory nodes. Each has a machine of its own, or, if they are
	// Colocated, the n-th is on the ranks' n-th node, from the first again where they are more.
	MemoryNodes int
	Colocated   bool
	// Verbs prices windows as on InfiniBand verbs, and not as on MPI (sim.Timed.Verbs). Flights
	// are then up to 10 % shorter or longer, at random.
	Verbs bool
	// MaskedSwap says that with Verbs a swap, whole or masked, is one operation
	// (sim.Timed.MaskedSwap). The machine's card must have it.
	MaskedSwap bool
	// Messages and Device are names of windows: mailboxes, whose Puts are messages, and those in
	// the memory of NICs (sim.Timed.Messages).
	Messages, Device []string
	// Loopback are names of locks whose ranks reach the words of their own node through the NIC
	// (sim.Timed.Loopback).
	Loopback []string
	// Servers are ranks whose CPU takes serverNs for each message.
	Servers []int
	// QPs says which ranks share connections.
	QPs QPs
	// Coroutines is the number of ranks, one after the other on a node, that are coroutines of
	// one core; 0 for ranks with a core each.
	Coroutines int
	// RankDelay is by how much longer an operation on a rank of another node is on its way, each way,
	// than the machine says: one on a memory node is not.
	RankDelay time.Duration
	// NodeStop stops the ranks of the last node for a time, and MemoryStop all memory nodes: what
	// arrives there waits. A Result then has the visits of each ms (mode clients).
	NodeStop, MemoryStop Stop
	// Band adds two runs for each weak constant, with the ends of its range.
	Band bool
	// PauseFirst and PauseLast are the pauses between two polls of a far word, doubling.
	// Both 0 means 1 us to 100 us, as in package rma/mpi, and no pauses with Verbs.
	PauseFirst, PauseLast time.Duration
	// Progress, if not nil, is called now and then with the share that is done, 0 to 1.
	Progress func(done float64)
}

// QPs says which ranks share connections, each of which leads to a node.
type QPs string

// The ways to share connections.
const (
	PerThread     QPs = "thread"      // each rank has its own; the default
	PerThreadPair QPs = "thread-pair" // each rank has one with each rank and memory node
	PerCore       QPs = "core"        // the coroutines of a core share them
	PerProcess    QPs = "process"     // the ranks of a node share them
)

// AllQPs lists the ways to share connections.
func AllQPs() []QPs { return []QPs{PerThread, PerThreadPair, PerCore, PerProcess} }

const (
	virtualDuration = 5 * time.Millisecond
	virtualPerRank  = 20 * time.Microsecond
	virtualAcquires = 1000 // per rank
	virtualDHT      = 100

	pauseFirst = time.Microsecond
	pauseLast  = 100 * time.Microsecond

	// tooLong ends a run in which ranks block each other for ever.
	tooLong = 1000 * time.Second
)

// Run measures a lock.
func (v Virtual) Run(cfg Config) (*Result, error) {
	limit := int64(math.MaxInt64)
	if cfg.Duration == 0 && cfg.Acquires == 0 {
		if cfg.Mode == DHT {
			cfg.Acquires = virtualDHT
		} else {
			cfg.Duration = max(virtualDuration, virtualPerRank*time.Duration(v.Topology.Size()))
			limit = virtualAcquires * int64(v.Topology.Size())
		}
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := v.Validate(); err != nil {
		return nil, err
	}
	if v.PauseFirst == 0 && v.PauseLast == 0 && !v.Verbs {
		v.PauseFirst, v.PauseLast = pauseFirst, pauseLast
	}
	machines := []Machine{v.Machine}
	if v.Band {
		for _, c := range v.weak(v.Machine) {
			for _, value := range []float64{c.Low, c.High} {
				if value == c.Value {
					continue
				}
				m, err := v.Machine.With(c.Name, value)
				if err != nil {
					return nil, fmt.Errorf("%s with %s of %g: %w", v.Machine.Name(), c.Name, value, err)
				}
				machines = append(machines, m)
			}
		}
	}
	results, err := v.runAll(machines, cfg, limit)
	if err != nil {
		return nil, err
	}
	res := results[0]
	if v.Band {
		res.Band = &Band{}
		for _, r := range results {
			res.Band.widen(r)
		}
	}
	return res, nil
}

// Validate reports what is wrong with a job, its topology and machine excepted. An error wraps
// ErrConfig.
func (v *Virtual) Validate() error {
	switch {
	case v.MemoryNodes < 0:
		return fmt.Errorf("%d memory nodes, want 0 or more: %w", v.MemoryNodes, ErrConfig)
	case v.Coroutines < 0:
		return fmt.Errorf("%d coroutines a core, want 0 for none or more: %w", v.Coroutines, ErrConfig)
	case v.MaskedSwap && !v.Verbs:
		return fmt.Errorf("a masked swap is of verbs, and without them every swap is one operation: %w", ErrConfig)
	case len(v.Loopback) > 0 && !v.Verbs:
		return fmt.Errorf("loopback is of verbs: %w", ErrConfig)
	case v.RankDelay < 0 || min(v.NodeStop.At, v.NodeStop.For, v.MemoryStop.At, v.MemoryStop.For) < 0:
		return fmt.Errorf("a delay of %v and stops of %v and %v, want no time less than 0: %w", v.RankDelay, v.NodeStop, v.MemoryStop, ErrConfig)
	case v.QPs != "" && !slices.Contains(AllQPs(), v.QPs):
		return fmt.Errorf("connections per %q, want per one of %v: %w", v.QPs, AllQPs(), ErrConfig)
	}
	return nil
}

// weak are the weak constants of a machine that have a part in the job.
func (v *Virtual) weak(m Machine) []Constant {
	return slices.DeleteFunc(m.Weak(), func(c Constant) bool {
		return c.Name == "switchNs" && v.Coroutines < 2 || c.Name == "serverNs" && len(v.Servers) == 0
	})
}

// runAll makes a run on each machine, as many at once as there are processors, which the
// runs do not notice.
func (v Virtual) runAll(machines []Machine, cfg Config, limit int64) ([]*Result, error) {
	results := make([]*Result, len(machines))
	errs := make([]error, len(machines))
	shares := make([]float64, len(machines))
	var mu sync.Mutex
	turn := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i, m := range machines {
		wg.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			results[i], errs[i] = v.runOn(m, cfg, limit, func(share float64) {
				if v.Progress == nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				shares[i] = max(shares[i], share)
				sum := 0.0
				for _, s := range shares {
					sum += s
				}
				v.Progress(sum / float64(len(shares)))
			})
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return results, nil
}

// runOn makes a run of no more than limit acquires or so.
func (v Virtual) runOn(m Machine, cfg Config, limit int64, progress func(float64)) (*Result, error) {
	model, err := m.Model(&v, cfg.Seed)
	if err != nil {
		return nil, err
	}
	p := &virtualRun{ps: samples{}, byLock: lockSamples{}, releases: samples{}, limit: limit, stops: v.NodeStop != Stop{} || v.MemoryStop != Stop{}}
	cfg.virtual, cfg.Topology = p, v.Topology
	t := sim.Timed{
		Node: nodes(v.Topology), MemoryNodes: v.MemoryNodes, Model: v.disturb(model), Faults: v.faults(), Verbs: v.Verbs, MaskedSwap: v.MaskedSwap,
		Messages: v.Messages, Device: v.Device,
		PauseFirst: int64(v.PauseFirst), PauseLast: int64(v.PauseLast), MaxTime: int64(tooLong),
	}
	if name, _, _ := strings.Cut(cfg.Lock, ":"); slices.Contains(v.Loopback, name) {
		t.Loopback = []string{name} // a lock's window has its name
	}
	t.Tick = func(now int64) error {
		share := float64(p.done) / float64(p.limit)
		if cfg.Acquires > 0 {
			share = float64(p.done) / (float64(cfg.Acquires) * float64(v.Topology.Size()))
		} else {
			share = max(share, float64(now)/float64(cfg.Duration))
		}
		progress(min(share, 1))
		return nil
	}
	var res *Result
	elapsed, err := t.Run(func(c rma.Comm) error {
		r, err := Run(c, cfg)
		if c.Rank() == 0 {
			res = r
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	res.Machine, res.About, res.Weak, res.Operations = m.Name(), m.About(), v.weak(m), elapsed.Operations
	res.MemoryNodes, res.RankDelay = v.MemoryNodes, int64(v.RankDelay)
	return res, nil
}

// nodes is the node of each rank.
func nodes(t *topo.Topology) []int {
	node := make([]int, t.Size())
	if level, ok := t.Find("node"); ok {
		for r := range node {
			node[r] = t.Element(r, level)
		}
	}
	return node
}

// virtualRun is shared by the ranks of a run in virtual time. One of them runs at a time.
type virtualRun struct {
	ps        samples     // of all ranks
	byRank    []samples   // of each rank, in mode clients instead
	byLock    lockSamples // of all ranks
	releases  samples     // of all ranks
	stops     bool        // something stops, so that there is a timeline
	timeline  []int64     // measured visits that ended in each ms of virtual time
	tally     hook.Tally
	measuring bool
	before    sim.Elapsed // the measurement
	done      int64       // acquires, of the warm-up or of the measurement
	limit     int64       // of done
	cache     *btree.Cache
}

// begin is called by each rank that leaves the barrier before the measurement.
func (p *virtualRun) begin(c rma.Comm) {
	if !p.measuring {
		p.measuring = true
		p.before = elapsed(c)
		p.tally.Reset()
		p.done = 0
	}
}

// elapsed is what the simulation has done so far.
func elapsed(c rma.Comm) sim.Elapsed {
	s, _ := sim.Of(c)
	return s.Elapsed()
}

// count counts acquires and reports whether there are enough. A rank outside of
// virtual time has no pool, and has never enough.
func (p *virtualRun) count(n int) bool {
	if p == nil {
		return false
	}
	p.done += int64(n)
	if p.measuring {
		return p.done >= p.limit
	}
	return p.done >= p.limit/10
}

// run is Run in virtual time. Counting and recording take none, so the operations
// are those of the measurement itself.
func (p *virtualRun) run(c rma.Comm, lck *Lock, cfg *Config) (*Result, error) {
	w, err := open(c, hook.Count(c, &p.tally), lck, cfg)
	if err != nil {
		return nil, err
	}
	m := &measurement{ps: p.own(c, cfg)}
	if err := m.measure(c, w, cfg); err != nil {
		return nil, err
	}
	found, traffic := p.tally, elapsed(c).Minus(p.before)
	sums, err := c.Allgather([]int64{m.acquires, m.spanNs, m.busyNs, m.insideNs, m.visits, m.aborts})
	if err != nil {
		return nil, err
	}
	if err := w.verify(); err != nil {
		return nil, err
	}
	if err := w.free(); err != nil || c.Rank() != 0 {
		return nil, err
	}
	res := newResult(c, cfg, lck)
	res.Simulated, res.Cores = true, c.Size() // the model has a core for each
	for _, s := range p.byRank {
		p.ps.add(s)
	}
	res.KV = m.kv
	res.gather(sums, 6, p.byRank, p.ps, p.byLock, cfg.Duration > 0)
	res.released(p.releases)
	res.tableCounts(m.counts)
	res.PerMs = p.timeline
	res.count(&opCounts{acquires: res.Acquires, sum: found})
	res.Network = network(&traffic, res.Acquires)
	res.Polls = res.Network["poll.rank"] + res.Network["poll.memory"]
	return res, nil
}

// network is the operations per acquire that went through a network, without zeros: by kind and
// host, as in "Get.memory" and "FetchAndOp.rank", and polls and messages apart.
func network(e *sim.Elapsed, acquires int64) map[string]float64 {
	per := map[string]float64{}
	add := func(name string, n int64) {
		if n > 0 {
			per[name] = float64(n) / float64(acquires)
		}
	}
	for host, t := range map[string]*sim.Traffic{"rank": &e.Ranks, "memory": &e.Memory} {
		for k, n := range t.Kinds {
			add(rma.Kind(k).String()+"."+host, n)
		}
		add("poll."+host, t.Polls)
	}
	add("message", e.Messages)
	return per
}

// own is where a rank records.
func (p *virtualRun) own(c rma.Comm, cfg *Config) samples {
	if cfg.Mode != Clients {
		return p.ps
	}
	if p.byRank == nil {
		p.byRank = make([]samples, c.Size())
	}
	p.byRank[c.Rank()] = samples{}
	return p.byRank[c.Rank()]
}
