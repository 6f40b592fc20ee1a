package check

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"

	"github.com/rmalock/rmalock/lock"
)

// An Equivalent says that some mutants of a lock are no mistakes, and why.
type Equivalent struct {
	Phase    Phase
	Step     string // what Site.Step begins with, with distances or without
	Before   string // and Site.Before
	First    bool   // Site.Before is empty
	Mutation Mutation
	Readers  bool // in shared mode alone
	Writers  bool // in exclusive mode alone
	Why      string
}

func (e *Equivalent) matches(m *Mutant) bool {
	return m.Site.Phase == e.Phase && m.Mutation == e.Mutation && (!e.Writers || m.Site.Mode == lock.Exclusive) && (!e.Readers || m.Site.Mode == lock.Shared) &&
		begins(m.Site.Step, e.Step) && begins(m.Site.Before, e.Before) && (!e.First || m.Site.Before == "")
}

func begins(step, with string) bool {
	return strings.HasPrefix(step, with) || strings.HasPrefix(bare(step), with)
}

// A Survey is what became of the mutants of a lock.
type Survey struct {
	Name     string
	All      int // mutants that there are
	Verdicts []Verdict
	Why      []string // by verdict: the reason of the Equivalent that matches, or ""
}

// ErrSurvey is wrapped when a mutant survives that should not, or the other way round.
var ErrSurvey = errors.New("the check does not tell a lock from its mutants")

// Effort says how much is done to catch mutants.
type Effort struct {
	Budget    int64 // executions for each way of searching
	Distances bool  // as in Mutants
	Every     int   // one in so many mutants is tried, the same ones each time; 0 means all
	Turns     bool  // few executions are for all Infos by turns, and not for the first ones

	Change func(p *Plan) // if not nil, changes each plan that is searched
	Drawn  bool          // most schedules are drawn: those of all schedules of two ranks alone are searched
	Ends   bool          // plans have so many ticks that a rank which waits for more waits for ever

	// Leave are parts of steps at which SurveyUses makes no mistakes: words of another package. One
	// that begins with "after " is the step before.
	Leave []string

	places *places
}

// equivalentShare is the part of the budget for mutants of which an Equivalent says that
// they are none.
const equivalentShare = 60

// SurveyMutants tries to kill the mutants of a lock, on all cores. Those of which an Equivalent
// says that they are none must survive, all others must be caught, and every
// Equivalent must match a mutant: else it returns the survey and an error. The first
// Info names the lock.
func SurveyMutants(e Effort, equivalent []Equivalent, infos ...lock.Info) (*Survey, error) {
	e.places = &places{}
	mutants, err := e.mutants(infos)
	if err != nil {
		return nil, err
	}
	return e.survey(infos[0].Name, mutants, equivalent, func(m Mutant, budget int64) (Verdict, error) {
		return e.hunt(m, budget, infos)
	})
}

// survey hunts mutants on all cores, and judges what became of them.
func (e *Effort) survey(name string, mutants []Mutant, equivalent []Equivalent, hunt func(m Mutant, budget int64) (Verdict, error)) (*Survey, error) {
	used := make([]bool, len(equivalent))
	for k := range equivalent {
		used[k] = slices.ContainsFunc(mutants, func(m Mutant) bool { return equivalent[k].matches(&m) })
	}
	s := &Survey{Name: name, All: len(mutants)}
	if e.Every > 1 {
		rand.New(rand.NewPCG(1, 1)).Shuffle(len(mutants), func(i, k int) { mutants[i], mutants[k] = mutants[k], mutants[i] })
		mutants = mutants[:(len(mutants)+e.Every-1)/e.Every]
	}
	s.Verdicts, s.Why = make([]Verdict, len(mutants)), make([]string, len(mutants))
	for i := range mutants {
		for k := range equivalent {
			if equivalent[k].matches(&mutants[i]) {
				s.Why[i] = equivalent[k].Why
			}
		}
	}
	errs := make([]error, len(mutants))
	var wg sync.WaitGroup
	var next atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(mutants); i = int(next.Add(1)) - 1 {
				n := e.Budget
				if s.Why[i] != "" {
					n /= equivalentShare
				}
				s.Verdicts[i], errs[i] = hunt(mutants[i], n)
			}
		})
	}
	wg.Wait()
	for i := range s.Verdicts {
		v := &s.Verdicts[i]
		switch {
		case errs[i] != nil:
		case v.Err == nil && s.Why[i] == "":
			errs[i] = fmt.Errorf("%w: survives %d executions, the mistake made %d times: %v", ErrSurvey, v.Executions, v.Applied, v.Mutant)
		case v.Err != nil && s.Why[i] != "":
			errs[i] = fmt.Errorf("%w: is said to be equivalent (%s), and is caught: %v: %w", ErrSurvey, s.Why[i], v.Mutant, v.Err)
		}
	}
	for k := range equivalent {
		if !used[k] {
			errs = append(errs, fmt.Errorf("%w: there is no mutant %v: %s: %v", ErrSurvey, equivalent[k].Phase, equivalent[k].Step, equivalent[k].Mutation))
		}
	}
	return s, errors.Join(errs...)
}

// Caught is the number of mutants that were caught.
func (s *Survey) Caught() (n int) {
	for i := range s.Verdicts {
		if s.Verdicts[i].Err != nil {
			n++
		}
	}
	return n
}

// WriteText writes the table of mutants.
func (s *Survey) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s: %d of %d mutants, %d caught\n", s.Name, len(s.Verdicts), s.All, s.Caught())
	fmt.Fprintln(t, "caught by\tsearch\tranks\texecutions\tmutant")
	for i := range s.Verdicts {
		v := &s.Verdicts[i]
		if v.Err == nil {
			why := s.Why[i]
			if why == "" {
				why = "why?"
			}
			fmt.Fprintf(t, "survives\t-\t-\t%d\t%v: %s\n", v.Executions, v.Mutant, why)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%v\n", v.Kind(), v.By, v.Ranks, v.Executions, v.Mutant)
	}
	return t.Flush()
}
