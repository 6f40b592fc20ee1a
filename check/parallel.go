package check

import (
	"cmp"
	"runtime"
	"slices"
	"sync"

	"github.com/rmalock/rmalock/rma/sim"
)

// block is the number of executions of one scheduler of RunParallel.
const block = 250

// RunParallel checks a plan under many drawn schedules, on all cores. draw makes a scheduler
// of some of them, as sim.Random and sim.PCT do. The failure is that of the lowest
// execution, on any number of cores.
func RunParallel(p Plan, executions int64, draw func(first, executions int64) sim.Scheduler) (Result, error) {
	if err := p.validate(); err != nil {
		return Result{}, err
	}
	var (
		mu       sync.Mutex
		next     int64
		all      Result
		failures []*sim.Failure
	)
	worker := func() {
		for {
			mu.Lock()
			first := next
			if first >= executions || len(failures) > 0 {
				mu.Unlock()
				return
			}
			next += block
			mu.Unlock()
			r, _ := Run(p, draw(first, min(block, executions-first))) // the plan is valid
			mu.Lock()
			all.add(r)
			if r.Failure != nil {
				r.Failure.Execution += first
				failures = append(failures, r.Failure)
			}
			mu.Unlock()
		}
	}
	var wg sync.WaitGroup
	for range min(int64(runtime.GOMAXPROCS(0)), (executions+block-1)/block) {
		wg.Go(worker)
	}
	wg.Wait()
	if len(failures) > 0 {
		all.Failure = slices.MinFunc(failures, func(a, b *sim.Failure) int { return cmp.Compare(a.Execution, b.Execution) })
	}
	return all, nil
}

// add adds the result of another search of the same plan.
func (r *Result) add(s Result) {
	r.Stats.Executions += s.Stats.Executions
	r.Stats.Cut += s.Stats.Cut
	r.Stats.Steps += s.Stats.Steps
	r.Stats.Longest = max(r.Stats.Longest, s.Stats.Longest)
	r.Most = max(r.Most, s.Most)
}
