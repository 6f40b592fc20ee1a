package sim

import "math/rand/v2"

// idleOneIn is the number of draws to one idle step, or more where there are many of them:
// all together they are then drawn as often as the step of one rank.
const idleOneIn = 32

// retryWeight bounds the weight of all retries together, in steps of other ranks. Without it
// hundreds of ranks that wait for one word would all read it before another rank continues.
const retryWeight = 4

// seldom is the number of draws to one tick, death or successor.
const seldom = 32

// Random draws among the steps with equal chances, with exceptions that it draws less often:
// steps that need not happen, idle steps, retries of more than four ranks at once, ticks,
// deaths and successors. Every schedule has a chance. In every other execution operations without a Flush
// rarely take effect before the end. first is the number of the first execution.
func Random(seed uint64, first, executions int64) Scheduler {
	return &random{seed: seed, next: first, left: executions}
}

type random struct {
	seed uint64
	next int64
	left int64
	lazy int // draws to one effect of an operation without a Flush
	rng  *rand.Rand
	pcg  rand.PCG
}

func (s *random) Begin() bool {
	if s.left == 0 {
		return false
	}
	s.left--
	s.pcg.Seed(s.seed, uint64(s.next))
	s.rng = rand.New(&s.pcg)
	s.lazy = 4
	if s.next%2 == 1 {
		s.lazy = 64
	}
	s.next++
	return true
}

func (s *random) Next(st *State) int {
	for try := 0; ; try++ {
		i := s.rng.IntN(len(st.Steps))
		k := &st.Steps[i]
		odds := 1 // draws to one pick
		switch {
		case k.Kind > StepGhost && !k.Must:
			odds = seldom
		case k.Idle:
			odds = max(idleOneIn, st.Idles)
		case k.Again:
			odds = (st.Agains + retryWeight - 1) / retryWeight
		case !k.Must:
			odds = s.lazy
		}
		if odds == 1 || try > 1000 || s.rng.IntN(odds) == 0 {
			return i
		}
	}
}

func (s *random) End(bool) {}

// PCT is the probabilistic concurrency testing of Burckhardt, Kothari, Musuvathi and
// Nagarakatte (ASPLOS 2010): every rank has a priority, the highest runs, and at
// depth-1 random steps the running rank falls below the others. A bug of that depth
// is found with a probability of at least 1/(ranks * steps^(depth-1)) an execution,
// steps being those of the longest execution so far, and 64 at first. A rank whose try
// fails falls too, so that a spin does not keep the processor; and operations without a
// Flush have priorities of their own. Ticks, deaths and successors come at random, seldom.
func PCT(seed uint64, depth int, first, executions int64) Scheduler {
	return &pct{random: random{seed: seed, next: first, left: executions}, depth: depth}
}

type pct struct {
	random
	depth   int
	longest int         // steps of the longest execution so far
	rank    []int       // priority of each rank; more is higher
	lazy    []int       // of its operations without a Flush
	changes map[int]int // at which step the rank that runs gets which priority
	lowest  int
}

func (s *pct) Begin() bool {
	if !s.random.Begin() {
		return false
	}
	s.rank, s.lowest = s.rank[:0], 0
	steps := s.longest
	if steps == 0 {
		steps = 64
	}
	s.changes = make(map[int]int, s.depth)
	for i := range s.depth - 1 {
		s.changes[s.rng.IntN(steps)] = i + 1
	}
	return true
}

func (s *pct) Next(st *State) int {
	if len(s.rank) == 0 {
		order := s.rng.Perm(2 * st.Ranks)
		for i := range order {
			order[i] += s.depth // above those of all changes
		}
		s.rank = append(s.rank, order[:st.Ranks]...)
		s.lazy = append(s.lazy[:0], order[st.Ranks:]...)
	}
	s.longest = max(s.longest, st.Depth+1)
	if st.Beaten >= 0 {
		s.lowest--
		s.rank[st.Beaten] = s.lowest
	}
	if last := &st.Steps[len(st.Steps)-1]; last.Kind > StepGhost && (last.Must || s.rng.IntN(seldom) == 0) {
		return s.foreign(st)
	}
	best := s.best(st)
	if p, ok := s.changes[st.Depth]; ok {
		*s.of(&st.Steps[best]) = p
		best = s.best(st)
	}
	return best
}

// of is the priority that counts for a step.
func (s *pct) of(k *Step) *int {
	if k.OpIndex >= 0 && !k.Must {
		return &s.lazy[k.Rank]
	}
	return &s.rank[k.Rank]
}

// foreign draws a tick, a death or a successor; the tick if it must come.
func (s *pct) foreign(st *State) int {
	last := len(st.Steps) - 1
	if st.Steps[last].Must {
		return last
	}
	first := last
	for first > 0 && st.Steps[first-1].Kind > StepGhost {
		first--
	}
	return first + s.rng.IntN(last-first+1)
}

// best is the step with the highest priority; idle ones come last.
func (s *pct) best(st *State) int {
	best, at := -1, 0
	same := 1
	for i := range st.Steps {
		k := &st.Steps[i]
		if k.Idle || k.Kind > StepGhost {
			continue
		}
		p := *s.of(k)
		switch {
		case best < 0 || p > at:
			best, at, same = i, p, 1
		case p == at: // steps of one rank: any order
			if same++; s.rng.IntN(same) == 0 {
				best = i
			}
		}
	}
	return best
}
