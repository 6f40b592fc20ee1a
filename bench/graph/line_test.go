package graph

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// slow is parse by the standard library.
func slow(line string) (u, v int64, edge, ok bool) {
	line = strings.Trim(line, " \t\r\n")
	if line == "" || line[0] == '#' {
		return 0, 0, false, true
	}
	fields := strings.FieldsFunc(line, func(r rune) bool { return r < utf8.RuneSelf && isBlank(byte(r)) })
	if len(fields) != 2 {
		return 0, 0, false, false
	}
	for _, f := range fields {
		if strings.ContainsAny(f, "+-_") {
			return 0, 0, false, false
		}
	}
	u, err := strconv.ParseInt(fields[0], 10, 64)
	v, err2 := strconv.ParseInt(fields[1], 10, 64)
	if err != nil || err2 != nil {
		return 0, 0, false, false
	}
	return u, v, true, true
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "#", "0 1\n", " 1\t2\r\n", "1 2 3", "9223372036854775807 9223372036854775808", "-1 2", "+1 2", "1 2#", "\r", "1\r2",
		"000000000000000000000000001 2", "922337203685477580 7", "1_0 2", "é 2", "18446744073709551616 0", "92233720368547758070 1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		u, v, edge, bad := parse([]byte(line))
		wu, wv, wedge, ok := slow(line)
		if u != wu || v != wv || edge != wedge || (bad.why == "") != ok {
			t.Errorf("parse(%q) is %d, %d, %v, %q; want %d, %d, %v, ok: %v", line, u, v, edge, bad.why, wu, wv, wedge, ok)
		}
	})
}

func TestShare(t *testing.T) {
	for _, n := range []int64{0, 1, 2, 7, 100, 1<<63 - 1} {
		for _, size := range []int{1, 2, 3, 9, 1000, 1 << 24} {
			for _, rank := range []int{0, 1, size / 2, size - 2, size - 1} {
				if rank < 0 || rank >= size {
					continue
				}
				lo, hi := share(n, rank, size)
				if rank == 0 && lo != 0 || rank == size-1 && hi != n || lo > hi || hi-lo-1 > n/int64(size) || hi-lo < n/int64(size) {
					t.Fatalf("share of rank %d of %d in %d is %d to %d", rank, size, n, lo, hi)
				}
				if rank+1 < size {
					if next, _ := share(n, rank+1, size); next != hi {
						t.Fatalf("rank %d of %d ends at %d, the next begins at %d", rank, size, hi, next)
					}
				}
			}
		}
	}
}

func TestScrambleIsBijective(t *testing.T) {
	for scale := 1; scale <= 12; scale++ {
		for seed := range uint64(20) {
			g, err := NewRMAT(scale, seed)
			if err != nil {
				t.Fatal(err)
			}
			seen := make([]bool, 1<<scale)
			for u := range uint64(len(seen)) {
				v := g.scramble(u)
				if v < 0 || v >= int64(len(seen)) || seen[v] {
					t.Fatalf("scale %d, seed %d: %d becomes %d, a second time or out of range", scale, seed, u, v)
				}
				seen[v] = true
			}
		}
	}
}

// The quadrants come up as often as they should, on every level.
func TestQuadrants(t *testing.T) {
	const scale, edges = 6, 200000
	g, err := NewRMAT(scale, 3)
	if err != nil {
		t.Fatal(err)
	}
	name := make([]uint64, 1<<scale) // undoes the scrambling
	for u := range uint64(len(name)) {
		name[g.scramble(u)] = u
	}
	// Off the diagonal on the first level, the edge is directed on all further ones.
	n, count := 0, [scale][4]int{}
	for i := range uint64(edges) {
		a, b := g.edge(i)
		u, v := name[a], name[b]
		if u > v {
			t.Fatalf("edge %d is below the diagonal: %d, %d", i, u, v)
		}
		if u>>(scale-1) != v>>(scale-1) {
			n++
			for level := 1; level < scale; level++ {
				bit := scale - 1 - level
				count[level][u>>bit&1*2+v>>bit&1]++
			}
		}
	}
	near := func(got, all int, want float64) bool {
		part := float64(got) / float64(all)
		return part > want-0.01 && part < want+0.01
	}
	if !near(n, edges, 0.38) {
		t.Errorf("%d of %d edges leave the diagonal on the first level, want 0.38", n, edges)
	}
	for level := 1; level < scale; level++ {
		for q, want := range []float64{0.57, 0.19, 0.19, 0.05} {
			if !near(count[level][q], n, want) {
				t.Errorf("level %d: quadrant %c has %d of %d, want %v", level, "ABCD"[q], count[level][q], n, want)
			}
		}
	}
}
