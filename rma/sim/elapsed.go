package sim

import "github.com/rmalock/rmalock/rma"

// Elapsed is what a run took.
type Elapsed struct {
	Now        int64 // virtual time at the end
	Operations int64 // on windows, polls included
	Events     int64 // of the simulation
	// Of the operations, those through a network, by kind: on ranks and on memory nodes, polls
	// and messages apart. The rest were done by CPUs in node memory.
	Ranks, Memory Traffic
	Messages      int64
}

// Traffic counts operations through a network towards one sort of hosts.
type Traffic struct {
	Kinds [rma.Kinds]int64 // as the network does them: under MPI Gets of far words are FetchAndOps
	Polls int64            // of an Await, which Kinds has not
}

// Total is the number of operations.
func (t *Traffic) Total() int64 {
	sum := t.Polls
	for _, n := range t.Kinds {
		sum += n
	}
	return sum
}

// Minus is what was done since an earlier Elapsed.
func (e Elapsed) Minus(earlier Elapsed) Elapsed {
	e.Now -= earlier.Now
	e.Operations -= earlier.Operations
	e.Events -= earlier.Events
	e.Messages -= earlier.Messages
	for i, t := range []*Traffic{&e.Ranks, &e.Memory} {
		was := [...]*Traffic{&earlier.Ranks, &earlier.Memory}[i]
		t.Polls -= was.Polls
		for k := range t.Kinds {
			t.Kinds[k] -= was.Kinds[k]
		}
	}
	return e
}
