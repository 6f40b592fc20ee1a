package sim_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// An instruction is a step of a random program.
type instruction struct {
	what   string
	target int
	disp   int
	v, cmp int64
	op     rma.Op
	cond   rma.Cond
}

func (i instruction) String() string {
	return fmt.Sprintf("%s(%d, %d, %v)@%d.%d %v", i.what, i.v, i.cmp, i.op, i.target, i.disp, i.cond)
}

// A program is what a few ranks do in a search. One rank more looks at the memory when
// all is over.
type program struct {
	node   []int
	words  int // far ones, of each rank
	code   [][]instruction
	homes  bool // ranks say after each instruction where they are
	faults []sim.Fault
	cpuFar bool

	ticks, crashes, rejoins, maxDelay int

	atOnce, forced bool
	early          int

	alike bool // words are on memory nodes, and ranks whose code is equal may change places
	apart bool // but they do not
}

func (p *program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "nodes %v, %d words, homes %v, faults %+v, CPUFar %v, %d ticks, %d crashes, %d rejoins\n", p.node, p.words, p.homes, p.faults, p.cpuFar, p.ticks, p.crashes, p.rejoins)
	for r, code := range p.code {
		fmt.Fprintf(&b, "rank %d: %v\n", r, code)
	}
	return b.String()
}

// randomProgram draws a program that is small enough to try everything.
func randomProgram(seed uint64) *program {
	rng := rand.New(rand.NewPCG(seed, 0xB0D1E5))
	ranks := 2 + rng.IntN(2)
	p := &program{words: 2 + rng.IntN(2), homes: rng.IntN(3) == 0, code: make([][]instruction, ranks), atOnce: seed%3 == 0}
	for r := range ranks + 1 {
		p.node = append(p.node, r*rng.IntN(2))
	}
	p.cpuFar = rng.IntN(4) == 0
	length := map[int]int{2: 5, 3: 3}[ranks]
	hosts := 1 + rng.IntN(2)
	all := []string{
		"put", "put", "get", "sum", "swap", "fao", "cas", "flush", "flush", "flushall",
		"putbulk", "getbulk", "spin", "spin", "await", "mark", "sleep", "sleep",
	}
	var kinds []string // a few of them, so that they meet
	for range 2 + rng.IntN(5) {
		kinds = append(kinds, all[rng.IntN(len(all))])
	}
	if rng.IntN(3) == 0 {
		kinds = append(kinds, "barrier")
	}
	met := 0
	for r := range p.code {
		for range 1 + rng.IntN(length) {
			i := instruction{
				what: kinds[rng.IntN(len(kinds))], target: rng.IntN(hosts), disp: rng.IntN(p.words),
				v: int64(rng.IntN(3)), cmp: int64(rng.IntN(2)), op: rma.Op(rng.IntN(3)),
				cond: rma.Cond{Rel: rma.RelNotEqual, Value: int64(rng.IntN(2))},
			}
			if strings.HasSuffix(i.what, "bulk") {
				i.disp = rng.IntN(p.words - 1)
			}
			if i.what == "barrier" {
				met++
				continue
			}
			p.code[r] = append(p.code[r], i)
		}
	}
	if met > 0 { // once, while all ranks are in the middle
		for r := range p.code {
			p.code[r] = slices.Insert(p.code[r], rng.IntN(len(p.code[r])+1), instruction{what: "barrier"})
		}
	}
	if rng.IntN(6) == 0 {
		p.faults = append(p.faults, sim.Fault{Rank: rng.IntN(ranks), Step: rng.IntN(4), For: rng.IntN(3), Lost: rng.IntN(2) == 0})
		if rng.IntN(2) == 0 {
			p.faults = append(p.faults, sim.Fault{Rank: rng.IntN(ranks), Step: rng.IntN(6), For: 1 + rng.IntN(3)})
		}
	}
	return p
}

func (p *program) search() sim.Search {
	return sim.Search{
		Node: p.node, Faults: p.faults, CPUFar: p.cpuFar, Ticks: p.ticks, TickNs: 10, Crashes: p.crashes, Rejoins: p.rejoins,
		MemoryNodes: len(p.node), MaxDelay: p.maxDelay,
		AtOnce: p.atOnce, TicksForced: p.forced, TicksEarly: p.early,
	}
}

// hazardousProgram draws a small program whose ranks look at the clock, or die, or both.
func hazardousProgram(seed uint64) *program {
	rng := rand.New(rand.NewPCG(seed, 0xDEAD))
	p := &program{words: 2, node: []int{0, 1, 1}, code: make([][]instruction, 2), homes: rng.IntN(4) == 0, forced: seed%3 == 0, early: int(seed/3) % 2}
	if rng.IntN(3) > 0 {
		p.ticks = 1 + rng.IntN(2)
	}
	if p.ticks == 0 || rng.IntN(2) == 0 {
		p.crashes = 1 + rng.IntN(2)
		p.rejoins = rng.IntN(2)
	}
	p.cpuFar = rng.IntN(6) == 0
	all := []string{"put", "get", "sum", "swap", "cas", "flush", "flush", "fence", "spin", "await", "mark", "either"}
	if p.ticks > 0 {
		all = append(all, "now", "now", "nap", "until", "until", "poll", "watch", "watch", "late")
	}
	var kinds []string
	for range 2 + rng.IntN(4) {
		kinds = append(kinds, all[rng.IntN(len(all))])
	}
	for r := range p.code {
		for range 1 + rng.IntN(3) {
			p.code[r] = append(p.code[r], instruction{
				what: kinds[rng.IntN(len(kinds))], target: rng.IntN(1 + rng.IntN(2)), disp: rng.IntN(p.words),
				v: int64(rng.IntN(3)), cmp: int64(rng.IntN(2)), op: rma.Sum,
				cond: rma.Cond{Rel: rma.RelNotEqual, Value: int64(rng.IntN(2))},
			})
		}
		if p.crashes == 0 && rng.IntN(8) == 0 {
			p.code[r] = append(p.code[r], instruction{what: "barrier"})
			p.code[1-r] = append(p.code[1-r], instruction{what: "barrier"})
			break
		}
	}
	return p
}

// outcomes runs the program under all schedules of s, and counts how executions end:
// with what the ranks read, the order of marks and the memory, or with which error.
func (p *program) outcomes(s sim.Scheduler) map[string]int {
	found := map[string]int{}
	for {
		_, f := p.search().Run(s, p.body(func(end string) { found[end]++ }))
		if f == nil {
			return found
		}
		kind := "another error: " + f.Err.Error()
		if errors.Is(f.Err, sim.ErrDeadlock) {
			kind = sim.ErrDeadlock.Error()
		}
		found[kind]++
	}
}

func (p *program) body(end func(string)) func(rma.Comm) error {
	var log []string // what the check sees
	reads := make([][]int64, len(p.node))
	return func(c rma.Comm) error {
		s, _ := sim.Of(c)
		spec := rma.CounterSpec("w", p.words)
		if p.alike {
			spec.Hosts = rma.MemoryNodes
		}
		w, err := c.Allocate(spec)
		if err != nil {
			return err
		}
		me := c.Rank()
		reads[me] = nil
		if me == 0 && s.Generation() == 0 {
			log = nil
		}
		var part rma.Comm // for barriers
		if s.Generation() == 0 {
			if part, err = c.Split(map[bool]int{true: 0, false: -1}[me < len(p.code)], 0); err != nil {
				return err
			}
		}
		if p.alike && !p.apart && me < len(p.code) {
			s.Alike(textHash(fmt.Sprint(p.code[me])))
		}
		if err := s.Begin(); err != nil {
			return err
		}
		if me == 0 {
			s.Extra(func() uint64 { return textHash(fmt.Sprint(log)) })
		}
		if me < len(p.code) {
			if reads[me], err = p.run(s, w, part, p.code[me], func(line string) { log = append(log, line) }); err != nil {
				return err
			}
		}
		if err := s.End(); err != nil {
			return err
		}
		if me == len(p.code) {
			var memory []int64
			for r := range c.Size() {
				for d := range p.words {
					v, err := w.GetFlush(r, d)
					if err != nil {
						return err
					}
					memory = append(memory, v)
				}
			}
			ends := make([]string, len(p.code)) // of the ranks
			for r, code := range p.code {
				ends[r] = fmt.Sprint(reads[r])
				if p.alike {
					ends[r] = fmt.Sprint(code, reads[r])
				}
			}
			if p.alike { // ranks in any order
				slices.Sort(ends)
			}
			end(fmt.Sprint(ends, log, memory))
		}
		return c.Barrier()
	}
}

func textHash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// run is what a rank does, and returns what it read.
func (p *program) run(s *sim.Comm, w *rma.Window, part rma.Comm, code []instruction, mark func(string)) (reads []int64, err error) {
	var open []rma.Result // by target: results that a flush will bring
	var to []int
	var bulk [][2]int64
	var bulkTo []int
	flushed := func(target int) {
		for i := 0; i < len(open); {
			if target < 0 || to[i] == target {
				reads = append(reads, w.Value(open[i]))
				open, to = slices.Delete(open, i, i+1), slices.Delete(to, i, i+1)
				continue
			}
			i++
		}
		for i := range bulk {
			if bulkTo[i] >= 0 && (target < 0 || bulkTo[i] == target) {
				reads = append(reads, bulk[i][:]...)
				bulkTo[i] = -1
			}
		}
	}
	later := func(r rma.Result, target int) { open, to = append(open, r), append(to, target) }
	bulk = make([][2]int64, 0, len(code)) // stays where it is
	for pc, i := range code {
		switch i.what {
		case "put":
			w.Put(i.v, i.target, i.disp)
		case "get":
			later(w.Get(i.target, i.disp), i.target)
		case "sum":
			w.Accumulate(i.v, i.target, i.disp, rma.Sum)
		case "swap":
			later(w.FetchAndOp(i.v, i.target, i.disp, rma.Replace), i.target)
		case "fao":
			later(w.FetchAndOp(i.v, i.target, i.disp, i.op), i.target)
		case "cas":
			later(w.CompareAndSwap(i.v, i.cmp, i.target, i.disp), i.target)
		case "putbulk":
			w.PutBulk([]int64{i.v, i.v + 1}, i.target, i.disp)
		case "getbulk":
			bulk, bulkTo = append(bulk, [2]int64{}), append(bulkTo, i.target)
			w.GetBulk(bulk[len(bulk)-1][:], i.target, i.disp)
		case "flush":
			err = w.Flush(i.target)
			flushed(i.target)
		case "flushall":
			err = w.FlushAll()
			flushed(-1)
		case "await":
			var v int64
			v, err = w.Await(i.target, i.disp, i.cond)
			reads = append(reads, v)
		case "spin":
			for try := 0; err == nil; try++ {
				var v int64
				if v, err = w.CompareAndSwapFlush(i.v, i.cmp, i.target, i.disp); v == i.cmp || err != nil {
					break
				}
				err = w.Backoff(i.target, i.disp, v, try)
			}
			flushed(i.target)
		case "fence":
			w.Fence(i.target)
		case "either":
			a, b := rma.Wait{Target: i.target, Disp: i.disp, Cond: i.cond}, rma.Wait{Target: i.target, Disp: 1 - i.disp, Cond: rma.Equal(2)}
			var which int
			var v int64
			which, v, err = w.AwaitEither(a, b, rma.Forever)
			reads = append(reads, int64(which), v)
		case "now":
			reads = append(reads, s.Now())
		case "nap":
			s.Sleep(10 * i.v)
		case "until":
			var v int64
			var held bool
			v, held, err = w.AwaitUntil(i.target, i.disp, i.cond, 10*i.v)
			if held {
				reads = append(reads, v)
			} else {
				reads = append(reads, -1)
			}
		case "poll": // until the word changes, or it is late
			for try := 0; err == nil; try++ {
				var v int64
				if v, err = w.GetFlush(i.target, i.disp); v == 1 || err != nil || s.Now() >= 10*(1+i.v) {
					reads = append(reads, v)
					break
				}
				err = w.Backoff(i.target, i.disp, v, try)
			}
			flushed(i.target)
		case "late": // the same, with the clock looked at after the pause
			for try := 0; err == nil; try++ {
				var v int64
				if v, err = w.GetFlush(i.target, i.disp); v == 1 || err != nil {
					break
				}
				if err = w.Backoff(i.target, i.disp, v, try); s.Now() >= 10*(1+i.v) {
					reads = append(reads, -2)
					break
				}
			}
			flushed(i.target)
		case "watch": // until the word has been the same for a tick
			last, since := int64(-1), int64(0)
			for try := 0; err == nil; try++ {
				var v int64
				if v, err = w.GetFlush(i.target, i.disp); v != last {
					last, since = v, s.Now()
				}
				if now := s.Now(); now-since >= 10 || err != nil {
					reads = append(reads, v, now)
					break
				}
				err = w.Backoff(i.target, i.disp, v, try)
			}
			flushed(i.target)
		case "mark":
			s.Visible()
			if p.alike {
				mark(fmt.Sprint(pc, reads))
			} else {
				mark(fmt.Sprint(s.Rank(), ":", pc, reads))
			}
		case "sleep":
			s.Sleep(1)
		case "barrier": // and tell the others what was read last
			last := int64(-1)
			if len(reads) > 0 {
				last = reads[len(reads)-1]
			}
			var all []int64
			if all, err = part.Allgather([]int64{last}); err == nil {
				reads = append(reads, all...)
			}
		}
		if err != nil {
			return nil, err
		}
		if p.homes {
			s.Home(func() uint64 { return uint64(pc) + textHash(fmt.Sprint(reads))&^7 }) // numbers next to each other
		}
	}
	return reads, nil
}

// plain goes through all schedules without any reduction: all that a bound on
// preemptions permits, or all.
type plain struct {
	bound  int     // negative for none
	left   int     // executions
	frames [][]int // what is left to choose from, the present choice first
	used   int     // preemptions
	begun  bool
}

func (x *plain) Begin() bool {
	x.left--
	x.used = 0
	if !x.begun {
		x.begun = true
		return true
	}
	return len(x.frames) > 0 && x.left >= 0
}

func (x *plain) Next(s *sim.State) int {
	goesOn := slices.ContainsFunc(s.Steps, func(k sim.Step) bool { return k.Rank == s.Last && k.Must && k.Kind <= sim.StepLimit })
	free := func(k sim.Step) bool { return !goesOn || k.Rank == s.Last || k.Kind > sim.StepLimit }
	if s.Depth == len(x.frames) {
		var options []int
		for i, k := range s.Steps {
			if !k.Idle && (x.bound < 0 || free(k) || x.used < x.bound) {
				options = append(options, i)
			}
		}
		x.frames = append(x.frames, options)
	}
	i := x.frames[s.Depth][0]
	if !free(s.Steps[i]) {
		x.used++
	}
	return i
}

func (x *plain) End(bool) {
	for n := len(x.frames) - 1; n >= 0; n-- {
		if x.frames[n] = x.frames[n][1:]; len(x.frames[n]) > 0 {
			return
		}
		x.frames = x.frames[:n]
	}
}

// differ says which outcomes only one side has. Where there is an error the search is
// through: it need not come to what an execution with another end would do next.
func differ(all, some map[string]int) string {
	var b strings.Builder
	failed := func(m map[string]int) bool { return m[sim.ErrDeadlock.Error()] > 0 }
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if some[k] == 0 && !failed(some) {
			fmt.Fprintf(&b, "missed: %s\n", k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(some)) {
		if all[k] == 0 {
			fmt.Fprintf(&b, "invented: %s\n", k)
		}
	}
	return b.String()
}
