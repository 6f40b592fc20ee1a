package degree

import (
	"math/rand/v2"
	"testing"
)

// The estimate is above the number of vertices, and not far above, for any size
// and way of naming, and in parts.
func TestSketch(t *testing.T) {
	for _, n := range []int64{1, 2, 10, 100, 500, 640, 1000, 10_000, 100_000} {
		for seed := range uint64(8) {
			random := rand.New(rand.NewPCG(seed, uint64(n)))
			start, step := random.Int64N(1<<40), int64(1)<<random.IntN(20)
			var a, b sketch
			for i := range n {
				v := start + i*step
				if i%3 == 0 {
					a.add(v)
				} else {
					b.add(v)
					b.add(v)
				}
			}
			a.merge(b.words())
			if most := a.most(); most < n || most > n*19/10+20 {
				t.Errorf("%d vertices from %d by %d: estimate %d", n, start, step, most)
			}
		}
	}
}
