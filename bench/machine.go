package bench

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rmalock/rmalock/rma/sim"
	"github.com/rmalock/rmalock/rma/sim/netmodel"
	"github.com/rmalock/rmalock/topo"
)

// Machines lists the names of the machines that LoadMachine knows.
func Machines() []string { return netmodel.Names() }

// LoadMachine returns a machine of package netmodel by name. An error wraps ErrConfig.
func LoadMachine(name string) (Machine, error) {
	if !slices.Contains(Machines(), name) {
		return nil, fmt.Errorf("no machine is called %q; there are: %s: %w", name, strings.Join(Machines(), ", "), ErrConfig)
	}
	m, err := netmodel.Load(name)
	if err != nil {
		return nil, err
	}
	return modelled{m}, nil
}

type modelled struct{ m *netmodel.Machine }

// Name is the name of the machine in package netmodel.
func (n modelled) Name() string { return n.m.Name }

// About is its description.
func (n modelled) About() string { return n.m.About }

// Weak lists its weak constants.
func (n modelled) Weak() []Constant {
	var out []Constant
	for _, p := range n.m.Weak() {
		out = append(out, Constant{Name: p.Name, Unit: p.Unit, Low: p.Low, Value: p.Value, High: p.High})
	}
	return out
}

// With returns the machine with another value of a constant.
func (n modelled) With(constant string, value float64) (Machine, error) {
	m, err := n.m.With(constant, value)
	if err != nil {
		return nil, err
	}
	return modelled{m}, nil
}

// jitter is the share by which flights differ with verbs.
const jitter = 0.1

// Model returns a new model of its network.
func (n modelled) Model(v *Virtual, seed uint64) (sim.Model, error) {
	if v.MaskedSwap && n.m.Value("maskedSwap") == 0 {
		return nil, fmt.Errorf("the cards of %s have no masked swap; run without it: %w", n.m.Name, ErrConfig)
	}
	net, err := netmodel.New(n.m, placement(v))
	if err == nil && v.Verbs {
		net.Jitter(jitter, seed)
	}
	return net, err
}

// placement is the place of each rank and memory node for the network.
func placement(v *Virtual) netmodel.Placement {
	p := places(v.Topology)
	p.Servers = v.Servers
	v.coroutines(&p)
	v.memory(&p)
	v.pairs(&p)
	return p
}

// coroutines puts ranks of a node on a core.
func (v *Virtual) coroutines(p *netmodel.Placement) {
	if v.Coroutines == 0 {
		return
	}
	p.Coroutines, p.Core = true, make([]int, len(p.Node))
	there := map[int]int{} // node -> ranks
	for r, n := range p.Node {
		p.Core[r] = there[n] / v.Coroutines
		there[n]++
	}
}

// memory adds the memory nodes, each at the switch of one of the ranks' nodes.
func (v *Virtual) memory(p *netmodel.Placement) {
	nodes := 1 + slices.Max(p.Node)
	for i := range v.MemoryNodes {
		if v.Colocated {
			p.Node = append(p.Node, i%nodes)
		} else {
			p.Node = append(p.Node, nodes+i)
			for l, g := range p.Groups {
				p.Groups[l] = append(g, g[i%nodes])
			}
		}
		if p.Core != nil {
			p.Core = append(p.Core, -1-i)
		}
		if p.Socket != nil {
			p.Socket = append(p.Socket, 0)
		}
	}
}

// pairs says which ranks share connections: those of a core or of a node, in the first's name.
func (v *Virtual) pairs(p *netmodel.Placement) {
	p.EachRank = v.QPs == PerThreadPair
	if v.QPs != PerCore && v.QPs != PerProcess {
		return
	}
	type owner struct{ node, core int }
	first := map[owner]int{}
	for r, n := range p.Node {
		o := owner{n, -1}
		switch {
		case v.QPs == PerProcess:
		case p.Core == nil:
			o.core = r
		default:
			o.core = p.Core[r]
		}
		if _, ok := first[o]; !ok {
			first[o] = r
		}
		p.Pair = append(p.Pair, first[o])
	}
}

// places is the place of each rank: its node, core, socket (or NUMA node), and its node's
// element at each level above.
func places(t *topo.Topology) netmodel.Placement {
	p := netmodel.Placement{Node: nodes(t)}
	node, ok := t.Find("node")
	if !ok {
		return p
	}
	for l := node - 1; l > 0; l-- { // from the lowest to the one below the machine
		group := make([]int, t.Elements(node))
		for r, n := range p.Node {
			group[n] = t.Element(r, l)
		}
		p.Groups = append(p.Groups, group)
	}
	of := func(names ...string) []int {
		for _, name := range names {
			if level, ok := t.Find(name); ok && level > node {
				out := make([]int, t.Size())
				for r := range out {
					out[r] = t.Element(r, level)
				}
				return out
			}
		}
		return nil
	}
	p.Core, p.Socket = of("core"), of("package", "socket", "numa")
	return p
}
