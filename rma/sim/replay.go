package sim

import (
	"errors"

	"github.com/rmalock/rmalock/rma"
)

// Replay runs body once under a schedule and returns its trace.
func (s Search) Replay(schedule string, body func(rma.Comm) error) ([]Event, *Failure, error) {
	choices, err := decode(schedule)
	if err != nil {
		return nil, nil, err
	}
	p := &replay{choices: choices}
	e := s.engine(p, body)
	e.tracing = true
	defer e.w.close()
	f := p.once(e)
	return e.events, f, nil
}

// Shrink looks for a schedule with the same kind of error that deviates less often
// from letting the last rank go on. It tries at most so many schedules.
func (s Search) Shrink(f *Failure, tries int, body func(rma.Comm) error) (*Failure, error) {
	choices, err := decode(f.Schedule)
	if err != nil {
		return nil, err
	}
	p := &replay{choices: choices}
	e := s.engine(p, body)
	defer e.w.close()
	best := f
	try := func(c []int) bool {
		tries--
		p.choices = c
		g := p.once(e)
		if g == nil || !sameKind(f.Err, g.Err) {
			return false
		}
		shorter, _ := decode(g.Schedule)
		if weight(shorter) >= weight(choices) {
			return false
		}
		choices, best = shorter, g
		return true
	}
	for size := len(choices); size > 0 && tries > 0; size /= 2 {
		for at := 0; at < len(choices) && tries > 0; {
			c := append([]int(nil), choices...)
			end := min(at+size, len(c))
			clear(c[at:end])
			if weight(c) == weight(choices) || !try(c) {
				at = end
			}
		}
	}
	best.Execution = f.Execution
	return best, nil
}

// weight is how hard a schedule is to tell: its deviations, then its length.
func weight(choices []int) int {
	n := 0
	for _, c := range choices {
		if c != 0 {
			n += 1 << 20
		}
	}
	return n + len(choices)
}

// sameKind reports whether two errors are of one kind: the same sentinel at the root, or
// the same text there.
func sameKind(a, b error) bool {
	a = root(a)
	return errors.Is(b, a) || root(b).Error() == a.Error()
}

// root is the innermost error.
func root(err error) error {
	for {
		in := errors.Unwrap(err)
		if many, ok := err.(interface{ Unwrap() []error }); ok && len(many.Unwrap()) > 0 {
			in = many.Unwrap()[0]
		}
		if in == nil {
			return err
		}
		err = in
	}
}

// replay follows choices, and then lets ranks go on until they cannot.
type replay struct{ choices []int }

// once runs one execution and returns how it failed.
func (p *replay) once(e *search) *Failure {
	if _, err := e.execute(false); err != nil {
		return &Failure{Err: err, Schedule: encode(e.choices), Steps: len(e.choices), Execution: 1, Trace: e.events}
	}
	return nil
}

func (p *replay) Begin() bool { return true }

func (p *replay) Next(s *State) int {
	if s.Depth < len(p.choices) {
		return min(p.choices[s.Depth], len(s.Steps)-1)
	}
	for i := range s.Steps { // not an idle one: the execution would not end
		if s.Steps[i].Must {
			return i
		}
	}
	return 0
}

func (p *replay) End(bool) {}
