package discover

import (
	"maps"
	"slices"
	"sync"

	"github.com/rmalock/rmalock/topo"
)

// maxCPUs bounds the processors of a node.
const maxCPUs = 1 << 18

// A Machine is a node's hardware as far as it is known: for each level inside the node
// which part a processor is in.
type Machine struct {
	Levels []Partition // from the outside in
	Notes  []string    // what could not be read, a line each
}

// A Partition maps processors to the parts of a level; it lacks those that are unknown.
type Partition struct {
	Level string      // group, numa, cache or core
	Part  map[int]int // processor -> number of its part, unique in the node
}

// CPUs is all processors of the machine.
func (m *Machine) CPUs() topo.Set {
	all := map[int]bool{}
	for _, l := range m.Levels {
		for c := range l.Part {
			all[c] = true
		}
	}
	return topo.MakeSet(slices.Sorted(maps.Keys(all))...)
}

// reader reads the machine that is described under a directory; nil where the program has
// none.
var reader func(root string) Machine

// Register makes all discoveries of the process read machines by a function, which gets the
// directory that has the system's sys in it. Package topo/hardware calls it when it is
// initialised; only the last registration counts. Call it before the first discovery.
func Register(read func(root string) Machine) { reader = read }

// readMachine reads the machine under root, or knows nothing.
func readMachine(root string) *Machine {
	if reader == nil {
		return &Machine{Notes: []string{"levels inside the node are not looked for: the program does not import topo/hardware"}}
	}
	m := reader(root)
	return &m
}

// thisMachine reads the machine once for all ranks of the process.
var thisMachine = sync.OnceValue(func() *Machine { return readMachine("/") })

// locate fills in Inside and Notes from the machine.
func (p *report) locate(m *Machine) {
	for _, n := range m.Notes {
		p.note("%s", n)
	}
	strangers := map[topo.Set]string{} // processors -> levels that lack them
	var order []topo.Set
	for _, l := range m.Levels {
		var ids, strange []int
		for c := range p.CPUs.All() {
			if id, ok := l.Part[c]; ok {
				ids = append(ids, id)
			} else {
				strange = append(strange, c)
			}
		}
		span := topo.Span{Level: l.Level}
		if len(strange) == 0 {
			span.IDs = topo.MakeSet(ids...)
		} else if len(l.Part) > 0 {
			s := topo.MakeSet(strange...)
			if strangers[s] == "" {
				order = append(order, s)
				strangers[s] = l.Level
			} else {
				strangers[s] += ", " + l.Level
			}
		}
		p.Inside = append(p.Inside, span)
	}
	for _, s := range order {
		p.note("the machine's description has no %s with processors %s", strangers[s], s)
	}
}
