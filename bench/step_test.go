package bench

import (
	"testing"

	"github.com/rmalock/rmalock/lock"
)

// homes is a table of which only the homes matter.
type homes struct {
	lock.Table
	of []int
}

func (h homes) Len() int        { return len(h.of) }
func (h homes) Home(id int) int { return h.of[id] }

// TestEachLockHasItsWord: no two locks guard the same word, and locks that go round the hosts
// take no more words than they need.
func TestEachLockHasItsWord(t *testing.T) {
	for _, c := range []struct {
		of         []int
		hosts, row int // and the words of a host
	}{
		{[]int{0}, 1, 2},
		{[]int{0, 1, 2, 0, 1}, 3, 4},
		{[]int{2, 0, 1, 0, 2, 1}, 3, 4}, // in any order
		{[]int{0, 0, 0, 0}, 3, 8},
		{[]int{0, 0, 0, 0}, 1, 8}, // one memory node
		{[]int{0, 1, 2, 1, 1}, 3, 10},
		{[]int{1, 2, 1, 2, 2, 1}, 4, 6}, // only some ranks serve
		{[]int{1, 2, 1, 1}, 4, 8},
	} {
		table := homes{of: c.of}
		g := &guarded{table: table, each: 2, step: step(table, c.hosts)}
		type place struct{ host, disp int }
		seen := map[place]bool{}
		for id := range c.of {
			for number := range 2 {
				host, disp := g.word(id, number)
				if seen[place{host, disp}] || host != c.of[id] || disp >= c.row {
					t.Errorf("homes %v: word %d of lock %d is word %d of host %d", c.of, number, id, disp, host)
				}
				seen[place{host, disp}] = true
			}
		}
	}
	if got := step(homes{of: []int{0, 1, 5}}, 2); got != ^2 {
		t.Errorf("step is %d, want one that names lock 2", got)
	}
}
