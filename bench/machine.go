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
	return network{m}, nil
}

type network struct{ m *netmodel.Machine }

// Name is the name of the machine in package netmodel.
func (n network) Name() string { return n.m.Name }

// About is its description.
func (n network) About() string { return n.m.About }

// Weak lists its weak constants.
func (n network) Weak() []Constant {
	var out []Constant
	for _, p := range n.m.Weak() {
		out = append(out, Constant{Name: p.Name, Unit: p.Unit, Low: p.Low, Value: p.Value, High: p.High})
	}
	return out
}

// With returns the machine with another value of a constant.
func (n network) With(constant string, value float64) (Machine, error) {
	m, err := n.m.With(constant, value)
	if err != nil {
		return nil, err
	}
	return network{m}, nil
}

// Model returns a new model of its network.
func (n network) Model(t *topo.Topology) (sim.Model, error) { return netmodel.New(n.m, placement(t)) }

// placement is the place of each rank for the network: its node, core, socket (or NUMA
// node), and its element at each level above the node.
func placement(t *topo.Topology) netmodel.Placement {
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
