package bench

import (
	"fmt"
	"strings"
	"time"

	"github.com/rmalock/rmalock/lock"
)

// A Sweep is a set of runs: every workload with every lock, share of writers, number of locks and
// number of ranks. With Repeat it runs in rounds, so that changes in the machine's speed affect all.
type Sweep struct {
	Config  Config    // what all runs have in common
	Modes   []Mode    // workloads
	Locks   []string  // as ParseLock reads them, and Atomic
	Writers []float64 // F_W, 0 to 1
	Ranks   []int     // numbers of ranks
	Tables  []int     // numbers of locks; none means Config.Locks
	// Workloads and Rates are those of mode clients; none means what Config has.
	Workloads []Workload
	Rates     []float64
	Repeat    int // runs of each, with seeds from Config.Seed on; 0 means 1
}

// A Point is one run of a Sweep.
type Point struct {
	Config Config // of the run
	Ranks  int    // number of ranks
}

// Points lists the runs. A lock without a shared mode has only runs with F_W = 1. Atomic is
// a lock in mode dht alone. A lock without any run, and a configuration that
// Config.Validate refuses, are errors.
func (s Sweep) Points() ([]Point, error) {
	round, err := s.round()
	if err != nil {
		return nil, err
	}
	var out []Point
	for i := range max(1, s.Repeat) {
		for _, p := range round {
			p.Config.Seed += uint64(i)
			out = append(out, p)
		}
	}
	return out, nil
}

// round lists the runs of the first round.
func (s Sweep) round() ([]Point, error) {
	var out []Point
	for _, mode := range s.Modes {
		for _, name := range s.Locks {
			before := len(out)
			if name == Atomic && mode != DHT && len(s.Modes) > 1 {
				continue
			}
			for _, cfg := range s.configs(mode, name) {
				if _, any := cfg.structured(); cfg.Readers > 0 && mode != DHT && !any && !cfg.Mutexes && len(s.Writers) > 1 {
					if info, err := ParseLock(name); err == nil && !info.Shared {
						continue
					}
				}
				checked := cfg // Validate fills in defaults; virtual time has others
				if err := checked.Validate(); err != nil {
					return nil, err
				}
				for _, ranks := range s.Ranks {
					if ranks < 2 && mode == DHT && len(s.Ranks) > 1 {
						continue
					}
					out = append(out, Point{cfg, ranks})
				}
			}
			if len(out) == before {
				return nil, fmt.Errorf("lock %q has no shared mode and no share of writers is 1, so nothing is left to run with it: %w", name, lock.ErrConfig)
			}
		}
	}
	return out, nil
}

// configs lists the runs of a lock at a mode, but for the numbers of ranks.
func (s Sweep) configs(mode Mode, name string) []Config {
	base := s.Config
	base.Mode, base.Lock = mode, name
	if mode == DHT && base.Duration > 0 && len(s.Modes) > 1 {
		base.Duration = 0
	}
	out := Each([]Config{base}, s.Writers, func(c *Config, writers float64) { c.Readers = round(1 - writers) })
	out = Each(out, s.Tables, func(c *Config, locks int) { c.Locks = locks })
	if mode != Clients {
		for i := range out {
			out[i].Workload, out[i].Rate = nil, 0
		}
		return out
	}
	out = Each(out, s.Workloads, func(c *Config, w Workload) { c.Workload = w })
	return Each(out, s.Rates, func(c *Config, rate float64) { c.Rate = rate })
}

// Each lists things with values set: each thing with each value. Without values it is things.
func Each[S, T any](things []S, values []T, set func(*S, T)) []S {
	if len(values) == 0 {
		return things
	}
	var out []S
	for _, s := range things {
		for _, v := range values {
			set(&s, v)
			out = append(out, s)
		}
	}
	return out
}

// Key names a run on a place, such as "inproc" or "sim aries 4x16". Runs with one key
// are the same run.
func (p Point) Key(where string) string {
	c := p.Config
	parts := []string{where, fmt.Sprintf("P=%d", p.Ranks), string(c.Mode), c.Lock, fmt.Sprintf("F_W=%g", c.Writers()), fmt.Sprintf("locks=%d", max(1, c.Locks))}
	if c.Workload != nil {
		parts = append(parts, c.Workload.String())
	}
	if c.Rate > 0 {
		parts = append(parts, fmt.Sprintf("rate=%g", c.Rate))
	}
	switch {
	case c.Acquires > 0:
		parts = append(parts, fmt.Sprintf("acquires=%d", c.Acquires))
	case c.Duration > 0:
		parts = append(parts, "duration="+c.Duration.String())
	}
	return strings.Join(append(parts, fmt.Sprintf("seed=%d", c.Seed)), ", ")
}

// A Record is a run that a Store keeps.
type Record struct {
	Key     string    `json:"key"`     // as Point.Key makes it
	Where   string    `json:"where"`   // backend and machine
	Command string    `json:"command"` // command line
	Made    time.Time `json:"made"`    // when
	Host    Host      `json:"host"`    // computer of rank 0
	Result  *Result   `json:"result"`  // of the run
}
