package check

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// A Disturb decorates the Comm on which a rank opens what is searched; at is where the rank is.
type Disturb = func(c rma.Comm, at func() Position) rma.Comm

// operations are the Phases of what is no lock, by the letters of package internal/history.
var operations = map[Phase]string{'g': "search", 's': "set", 'd': "delete", 'r': "scan", 'i': "insert", 'u': "update"}

// A Use is a search of something that is no lock, a key-value store, say, in which its mutants are
// hunted. Its Phases are letters of operations; places outside of them get no mistakes.
type Use struct {
	Name  string
	Ranks int
	// Run searches under the schedules of s. Each rank opens what is searched on the Comm that d
	// returns, or on its own where d is nil. It copies nothing of the types of Outlives.
	Run func(d Disturb, s sim.Scheduler) (sim.Stats, *sim.Failure)
	By  func(executions int64) sim.Scheduler
	// Part is the part of the budget that the Use gets, in hundredths; 0 means all.
	Part int64

	rec     *recording // of its places
	once    sync.Once
	passing error // what is wrong with it without a mistake
}

// part is a Use's part of a budget.
func (u *Use) part(budget int64) int64 {
	if u.Part == 0 {
		return budget
	}
	return max(1, budget*u.Part/100)
}

// Outlives are the types of what a Disturb keeps for all executions.
func Outlives() []reflect.Type { return allExecutions }

// SurveyUses is SurveyMutants for what is no lock.
func SurveyUses(e Effort, equivalent []Equivalent, name string, uses ...*Use) (*Survey, error) {
	rec := newRecording(!e.Distances)
	for _, u := range uses {
		u.rec = newRecording(!e.Distances)
		if _, f := u.Run(inject(nil, u.rec), u.By(lookAround)); f != nil {
			return nil, fmt.Errorf("check: %s without a mutation: %w", u.Name, f)
		}
		rec.add(u.rec)
	}
	mutants := slices.DeleteFunc(rec.mutants(), func(m Mutant) bool {
		return slices.ContainsFunc(e.Leave, func(part string) bool {
			before, after := strings.CutPrefix(part, "after ")
			return strings.Contains(m.Site.Step, part) || after && m.Site.Before == before
		})
	})
	return e.survey(name, mutants, equivalent, func(m Mutant, budget int64) (Verdict, error) {
		v := Verdict{Mutant: m}
		for _, seen := range []bool{true, false} { // first the Uses in which the place was seen
			for _, u := range uses {
				if _, is := u.rec.steps[m.Site]; is != seen {
					continue
				}
				n := budget
				if _, dfs := u.By(1).(*sim.ExhaustiveSearch); !seen && !dfs { // dfs sees other places later
					n /= unseenShare
				}
				if err := v.use(u, n, e.Budget); err != nil || v.Err != nil {
					return v, err
				}
			}
		}
		return v, nil
	})
}

// lookAround is the number of executions of each Use in which places for mistakes are looked for.
const lookAround = 400

// unseenShare is the part of the budget for a Use of drawn schedules in which the place was not seen.
const unseenShare = 20

// use searches a Use. What catches a mutant must pass without the mistake, with the whole budget.
func (v *Verdict) use(u *Use, budget, whole int64) error {
	s := u.By(u.part(budget))
	_, dfs := s.(*sim.ExhaustiveSearch)
	stats, f := u.Run(inject(v, nil), s)
	v.Executions += stats.Executions + stats.Cut
	if f == nil || unfair(dfs, f) {
		return nil
	}
	v.Err, v.By, v.Ranks = f.Err, u.Name, u.Ranks
	u.once.Do(func() {
		if _, f := u.Run(nil, u.By(u.part(whole))); f != nil && !unfair(dfs, f) {
			u.passing = fmt.Errorf("check: %s without a mutation: %w", u.Name, f)
		}
	})
	return u.passing
}

// summary is the innermost error, of what is no lock.
func summary(err error) string {
	for next := err; next != nil; next = errors.Unwrap(err) {
		err = next
	}
	text, _, _ := strings.Cut(err.Error(), ":")
	return text
}
