package netmodel

import (
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/rmatest"
	"github.com/rmalock/rmalock/rma/sim"
)

var (
	_ sim.Model = (*Net)(nil)
	_           = [1]bool{}[Send-sim.Message]
	_           = [1]bool{}[Device-sim.Device]
)

// The suite that every backend passes, where flights differ by half, ranks of a node share a core
// and connections, and one of two memory nodes is on a node of ranks.
func TestConformance(t *testing.T) {
	p := at(2, 2)
	ranks := p.Node
	p.Node = append(ranks[:4:4], 2, 0)
	p.Core, p.Coroutines = []int{0, 0, 0, 0, 0, 1}, true
	p.Pair = []int{0, 0, 2, 2, 4, 5}
	m := load1(t, "cx4")
	for i := range m.param {
		if m.param[i].Name == "maxRdAtomic" {
			m.param[i].Value = 2
		}
	}
	for _, verbs := range []bool{false, true} {
		seed := uint64(0)
		rmatest.Run(t, func(body func(rma.Comm) error) error {
			seed++
			net := network(t, m, p)
			net.Jitter(0.5, seed)
			_, err := sim.Timed{Node: ranks, MemoryNodes: 2, Verbs: verbs, Model: net}.Run(body)
			return err
		})
	}
}
