package check

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"

	"github.com/rmalock/rmalock/lock"
)

// An Equivalent says that some mutants of a lock are no mistakes, and why.
type Equivalent struct {
	Phase    Phase
	Step     string // what Site.Step begins with
	Mutation Mutation
	Why      string
}

func (e *Equivalent) matches(m *Mutant) bool {
	return m.Site.Phase == e.Phase && strings.HasPrefix(m.Site.Step, e.Step) && m.Mutation == e.Mutation
}

// A Survey is what became of all mutants of a lock.
type Survey struct {
	Name     string
	Verdicts []Verdict
	Why      []string // by verdict: the reason of the Equivalent that matches, or ""
}

// ErrSurvey is wrapped when a mutant survives that should not, or the other way round.
var ErrSurvey = errors.New("the check does not tell a lock from its mutants")

// SurveyMutants hunts all mutants of a lock, on all cores. Those of which an Equivalent
// says that they are none must survive, all others must be caught, and every
// Equivalent must match a mutant: else it returns the survey and an error. The first
// Info names the lock.
func SurveyMutants(budget int64, equivalent []Equivalent, infos ...lock.Info) (*Survey, error) {
	mutants, err := Mutants(infos...)
	if err != nil {
		return nil, err
	}
	s := &Survey{Name: infos[0].Name, Verdicts: make([]Verdict, len(mutants)), Why: make([]string, len(mutants))}
	used := make([]bool, len(equivalent))
	for i := range mutants {
		for k := range equivalent {
			if equivalent[k].matches(&mutants[i]) {
				s.Why[i], used[k] = equivalent[k].Why, true
			}
		}
	}
	errs := make([]error, len(mutants))
	var wg sync.WaitGroup
	var next atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(mutants); i = int(next.Add(1)) - 1 {
				n := budget
				if s.Why[i] != "" {
					n /= 4
				}
				s.Verdicts[i], errs[i] = Hunt(mutants[i], n, infos...)
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
	fmt.Fprintf(t, "%s: %d mutants, %d caught\n", s.Name, len(s.Verdicts), s.Caught())
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
