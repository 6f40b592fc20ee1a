package bench

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

const draws = 400_000

// fits fails if what a source draws is not distributed as share says, by Pearson's chi-square
// test. A right source fails it for one seed in a million; the seed is fixed.
func fits(t *testing.T, what string, s source, n int, share func(k int) float64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	count := make([]float64, n)
	for range draws {
		count[s.next(rng)]++
	}
	var seen, expected []float64
	var binSeen, binExpected, total float64
	for k := range n { // bins that are large enough for the test
		binSeen += count[k]
		binExpected += share(k) * draws
		total += share(k)
		if binExpected >= 20 || k == n-1 {
			seen, expected = append(seen, binSeen), append(expected, binExpected)
			binSeen, binExpected = 0, 0
		}
	}
	if math.Abs(total-1) > 1e-9 {
		t.Fatalf("%s: the shares add up to %v", what, total)
	}
	chi2 := stat.ChiSquare(seen, expected)
	if len(seen) == 1 {
		return
	}
	if p := (distuv.ChiSquared{K: float64(len(seen) - 1)}).Survival(chi2); p < 1e-6 {
		t.Errorf("%s: chi-square is %.1f in %d bins, which has probability %.2g", what, chi2, len(seen), p)
	}
}

// generated is the share of number k in what Gray's generator draws, from its definition.
func generated(n int, theta float64) func(k int) float64 {
	z := 0.0
	for k := 1; k <= n; k++ {
		z += math.Pow(float64(k), -theta)
	}
	two := (1 + math.Pow(2, -theta)) / z
	below := func(k int) float64 { // the share of numbers less than k
		a := 1 - theta
		if a == 0 {
			a = 1e-7
		}
		x, y := math.Pow(float64(k)/float64(n), a), math.Pow(2/float64(n), a)
		return 1 - (1-two)*(1-x)/(1-y)
	}
	return func(k int) float64 {
		if k < 2 {
			return math.Pow(float64(k+1), -theta) / z
		}
		return below(k+1) - below(k)
	}
}

func TestZipfIsGraysGenerator(t *testing.T) {
	for _, n := range []int{1, 2, 3, 10, 1000, 20_000} {
		for _, theta := range []float64{0.1, 0.5, 0.9, 0.99, 1, 1.1, 1.2, 3} {
			k := Keys{Theta: theta}
			fits(t, k.String(), k.over(n), n, generated(n, theta))
		}
	}
}

// TestZipfIsZipf: the generator's distribution is about Zipf's: the shares of the first two are
// exact, and few draws in a hundred would have to be moved.
func TestZipfIsZipf(t *testing.T) {
	for _, n := range []int{100, 10_000, 1_000_000} {
		for _, theta := range []float64{0.5, 0.99, 1.2} {
			z, apart := zeta(n, theta), 0.0
			got := generated(n, theta)
			for k := range n {
				apart += math.Abs(got(k)-math.Pow(float64(k+1), -theta)/z) / 2
			}
			if apart > 0.03 {
				t.Errorf("n %d, theta %g: %.1f %% of the draws are elsewhere", n, theta, 100*apart)
			}
			t.Logf("n %d, theta %g: %.2f %% of the draws are elsewhere", n, theta, 100*apart)
		}
	}
}

func TestUniformAndHot(t *testing.T) {
	fits(t, "uniform", Keys{}.over(1000), 1000, func(int) float64 { return 1.0 / 1000 })
	fits(t, "theta 0", newZipf(1000, 0), 1000, func(int) float64 { return 1.0 / 1000 })
	k := Keys{HotSet: 0.2, HotShare: 0.8}
	fits(t, k.String(), k.over(100), 100, func(k int) float64 {
		if k < 20 {
			return 0.8 / 20
		}
		return 0.2 / 80
	})
	fits(t, "one lock", k.over(1), 1, func(int) float64 { return 1 })
}

// TestScrambled: the hash takes each item to a lock: the first million are added up one by one,
// the others, of which each has little, evenly.
func TestScrambled(t *testing.T) {
	const n, few = 100, 1_000_000
	for _, theta := range []float64{0.5, 0.99, 1.2} {
		items := generatedOf(newZipf(scrambledItems, theta))
		share := make([]float64, n)
		rest := 1.0
		for k := range few {
			v := items(k)
			share[fnvOf(k)%n] += v
			rest -= v
		}
		for i := range share {
			share[i] += rest / n
		}
		fits(t, Keys{Theta: theta, Scrambled: true}.String(), newScrambled(n, theta), n, func(k int) float64 { return share[k] })
	}
}

// generatedOf is generated with the sum of a large n.
func generatedOf(z *zipf) func(k int) float64 {
	below := func(k int) float64 {
		x := math.Expm1(z.a * math.Log(float64(k)/z.n))
		return 1 - (1-z.two/z.zeta)*x/math.Expm1(z.a*z.ratio)
	}
	return func(k int) float64 {
		if k < 2 {
			return math.Pow(float64(k+1), z.a-1) / z.zeta
		}
		return below(k+1) - below(k)
	}
}

// fnvOf is YCSB's hash by the library's.
func fnvOf(k int) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(k)))
	return uint64(max(int64(h.Sum64()), -int64(h.Sum64())))
}

func TestHashIsFNV(t *testing.T) {
	for _, k := range []int{0, 1, 255, 256, 1 << 40, scrambledItems - 1} {
		if got := fnv64(uint64(k)); got != fnvOf(k) {
			t.Errorf("the hash of %d is %d, want %d", k, got, fnvOf(k))
		}
	}
}

func TestZeta(t *testing.T) {
	for _, theta := range []float64{0, 0.5, 0.99, 1, 1.2, 3} {
		for _, n := range []int{1, 999, 1000, 1001, 100_000} {
			sum := 0.0
			for k := n; k >= 1; k-- {
				sum += math.Pow(float64(k), -theta)
			}
			if got := zeta(n, theta); math.Abs(got-sum) > 1e-10*sum {
				t.Errorf("zeta(%d, %g) is %.15g, want %.15g", n, theta, got, sum)
			}
		}
	}
	// The constant in YCSB's ScrambledZipfianGenerator.
	if got, want := zeta(scrambledItems, 0.99), 26.46902820178302; math.Abs(got-want) > 1e-6 {
		t.Errorf("zeta of 10^10 items is %.14g, YCSB has %.16g", got, want)
	}
}

// TestDrawsAgain: equal seeds draw equal numbers, and nothing allocates.
func TestDrawsAgain(t *testing.T) {
	for _, k := range []Keys{{}, {Theta: 0.99}, {Theta: 0.99, Scrambled: true}, {HotSet: 0.1, HotShare: 0.9}} {
		s := k.over(1000)
		a, b := rand.New(rand.NewPCG(3, 4)), rand.New(rand.NewPCG(3, 4))
		for range 1000 {
			if x, y := s.next(a), s.next(b); x != y {
				t.Fatalf("%v: %d and %d with one seed", k, x, y)
			}
		}
		if n := testing.AllocsPerRun(100, func() { s.next(a) }); n != 0 {
			t.Errorf("%v: a draw makes %v allocations", k, n)
		}
	}
}

func TestParseKeys(t *testing.T) {
	for _, text := range []string{"uniform", "zipf:0.99", "zipf:1", "scrambled:1.2", "hot:0.2:0.8", "hot:0.01:1"} {
		k, err := ParseKeys(text)
		if err != nil || k.String() != text {
			t.Errorf("%q is %+v, in text %q, error %v", text, k, k, err)
		}
	}
	for _, text := range []string{"", "zipf", "zipf:x", "zipf:-1", "zipf:4", "zipf:NaN", "zipf:1:2", "scrambled", "uniform:1", "hot:0.2", "hot:0:1", "hot:1:0.5", "hot:0.5:2", "hot:0.5:-1", "hot"} {
		if k, err := ParseKeys(text); !errors.Is(err, ErrConfig) {
			t.Errorf("%q is %+v, error %v; want ErrConfig", text, k, err)
		}
	}
}
