package sim

import "math/rand/v2"

// idleOneIn is how seldom a random schedule tries again what cannot succeed; it is
// more seldom where that would come oftener than the step of one rank that can go on.
const idleOneIn = 32

// crowd is how many ranks those that try again together count for in a random schedule.
// Where hundreds wait for one word, all of them would otherwise look at it after every
// change before anybody else goes on.
const crowd = 4

// Random picks among the steps with equal chances, but for those that need not happen,
// those that cannot find anything new, and tries again of more than four ranks at once:
// they come more seldom. Every schedule has a chance. In every other execution what
// nobody flushes hardly takes effect before the end. It runs executions from first on.
func Random(seed uint64, first, executions int64) Scheduler {
	return &random{seed: seed, next: first, left: executions}
}

type random struct {
	seed uint64
	next int64
	left int64
	lazy int // what nobody flushes takes effect in one of so many picks
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
		odds := 1 // it is taken in one of so many picks
		switch {
		case k.Idle:
			odds = max(idleOneIn, st.Idles)
		case k.Again:
			odds = (st.Agains + crowd - 1) / crowd
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
// fails falls too, so that it does not live on a spin; and an operation that nobody
// flushes has a priority of its own.
func PCT(seed uint64, depth int, first, executions int64) Scheduler {
	return &pct{random: random{seed: seed, next: first, left: executions}, depth: depth}
}

type pct struct {
	random
	depth   int
	longest int         // steps of the longest execution so far
	rank    []int       // priority of each rank; more is higher
	lazy    []int       // of its operations that nobody flushes
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
	best := s.best(st)
	if p, ok := s.changes[st.Depth]; ok {
		*s.of(&st.Steps[best]) = p
		best = s.best(st)
	}
	return best
}

// of is the priority that counts for a step.
func (s *pct) of(k *Step) *int {
	if k.Op > 0 && !k.Must {
		return &s.lazy[k.Rank]
	}
	return &s.rank[k.Rank]
}

// best is the step with the highest priority; idle ones come last.
func (s *pct) best(st *State) int {
	best, at := -1, 0
	same := 1
	for i := range st.Steps {
		k := &st.Steps[i]
		if k.Idle {
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
