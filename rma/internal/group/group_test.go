package group_test

import (
	"reflect"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/internal/group"
)

func TestNodesByLowestRank(t *testing.T) {
	nodes, index := group.Nodes([]int{7, 3, 7, 5})
	want := []rma.Node{{Index: 0, Count: 3, Ranks: []int{0, 2}}, {Index: 1, Count: 3, Ranks: []int{1}}, {Index: 2, Count: 3, Ranks: []int{3}}}
	if !reflect.DeepEqual(nodes, want) || !reflect.DeepEqual(index, []int32{0, 1, 0, 2}) {
		t.Errorf("%+v, %v", nodes, index)
	}
}

func TestPartsByColorKeyAndRank(t *testing.T) {
	m := func(color, key, rank int) group.Member { return group.Member{Color: color, Key: key, Rank: rank} }
	got := group.Parts([]any{m(2, 0, 0), m(-1, 0, 1), m(1, 5, 2), m(2, -1, 3), m(1, 5, 4), m(2, 0, 5)})
	want := [][]group.Member{{m(1, 5, 2), m(1, 5, 4)}, {m(2, -1, 3), m(2, 0, 0), m(2, 0, 5)}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	if got := group.Parts([]any{m(-1, 0, 0)}); got != nil {
		t.Errorf("%v", got)
	}
}
