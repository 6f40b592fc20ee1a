package topo

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// at is a place on a node that describes numa and core.
func at(node int, numa, core Set) Place {
	return Place{Host: fmt.Sprintf("n%02d", node+1), Node: node, CPUs: core, Inside: []Span{{"numa", numa}, {"core", core}}}
}

// build is Build, with its invariants checked.
func build(t *testing.T, places ...Place) *Topology {
	t.Helper()
	topo, err := Build(places)
	require.NoError(t, err)
	require.Equal(t, len(places), topo.Size())
	checkInvariants(t, topo)
	return topo
}

// elements lists e(p,i) of all ranks at a level.
func elements(t *testing.T, topo *Topology, name string) []int {
	t.Helper()
	level, ok := topo.Find(name)
	require.True(t, ok, "level %s of %v", name, topo.Levels())
	var out []int
	for r := range topo.Size() {
		out = append(out, topo.Element(r, level))
	}
	return out
}

func TestUnequalElements(t *testing.T) {
	topo := build(t,
		at(0, "0", "0"), at(0, "0", "1"), at(0, "1", "2"),
		at(1, "0", "0"),
		at(2, "0", "0"), at(2, "0", "0"), at(2, "0", "1"), at(2, "3", "9"))
	require.Equal(t, []Level{{"machine", 1}, {"node", 3}, {"numa", 5}, {"core", 7}}, topo.Levels())
	require.Equal(t, []int{0, 0, 0, 1, 2, 2, 2, 2}, elements(t, topo, "node"))
	require.Equal(t, []int{0, 0, 1, 2, 3, 3, 3, 4}, elements(t, topo, "numa"))
	require.Equal(t, []int{0, 1, 2, 3, 4, 4, 5, 6}, elements(t, topo, "core"))
	require.Equal(t, "n03", topo.Label(1, 2))
	require.Equal(t, "3", topo.Label(2, 4), "the system's number")
	require.Equal(t, Set("9"), topo.CPUs(7))
	require.Empty(t, topo.Notes())
	require.Equal(t, "8 ranks, 3 x node, 5 x numa, 7 x core, unequal or not consecutive", topo.String())
}

func TestRanksNeedNotBeConsecutive(t *testing.T) {
	// Dealt round robin: rank r is on node r%3, on NUMA node r/3%2 of it.
	var places []Place
	for r := range 12 {
		places = append(places, at(r%3, Set(fmt.Sprint(r/3%2)), Set(fmt.Sprint(r/3))))
	}
	topo := build(t, places...)
	require.Equal(t, []int{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}, elements(t, topo, "node"))
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}, elements(t, topo, "numa"))
	require.Equal(t, []int{0, 3, 6, 9}, topo.Ranks(1, 0))
	require.Equal(t, []int{4, 10}, topo.Ranks(2, 4))

	// Nodes come in the order of their lowest rank, whatever they are called.
	topo = build(t, at(7, "", ""), at(3, "", ""), at(7, "", ""))
	require.Equal(t, []int{0, 1, 0}, elements(t, topo, "node"))
	require.Equal(t, "n08", topo.Label(1, 0))
}

func TestRanksIsTheCallersSlice(t *testing.T) {
	topo := build(t, at(0, "0", "0"), at(0, "0", "1"))
	topo.Ranks(0, 0)[0] = 99
	require.Equal(t, []int{0, 1}, topo.Ranks(0, 0))
}

func TestUnboundRankMergesItsElement(t *testing.T) {
	// Node 0: NUMA node 0 has ranks bound to cores, NUMA node 1 has one that is not.
	// Node 1: one rank may run anywhere.
	topo := build(t,
		at(0, "0", "0"), at(0, "0", "1"), at(0, "1", "2"), at(0, "1", "2-3"),
		at(1, "0", "0"), at(1, "0-1", "0-3"), at(1, "1", "3"))
	require.Equal(t, []Level{{"machine", 1}, {"node", 2}, {"numa", 3}, {"core", 4}}, topo.Levels())
	require.Equal(t, []int{0, 0, 1, 1, 2, 2, 2}, elements(t, topo, "numa"))
	require.Equal(t, []int{0, 1, 2, 2, 3, 3, 3}, elements(t, topo, "core"))
	require.False(t, topo.Merged(1, 1))
	require.False(t, topo.Merged(2, 1))
	require.True(t, topo.Merged(2, 2))
	require.Equal(t, "any of 0-1", topo.Label(2, 2))
	require.False(t, topo.Merged(3, 1))
	require.True(t, topo.Merged(3, 2))
	require.Equal(t, "any of 2-3", topo.Label(3, 2))
	require.Equal(t, "any of 0-3", topo.Label(3, 3))
	require.Equal(t, []string{
		"merged numa for ranks 4-6: not each rank there is bound to one",
		"merged core for ranks 2-6: not each rank there is bound to one",
	}, topo.Notes())
}

func TestUnboundEverywhereLeavesLevelsOut(t *testing.T) {
	topo := build(t, at(0, "0-1", "0-3"), at(0, "0-1", "0-3"), at(1, "0-1", "0-3"))
	require.Equal(t, []Level{{"machine", 1}, {"node", 2}}, topo.Levels())
	require.Equal(t, []string{"left out numa, core: no element has each of its ranks bound to one (rank 0 may run on numa 0-1)"}, topo.Notes())

	// To the NUMA node, but not to the core.
	topo = build(t, at(0, "0", "0-1"), at(0, "0", "0-1"), at(0, "1", "2-3"))
	require.Equal(t, []Level{{"machine", 1}, {"node", 1}, {"numa", 2}}, topo.Levels())
	require.Equal(t, []string{"left out core: no element has each of its ranks bound to one (rank 0 may run on core 0-1)"}, topo.Notes())
}

func TestUnknownPlaces(t *testing.T) {
	topo := build(t, at(0, "", ""), at(1, "", ""))
	require.Equal(t, []Level{{"machine", 1}, {"node", 2}}, topo.Levels())
	require.Equal(t, []string{"left out numa, core: no rank knows its place there"}, topo.Notes())
	require.Equal(t, Set(""), topo.CPUs(1))

	topo = build(t, at(0, "0", "0"), at(0, "1", "1"), at(1, "", ""), at(1, "0", "0"))
	require.Equal(t, []int{0, 1, 2, 2}, elements(t, topo, "numa"))
	require.Equal(t, "unknown", topo.Label(2, 2))
	require.Equal(t, Set("1"), topo.CPUs(1))
	require.Equal(t, Set(""), topo.CPUs(2))
}

func TestLevelsThatSplitNothingAreLeftOut(t *testing.T) {
	topo := build(t, at(0, "0", "0"), at(0, "0", "1"), at(1, "0", "0"))
	require.Equal(t, []Level{{"machine", 1}, {"node", 2}, {"core", 3}}, topo.Levels())
	require.Equal(t, []string{"left out numa: splits nothing that another level does not"}, topo.Notes())

	// One node keeps its level, and so does a job of one rank.
	topo = build(t, at(5, "0", "0"))
	require.Equal(t, []Level{{"machine", 1}, {"node", 1}}, topo.Levels())
	require.Equal(t, []string{"left out numa, core: splits nothing that another level does not"}, topo.Notes())
}

func TestRacks(t *testing.T) {
	in := func(rack string, node int) Place {
		p := at(node, "0", "0")
		p.Above = []Part{{"spine", "s"}, {"switch", rack}}
		return p
	}
	// Unequal, not consecutive, with one rank in rack C.
	topo := build(t, in("A", 0), in("B", 1), in("A", 0), in("C", 2), in("B", 3), in("B", 1), in("A", 4))
	require.Equal(t, []Level{{"machine", 1}, {"switch", 3}, {"node", 5}}, topo.Levels())
	require.Equal(t, []int{0, 1, 0, 2, 1, 1, 0}, elements(t, topo, "switch"))
	require.Equal(t, []int{0, 1, 0, 2, 3, 1, 4}, elements(t, topo, "node"))
	require.Equal(t, "B", topo.Label(1, 1))
	require.Equal(t, []int{1, 4, 5}, topo.Ranks(1, 1))

	// A rack for each node says nothing more than the nodes.
	topo = build(t, in("A", 0), in("B", 1))
	require.Equal(t, []Level{{"machine", 1}, {"node", 2}}, topo.Levels())
	require.Contains(t, topo.Notes(), "left out spine, switch: splits nothing that another level does not")
}

func TestNodesOfOneHost(t *testing.T) {
	places := []Place{{Host: "vm", Node: 0}, {Host: "vm", Node: 1}, {Host: "b", Node: 2}, {Node: 3}}
	topo := build(t, places...)
	var labels []string
	for e := range topo.Elements(1) {
		labels = append(labels, topo.Label(1, e))
	}
	require.Equal(t, []string{"vm#0", "vm#1", "b", "3"}, labels)
	require.Equal(t, []string{"nodes 0-1 have one host name, vm, but share no memory: containers, or nodes of pretence"}, topo.Notes())
}

func TestNotesOfRanks(t *testing.T) {
	places := []Place{{Node: 0, Notes: []string{"x", "y"}}, {Node: 0, Notes: []string{"x"}}, {Node: 1, Notes: []string{"y", "x"}}}
	topo := build(t, places...)
	require.Equal(t, []string{"x", "ranks 0,2: y"}, topo.Notes())
	topo.Notes()[0] = "changed"
	require.Equal(t, "x", topo.Notes()[0])
}

func TestBuildErrors(t *testing.T) {
	ok := at(0, "0", "0")
	above := func(level, name string) Place { return Place{Above: []Part{{level, name}}} }
	inside := func(levels ...string) Place {
		var p Place
		for _, l := range levels {
			p.Inside = append(p.Inside, Span{Level: l, IDs: "0"})
		}
		return p
	}
	for _, c := range []struct {
		want   string
		places []Place
	}{
		{"0 places, want one per rank", nil},
		{`rank 1: cpus: list "0-x": "0-x" is neither`, []Place{ok, at(0, "0", "0-x")}},
		{`rank 1: numa: list "1,": "" is neither`, []Place{ok, at(0, "1,", "0")}},
		{"rank 1: node -1, want a number from 0", []Place{ok, at(-1, "0", "0")}},
		{"rank 0 lists the levels node numa core, rank 1 lists node", []Place{ok, {}}},
		{"rank 0 lists the levels rack node, rank 1 lists rack row node", []Place{above("rack", "A"), {Above: []Part{{"rack", "A"}, {"row", "A"}}}}},
		{"rank 0 lists the levels rack row node, rank 1 lists rack row node", []Place{{Above: []Part{{"rack", "A"}, {"row", "A"}}}, above("rack row", "A")}},
		{`ranks 0 and 2 share node 0, but lie in rack "A" and "B"`, []Place{above("rack", "A"), {Node: 1, Above: []Part{{"rack", "B"}}}, above("rack", "B")}},
		{`rank 0: level "numa" occurs twice`, []Place{inside("numa", "numa")}},
		{`rank 0: level "node" occurs twice`, []Place{above("node", "A")}},
		{`rank 0: level "machine" occurs twice`, []Place{above("machine", "A")}},
		{"rank 0: a node cannot be inside a numa", []Place{above("numa", "A")}},
		{"rank 0: a numa cannot be inside a core", []Place{inside("core", "numa")}},
		{`rank 0: level "": a name is`, []Place{inside("")}},
		{`rank 0: level "rank": a name is`, []Place{inside("rank")}},
		{"rank 0: more than 16 levels", []Place{inside("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o")}},
	} {
		topo, err := Build(c.places)
		require.Nil(t, topo, c.want)
		require.ErrorIs(t, err, ErrTopology)
		require.ErrorContains(t, err, "topo: "+c.want)
	}
}

// TestRandomPlaces builds random shapes, and prints them.
func TestRandomPlaces(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		some := func() Set {
			switch rnd.IntN(8) {
			case 0:
				return ""
			case 1:
				return "0-1"
			}
			return MakeSet(rnd.IntN(3))
		}
		places := make([]Place, 1+rnd.IntN(40))
		for r := range places {
			node := rnd.IntN(5)
			places[r] = at(node, some(), some())
			places[r].Above = []Part{{"rack", fmt.Sprint(node % 2)}}
		}
		topo := build(t, places...)
		require.NoError(t, topo.WriteTree(io.Discard))
		require.NoError(t, topo.WriteRanks(io.Discard))
		b, err := json.Marshal(topo)
		require.NoError(t, err)
		require.True(t, json.Valid(b))
		for r, p := range places {
			for i, s := range p.Inside {
				level, ok := topo.Find(s.Level)
				if !ok {
					continue
				}
				e := topo.Element(r, level)
				if _, bound := s.IDs.One(); !bound {
					require.True(t, topo.Merged(level, e), "seed %d: rank %d is not bound", seed, r)
				} else if !topo.Merged(level, e) {
					require.Equal(t, string(s.IDs), topo.Label(level, e))
					for _, q := range topo.Ranks(level, e) {
						require.Equal(t, s.IDs, places[q].Inside[i].IDs, "seed %d: ranks %d and %d", seed, r, q)
					}
				}
			}
		}
	}
}

func TestManyGoroutinesMayUseATopology(t *testing.T) {
	topo := build(t, at(0, "0", "0"), at(0, "1", "1"), at(1, "0", "0"), at(1, "1", "1"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for r := range topo.Size() {
				for i := range topo.Levels() {
					_ = topo.Ranks(i, topo.Element(r, i))
				}
			}
			_ = topo.WriteTree(io.Discard)
			_, _ = json.Marshal(topo)
		})
	}
	wg.Wait()
}
