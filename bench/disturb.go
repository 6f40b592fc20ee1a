package bench

import (
	"time"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// A Stop is a time in which something stands still, as if it had failed: from At on, of virtual
// time, for a while. The zero value is none.
type Stop struct{ At, For time.Duration }

// disturbed is a model in which memory nodes stand still for a while, and ranks of different nodes
// are farther from each other than from memory nodes.
type disturbed struct {
	sim.Model
	node        []int // of each rank; memory nodes come after ranks
	delay       int64 // each way between ranks of different nodes
	from, until int64 // memory nodes serve nothing
}

// disturb is a model with what v adds to it, or the model itself.
func (v *Virtual) disturb(m sim.Model) sim.Model {
	if v.RankDelay == 0 && v.MemoryStop == (Stop{}) {
		return m
	}
	return &disturbed{m, nodes(v.Topology), int64(v.RankDelay), int64(v.MemoryStop.At), int64(v.MemoryStop.At + v.MemoryStop.For)}
}

// away is the delay between two hosts.
func (d *disturbed) away(from, to int) int64 {
	if from >= len(d.node) || to >= len(d.node) || d.node[from] == d.node[to] {
		return 0
	}
	return d.delay
}

// Issue adds the delay on the way to a rank.
func (d *disturbed) Issue(now int64, from, to int, kind rma.Kind, words int, first bool) (free, arrives int64) {
	free, arrives = d.Model.Issue(now, from, to, kind, words, first)
	return free, arrives + d.away(from, to)
}

// Serve has what arrives at a memory node that stands still wait.
func (d *disturbed) Serve(now int64, from, to int, kind rma.Kind, words int, word uint64) (effect int64) {
	if to >= len(d.node) && now >= d.from {
		now = max(now, d.until)
	}
	return d.Model.Serve(now, from, to, kind, words, word)
}

// Reply adds the delay on the way back.
func (d *disturbed) Reply(now int64, from, to int, kind rma.Kind, words int) (done int64) {
	done = d.Model.Reply(now, from, to, kind, words)
	if kind != sim.Message {
		done += d.away(from, to)
	}
	return done
}

// faults stop the ranks of the last node.
func (v *Virtual) faults() (out []sim.TimedFault) {
	if v.NodeStop == (Stop{}) {
		return nil
	}
	node := nodes(v.Topology)
	for r, n := range node {
		if n == node[len(node)-1] {
			out = append(out, sim.TimedFault{Rank: r, At: int64(v.NodeStop.At), For: int64(v.NodeStop.For)})
		}
	}
	return out
}

// visited notes the end of a measured visit, of a run in which something stops.
func (p *virtualRun) visited(now int64) {
	if p == nil || !p.stops {
		return
	}
	for ms := now / 1e6; int64(len(p.timeline)) <= ms; {
		p.timeline = append(p.timeline, 0)
	}
	p.timeline[now/1e6]++
}
