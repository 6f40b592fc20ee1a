package topo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTreeLosesNothing reads printed trees back, with folded lines unfolded, and
// finds every element with its label, its ranks and its place in the tree.
func TestTreeLosesNothing(t *testing.T) {
	check := func(topo *Topology) {
		var want []string
		var walk func(level, element int, path string)
		walk = func(level, element int, path string) {
			path += fmt.Sprintf("/%s %s", topo.levels[level].name, topo.Label(level, element))
			want = append(want, fmt.Sprint(path, topo.Ranks(level, element)))
			if level+1 < len(topo.levels) {
				for _, k := range topo.children(level, element) {
					walk(level+1, k, path)
				}
			}
		}
		walk(0, 0, "")
		var b strings.Builder
		require.NoError(t, topo.WriteTree(&b))
		lines := readTree(t, b.String())
		require.ElementsMatch(t, want, unfold(lines, 0, len(lines), "", 0), b.String())
	}
	for _, text := range []string{"rack:2 node:4 numa:2 core:4", "node:3 rank:5", "node:12 core:1", "rank:3", "rack:1 node:1 core:1"} {
		topo, err := Parse(text)
		require.NoError(t, err)
		check(topo)
	}
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		nodes, cores, skew := 1+rnd.IntN(6), 1+rnd.IntN(6), rnd.IntN(3)
		var places []Place
		for r := range nodes * cores {
			p := at(r/cores, Set(strconv.Itoa(r%cores/2)), MakeSet(r%cores))
			if skew > 0 && rnd.IntN(10*skew) == 0 {
				p.Inside[1].IDs = "0-1"
			}
			places = append(places, p)
		}
		switch rnd.IntN(3) {
		case 0:
			rnd.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
		case 1: // round robin
			slices.SortStableFunc(places, func(a, b Place) int { return int(a.CPUs[0]) - int(b.CPUs[0]) })
		}
		check(build(t, places...))
	}
}

// treeLine is a line of a tree: n elements that are alike.
type treeLine struct {
	depth, n, step int
	name, first    string
	ranks          []int // of the first
}

func readTree(t *testing.T, text string) (lines []treeLine) {
	for line := range strings.Lines(text) {
		at := strings.Index(line, "rank")
		if at < 0 || line[0] == '(' || strings.HasPrefix(line, "note: ") {
			continue
		}
		left, right := strings.TrimRight(line[:at], " "), strings.TrimSpace(line[at:])
		l := treeLine{n: 1}
		bare := strings.TrimLeft(left, " │├└─")
		l.depth = (len([]rune(left)) - len([]rune(bare))) / 3
		var times bool
		var count string
		bare, count, times = strings.Cut(bare, " ×")
		if times {
			l.n = atoi(t, count)
		}
		l.name, l.first, _ = strings.Cut(bare, " ")
		if l.name == "machine" {
			l.first = "0"
		}
		if times { // "0-3" or "n[01-04]"
			l.first, _, _ = strings.Cut(strings.Replace(l.first, "[", "", 1), "-")
		}
		right = strings.TrimPrefix(strings.TrimPrefix(right, "ranks "), "rank ")
		switch list, per, each := strings.Cut(right, ", "); {
		case times && each: // "0-31, 8 each"
			l.ranks = readRanks(t, list)
			l.step = 1
			if per != "one each" {
				l.step = atoi(t, strings.TrimSuffix(per, " each"))
			}
			require.Len(t, l.ranks, l.n*l.step)
			l.ranks = l.ranks[:l.step]
		case times: // "0,4; 1,5; ...; 3,7"
			parts := strings.Split(right, "; ")
			l.ranks = readRanks(t, parts[0])
			l.step = readRanks(t, parts[1])[0] - l.ranks[0]
			require.Equal(t, l.ranks[0]+l.step*(l.n-1), readRanks(t, parts[len(parts)-1])[0])
		default:
			l.ranks = readRanks(t, right)
		}
		lines = append(lines, l)
	}
	return lines
}

// unfold lists the elements of lines from a to b, ranks shifted.
func unfold(lines []treeLine, a, b int, path string, shift int) (out []string) {
	for a < b {
		l := lines[a]
		end := a + 1
		for end < b && lines[end].depth > l.depth {
			end++
		}
		for k := range l.n {
			label := l.first
			if k > 0 {
				label = after(l.first, k)
			}
			here := fmt.Sprintf("%s/%s %s", path, l.name, label)
			ranks := slices.Clone(l.ranks)
			for i := range ranks {
				ranks[i] += shift + k*l.step
			}
			out = append(out, fmt.Sprint(here, ranks))
			out = append(out, unfold(lines, a+1, end, here, shift+k*l.step)...)
		}
		a = end
	}
	return out
}

func readRanks(t *testing.T, list string) []int {
	if span, step, ok := strings.Cut(list, ":"); ok {
		var out []int
		lo, hi, _ := strings.Cut(span, "-")
		for r := atoi(t, lo); r <= atoi(t, hi); r += atoi(t, step) {
			out = append(out, r)
		}
		return out
	}
	s, err := ParseSet(list)
	require.NoError(t, err)
	return slices.Collect(s.All())
}

func atoi(t *testing.T, text string) int {
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}
