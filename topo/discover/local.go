package discover

import (
	"errors"
	"fmt"
	"os"

	"github.com/rmalock/rmalock/topo"
)

// Options say whose place Local tells. The zero value means this process.
type Options struct {
	// Root is the directory under which to look for sys; "" means /. With another
	// Root, a recorded machine, no Host and no CPUs mean none and all of the machine.
	Root string
	Host string   // host name; "" means the system's
	CPUs topo.Set // processors the rank may run on; "" means the calling thread's affinity
	// Env looks up a variable of the environment; nil means os.Getenv, and an empty
	// environment with another Root.
	Env func(name string) string
}

// env is o.Env with its default.
func (o *Options) env() func(string) string {
	switch {
	case o.Env != nil:
		return o.Env
	case o.here():
		return os.Getenv
	}
	return func(string) string { return "" }
}

func (o *Options) here() bool { return o.Root == "" || o.Root == "/" }

// Local finds the place of the calling process, with Node 0: the host name, the
// switches above it where Slurm tells, the processors that the calling thread may
// run on, and where those lie in the NUMA nodes, caches and cores of the machine, if
// the program imports topo/hardware. It exchanges nothing with other ranks.
//
// What cannot be found out is left empty, and the reason is in Place.Notes. An error,
// which wraps topo.ErrTopology, is a mistake in the Options.
func Local(o Options) (topo.Place, error) {
	p, err := local(o)
	return p.Place, err
}

func local(o Options) (p report, err error) {
	here := o.here()
	if !here {
		if s, err := os.Stat(o.Root); err != nil || !s.IsDir() {
			if err == nil {
				err = errors.New(o.Root + " is not a directory")
			}
			return p, fmt.Errorf("discover: Options.Root: %w: %w", err, topo.ErrTopology)
		}
	}
	if p.CPUs, err = topo.ParseSet(string(o.CPUs)); err != nil {
		return p, fmt.Errorf("discover: Options.CPUs: %w", err)
	}
	p.Host = o.Host
	if p.Host == "" && here {
		if p.Host, err = os.Hostname(); err != nil {
			p.note("no host name: %v", err)
		}
	}
	p.switches(o.env())
	if here {
		if p.CPUs == "" {
			if p.CPUs, err = affinity(); err != nil {
				p.note("no affinity mask: %v", err)
			}
		}
		p.locate(thisMachine())
		return p, nil
	}
	m := readMachine(o.Root)
	if p.CPUs == "" {
		p.CPUs = m.CPUs()
	}
	p.locate(m)
	return p, nil
}
