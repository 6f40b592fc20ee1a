package check

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// A Site is a place in a lock's code, as the lock's windows see it: a kind of step,
// and the step before, which tells two branches apart.
type Site struct {
	Phase  Phase
	Mode   lock.Mode
	Step   string // "Put dmcs.WAIT own"
	Before string // the step before in the same phase; "" for the first
}

func (s Site) String() string {
	text := s.Phase.String()
	if s.Mode == lock.Shared {
		text += " shared"
	}
	text += ": " + s.Step
	if s.Before != "" {
		text += ", after " + s.Before
	}
	return text
}

// A Mutation is a mistake that can be made at a Site.
type Mutation uint8

const (
	// Forget: an operation without a result is not issued.
	Forget Mutation = iota
	// NoFlush: the call of Flush is left out. Results that it would have completed are
	// 0 to the lock, as in a buffer that was never written; operations stay pending
	// until the next Flush of their target, as they would in MPI, and perhaps for ever.
	NoFlush
	// Late: an operation without a result, and its Flush, come after the flush that
	// follows them.
	Late
	// Torn: an atomic operation is a Get and a Put, each flushed.
	Torn
	// Blind: a CompareAndSwap or MaskedSwap replaces whatever the word holds.
	Blind
	// Trusting: the result of a CompareAndSwap or MaskedSwap is taken for a success.
	Trusting
	// NoWait: an Await returns the present value.
	NoWait
	// AnyChange: an Await of what does not hold ends with the word's next change.
	AnyChange
	// NoFence: an operation that follows a Fence does not.
	NoFence
	mutations
)

func (m Mutation) String() string {
	return [...]string{"is forgotten", "is left out", "comes after the next flush", "is torn", "is blind", "is taken for a success", "does not wait", "ends at any change", "has no fence before it", "nothing"}[m]
}

// A Mutant is a lock with one mistake.
type Mutant struct {
	Site     Site
	Mutation Mutation
	bare     bool // sites are told apart by word and not by the distance of its rank
}

func (m Mutant) String() string { return m.Site.String() + ": " + m.Mutation.String() }

// recording is what a lock's steps were.
type recording struct {
	bare     bool                   // steps are named without distances
	sites    map[Site]rma.Operation // the operation of the steps that issue one
	steps    map[Site]stepKind
	followed map[Site]bool // an operation without a result: is its flush always followed by another
}

func newRecording(bare bool) *recording {
	return &recording{bare: bare, sites: map[Site]rma.Operation{}, steps: map[Site]stepKind{}, followed: map[Site]bool{}}
}

// add adds what another recording has.
func (rec *recording) add(one *recording) {
	maps.Copy(rec.sites, one.sites)
	maps.Copy(rec.steps, one.steps)
	for site, is := range one.followed {
		was, ok := rec.followed[site]
		rec.followed[site] = is && (was || !ok)
	}
}

// places are what plans without a mistake were seen to do, so that each is run once for all mutants.
type places struct {
	mutex sync.Mutex
	known map[string]*recording
}

// of records the steps of a plan under schedules. which is the number of the plan's Info: several may
// have one name.
func (l *places) of(bare bool, which int, p Plan, schedules []sim.Scheduler) (*recording, error) {
	key := fmt.Sprint(which, bare, p.Ranks, p.Acquires, p.Writers, p.Seed, p.Tries, p.Topology, p.Crashes, p.Pace, len(schedules))
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if rec := l.known[key]; rec != nil {
		return rec, nil
	}
	rec := newRecording(bare)
	p.Disturb = inject(nil, rec)
	for _, s := range schedules {
		r, err := Run(p, s)
		if err != nil {
			return nil, err
		}
		if r.Failure != nil {
			return nil, fmt.Errorf("check: %s without a mutation: %w", p.Info.Name, r.Failure)
		}
	}
	if l.known == nil {
		l.known = map[string]*recording{}
	}
	l.known[key] = rec
	return rec, nil
}

var (
	threeNodes = machine("node:3")
	twoNodes   = machine("node:2 core:2")
)

// candidate is a plan for mutants: one of many that differ in the modes, in which acquires are
// tries, and in whether ranks share a node. For a lock that recovers the clock advances, and in
// one in three a rank dies.
func (e *Effort) candidate(info lock.Info, ranks int, k uint64) Plan {
	p := Plan{Info: info, Ranks: ranks, Acquires: 2, Writers: Mixed, Seed: k / 2, Tries: k%2 == 1, MaxSteps: 5000, uncounted: true}
	if k/2 == 0 {
		p.Writers = ranks
	}
	switch {
	case k/2%2 == 0:
	case ranks == 3:
		p.Topology = threeNodes
	case ranks == 4:
		p.Topology = twoNodes
	}
	if info.Recovers { // its lock is at home on memory nodes, and its mistakes need time
		p.MemoryNodes, p.Ticks, p.MaxDelay, p.Crashes = 1, 12, 1, int(k/2%3/2)
	}
	if e.Change != nil {
		e.Change(&p)
	}
	return p
}

// Mutants lists the mutants of a lock: it runs the lock's code under some schedules
// and sees where mistakes could be made. A lock that can be used in several ways has an
// Info for each. With distances, places are told apart by whose word is touched: the
// rank's own, one of its node, or a far one. These are two or three times as many.
func Mutants(distances bool, infos ...lock.Info) ([]Mutant, error) {
	return (&Effort{Distances: distances, places: &places{}}).mutants(infos)
}

func (e *Effort) mutants(infos []lock.Info) ([]Mutant, error) {
	rec := newRecording(!e.Distances)
	for which, info := range infos {
		for ranks := 2; ranks <= 4; ranks++ {
			for _, p := range e.surveyed(info, ranks) {
				one, err := e.places.of(rec.bare, which, p, surveying())
				if err != nil {
					return nil, err
				}
				rec.add(one)
			}
		}
	}
	return rec.mutants(), nil
}

// mutants are the mistakes that can be made in the steps.
func (rec *recording) mutants() (out []Mutant) {
	for site, kind := range rec.steps {
		for _, m := range rec.mutations(site, kind) {
			out = append(out, Mutant{site, m, rec.bare})
		}
	}
	slices.SortFunc(out, func(a, b Mutant) int {
		return cmp.Or(cmp.Compare(a.Site.Phase, b.Site.Phase), cmp.Compare(a.Site.Mode, b.Site.Mode),
			strings.Compare(a.Site.Before, b.Site.Before), strings.Compare(a.Site.Step, b.Site.Step), cmp.Compare(a.Mutation, b.Mutation))
	})
	return out
}

// surveyed are the plans by which Mutants looks for places, and surveying the schedules.
func (e *Effort) surveyed(info lock.Info, ranks int) (out []Plan) {
	plans := uint64(4)
	if info.Recovers {
		plans = 6 // two with a death
	}
	for k := range plans {
		p := e.candidate(info, ranks, k)
		p.Acquires = 4
		out = append(out, p)
	}
	return out
}

func surveying() []sim.Scheduler {
	return []sim.Scheduler{sim.Random(1, 0, 100), sim.PCT(1, 3, 0, 100)}
}

// mutations are those that make sense at a site.
func (rec *recording) mutations(site Site, kind stepKind) []Mutation {
	switch kind {
	case flushStep:
		return []Mutation{NoFlush}
	case awaitStep:
		return []Mutation{NoWait, AnyChange}
	case backoffStep: // nothing depends on it
		return nil
	case issueStep:
	}
	o := rec.sites[site]
	var out []Mutation
	if !resulting(o.Kind) {
		out = append(out, Forget)
		if rec.followed[site] {
			out = append(out, Late)
		}
	}
	if o.Epoch > 0 {
		out = append(out, NoFence)
	}
	if tearable(&o) {
		out = append(out, Torn)
	}
	if o.Kind == rma.KindCompareAndSwap || o.Kind == rma.KindMaskedSwap && o.CompareMask != 0 {
		out = append(out, Blind, Trusting)
	}
	return out
}

// resulting reports whether an operation has a result that the lock may need.
func resulting(k rma.Kind) bool {
	switch k {
	case rma.KindGet, rma.KindGetBulk, rma.KindFetchAndOp, rma.KindCompareAndSwap, rma.KindMaskedSwap:
		return true
	case rma.KindPut, rma.KindPutBulk, rma.KindAccumulate:
	}
	return false
}

// tearable reports whether an operation reads a word and writes it.
func tearable(o *rma.Operation) bool {
	switch o.Kind {
	case rma.KindCompareAndSwap, rma.KindMaskedSwap:
		return true
	case rma.KindFetchAndOp:
		return o.Op != rma.NoOp
	case rma.KindAccumulate:
		return o.Op == rma.Sum
	case rma.KindPut, rma.KindGet, rma.KindPutBulk, rma.KindGetBulk:
	}
	return false
}

// A Verdict is what became of a Mutant.
type Verdict struct {
	Mutant
	Err        error  // what caught it; nil if nothing did
	By         string // the scheduler
	Ranks      int
	Executions int64 // of all searches until it was caught
	Applied    int64 // times that the mistake was made
	effort     *Effort
}

// Kind names what caught the mutant in a word or two.
func (v *Verdict) Kind() string {
	var panics *sim.PanicError
	for _, k := range []struct {
		err  error
		text string
	}{
		{ErrExclusion, "exclusion"}, {ErrStarved, "bypass"}, {ErrCost, "cost"}, {ErrIdle, "not idle"}, {ErrGuarded, "guarded data"}, {ErrTry, "failed try"},
		{sim.ErrDeadlock, "deadlock"}, {sim.ErrEndless, "livelock"}, {sim.ErrFlag, "two writers of a flag"},
		{sim.ErrCarry, "carry"}, {ErrWaits, "waits"}, {ErrTaken, "taken for dead"}, {ErrMore, "counts"}, {ErrUntold, "not told"}, {ErrLease, "lease"}, {ErrStalled, "stalled"},
		{rma.ErrPending, "too many pending"}, {rma.ErrRank, "bad rank"}, {rma.ErrDisp, "bad word"},
	} {
		if errors.Is(v.Err, k.err) {
			return k.text
		}
	}
	switch {
	case v.Err == nil:
		return "survives"
	case errors.As(v.Err, &panics):
		return "panic"
	case operations[v.Site.Phase] != "":
		return summary(v.Err)
	}
	return "error"
}

// trial is a way of searching for a mutant.
type trial struct {
	ranks int
	by    string
	share int64 // of the budget, in hundredths
	more  int   // acquires of each rank beyond those of the candidate
	alone bool  // one writer
}

// trials go from short to long. Executions of dfs take a hundredth of the time of others.
var trials = []trial{
	{2, "dfs", 100, 0, false}, {3, "pct", 5, 0, false}, {3, "random", 5, 0, false}, {4, "pct", 10, 0, false}, {4, "random", 10, 0, false},
	{3, "dfs", 3000, 0, false}, {4, "pct", 50, 0, false}, {4, "random", 50, 0, false},
	{2, "pct", 20, 12, true}, {3, "random", 50, 3, false}, {4, "pct", 25, 4, false}, {4, "random", 25, 4, false},
}

// drawn are the trials of Effort.Drawn.
var drawn = []trial{
	{2, "dfs", 100, 0, false}, {3, "pct", 20, 0, false}, {3, "random", 20, 0, false}, {4, "pct", 20, 0, false}, {4, "random", 20, 0, false}, {2, "random", 20, 2, false},
	{2, "random", 100, 4, false}, {2, "pct", 100, 4, false}, {3, "random", 100, 2, false}, {3, "pct", 100, 2, false}, {4, "random", 100, 0, false}, {4, "pct", 50, 0, false},
}

func (t *trial) scheduler(executions int64) sim.Scheduler {
	switch t.by {
	case "pct":
		return sim.PCT(1, 3, 0, executions)
	case "random":
		return sim.Random(1, 0, executions)
	}
	x := sim.Exhaustive(sim.Unbounded)
	x.Limit = executions
	return x
}

// Of so many candidates, so many are searched at most: those in which the mistake is
// made.
const candidates, plansPerTrial = 48, 16

// fewest is the number of executions of a plan, for which plans are left out.
const fewest = 10

// Kill looks for a schedule that catches the mutant, in budget executions at most for
// each way of searching.
func Kill(m Mutant, budget int64, infos ...lock.Info) (Verdict, error) {
	return (&Effort{places: &places{}}).hunt(m, budget, infos)
}

// hunt is Kill.
func (e *Effort) hunt(m Mutant, budget int64, infos []lock.Info) (Verdict, error) {
	v := Verdict{Mutant: m, effort: e}
	err := v.kill(budget, infos, v.reach)
	if err == nil && v.Executions == 0 { // a rare site
		err = v.kill(budget, infos, v.reachFar)
	}
	return v, err
}

// kill searches the plans that reach finds.
func (v *Verdict) kill(budget int64, infos []lock.Info, reach func(int, lock.Info, int) ([]Plan, error)) error {
	plans := map[int][]Plan{}
	all := trials
	if v.effort.Drawn {
		all = drawn
	}
	for _, t := range all {
		if plans[t.ranks] == nil {
			for which, info := range infos {
				some, err := reach(which, info, t.ranks)
				if err != nil {
					return err
				}
				plans[t.ranks] = append(plans[t.ranks], some...)
			}
			if v.effort.Turns {
				plans[t.ranks] = byTurns(plans[t.ranks])
			}
		}
		n := budget * t.share / 100
		some := plans[t.ranks]
		if most := max(1, int(n/fewest)); most < len(some) {
			some = some[:most]
		}
		for _, p := range some {
			p.Guard = t.by != "dfs"
			if t.by == "dfs" { // which has two paces
				if p.Pace == Timely {
					p.Pace = Forced
				}
				if p.Pace == Hasty {
					p.Pace = AnyTime
				}
			}
			p.Acquires += t.more
			if t.alone {
				p.Writers = 1
			}
			each := max(1, n/int64(len(some)))
			if err := v.search(p, t.by, t.scheduler(each)); err != nil {
				return err
			}
			if v.Err != nil { // and is it the mistake that was caught?
				return v.effort.sound(p, t.by, t.scheduler(each))
			}
		}
	}
	return nil
}

// byTurns puts plans in an order in which their Infos take turns.
func byTurns(plans []Plan) (out []Plan) {
	of := map[string][]Plan{}
	var names []string
	for _, p := range plans {
		if of[p.Info.Name] == nil {
			names = append(names, p.Info.Name)
		}
		of[p.Info.Name] = append(of[p.Info.Name], p)
	}
	for len(out) < len(plans) {
		for _, name := range names {
			if of[name] != nil {
				out, of[name] = append(out, of[name][0]), of[name][1:]
			}
			if len(of[name]) == 0 {
				of[name] = nil
			}
		}
	}
	return out
}

// sound checks that a lock passes without a mutation what has caught one.
func (e *Effort) sound(p Plan, by string, s sim.Scheduler) error {
	r, err := Run(p, s)
	if err == nil && r.Failure == nil && e.waits(by, &r) {
		err = fmt.Errorf("check: %s without a mutation: %w: %d ranks, seed %d, tries %v", p.Info.Name, sim.ErrDeadlock, p.Ranks, p.Seed, p.Tries)
	}
	if err == nil && r.Failure != nil && !unfair(by == "dfs", r.Failure) {
		err = fmt.Errorf("check: %s without a mutation: %w: %d ranks, seed %d, tries %v, schedule %s", p.Info.Name, r.Failure, p.Ranks, p.Seed, p.Tries, r.Failure.Schedule)
	}
	return err
}

// waits reports whether a rank waited for the clock until there were no ticks left. An
// exhaustive search has it happen to a lock that is right.
func (e *Effort) waits(by string, r *Result) bool {
	return e.Ends && by != "dfs" && r.Stats.OutOfTicks > 0
}

// search looks for a schedule that catches the mutant.
func (v *Verdict) search(p Plan, by string, s sim.Scheduler) error {
	p.Disturb = inject(v, nil)
	r, err := Run(p, s)
	if err != nil {
		return err
	}
	v.Executions += r.Stats.Executions + r.Stats.Cut
	if r.Failure == nil && v.effort.waits(by, &r) {
		v.Err, v.By, v.Ranks = sim.ErrDeadlock, by, p.Ranks
		return nil
	}
	if r.Failure == nil || unfair(by == "dfs", r.Failure) {
		return nil
	}
	v.Err, v.By, v.Ranks = r.Failure.Err, by, p.Ranks
	return nil
}

// unfair reports whether a failure says nothing: dfs is not fair, and one rank may spin for ever.
func unfair(dfs bool, f *sim.Failure) bool { return dfs && errors.Is(f, sim.ErrEndless) }

// reach finds plans in which the mutant's mistake is made.
func (v *Verdict) reach(which int, info lock.Info, ranks int) ([]Plan, error) {
	var out []Plan
	for k := uint64(0); k < candidates && len(out) < plansPerTrial; k++ {
		var err error
		if out, err = v.made(out, which, v.effort.candidate(info, ranks, k), []sim.Scheduler{sim.Random(99, 0, 8)}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// reachFar is reach with the plans and the schedules by which Mutants found the place.
func (v *Verdict) reachFar(which int, info lock.Info, ranks int) (out []Plan, err error) {
	for _, p := range v.effort.surveyed(info, ranks) {
		if out, err = v.made(out, which, p, surveying()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// made appends a plan if the mutant's mistake is made in it.
func (v *Verdict) made(out []Plan, which int, p Plan, schedules []sim.Scheduler) ([]Plan, error) {
	rec, err := v.effort.places.of(v.bare, which, p, schedules)
	if err != nil {
		return nil, err
	}
	if _, is := rec.steps[v.Site]; is {
		out = append(out, p)
	}
	return out, nil
}
