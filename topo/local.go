package topo

import (
	"errors"
	"fmt"
	"os"
	"sync"
)

// Options say whose place Local tells. The zero value means this process.
type Options struct {
	// Root is the directory under which to look for sys; "" means /. With another
	// Root, a recorded machine, no Host and no CPUs mean none and all of the machine.
	Root string
	Host string // host name; "" means the system's
	CPUs Set    // processors the rank may run on; "" means the calling thread's affinity
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
// run on, and where those lie in the NUMA nodes, caches and cores of the machine.
//
// What cannot be found out, on a system that does not tell or from a description
// that is broken, is left empty, and the reason is in Place.Notes. An error, which
// wraps ErrTopology, is a mistake in the Options.
func Local(o Options) (Place, error) {
	var p Place
	var err error
	here := o.here()
	if !here {
		if s, err := os.Stat(o.Root); err != nil || !s.IsDir() {
			if err == nil {
				err = errors.New(o.Root + " is not a directory")
			}
			return p, fmt.Errorf("topo: Options.Root: %w: %w", err, ErrTopology)
		}
	}
	if p.CPUs, err = parseSet(string(o.CPUs)); err != nil {
		return p, fmt.Errorf("topo: Options.CPUs: %w", err)
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
		p.CPUs = m.cpus()
	}
	p.locate(&m)
	return p, nil
}

// thisMachine reads the machine once for all ranks of the process.
var thisMachine = sync.OnceValue(func() *machine {
	m := readMachine("/")
	return &m
})

// locate fills in Inside and Notes from the machine.
func (p *Place) locate(m *machine) {
	for _, n := range m.notes {
		p.note("%s", n)
	}
	strangers := map[Set]string{} // processors -> levels that lack them
	var order []Set
	for _, l := range m.levels {
		var ids, strange []int
		for c := range p.CPUs.All() {
			if id, ok := l.of[c]; ok {
				ids = append(ids, id)
			} else {
				strange = append(strange, c)
			}
		}
		span := Span{Level: l.name}
		if len(strange) == 0 {
			span.IDs = MakeSet(ids...)
		} else if len(l.of) > 0 {
			s := MakeSet(strange...)
			if strangers[s] == "" {
				order = append(order, s)
				strangers[s] = l.name
			} else {
				strangers[s] += ", " + l.name
			}
		}
		p.Inside = append(p.Inside, span)
	}
	for _, s := range order {
		p.note("the machine's description has no %s with processors %s", strangers[s], s)
	}
}
