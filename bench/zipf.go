package bench

import (
	"math"
	"math/rand/v2"
)

// zipf draws numbers from 0 to n-1, number k about as often as (k+1)^-theta, in constant time
// and memory:
//
//	J. Gray et al.: Quickly Generating Billion-Record Synthetic Databases. SIGMOD 1994,
//
// as YCSB's ZipfianGenerator has it. (Its port to Go adds up all n terms for each client and has
// no theta from 1 on.) The shares of numbers 0 and 1 are exact. The others follow
// a continuous distribution: 2 % of the draws are not where Zipf's law has them. Unlike YCSB it takes
// any theta from 0, which is uniform; 1 is the limit of its neighbours.
type zipf struct {
	n     float64
	zeta  float64 // sum of k^-theta, k from 1 to n
	two   float64 // the same, to 2
	a     float64 // 1 - theta
	ratio float64 // log of 2/n
	eta   float64
}

func newZipf(n int, theta float64) *zipf {
	z := &zipf{n: float64(n), zeta: zeta(n, theta), two: 1 + math.Exp2(-theta), a: 1 - theta, ratio: math.Log(2 / float64(n))}
	if z.a != 0 {
		z.eta = -math.Expm1(z.a*z.ratio) / (1 - z.two/z.zeta)
	} else {
		z.eta = -z.ratio / (1 - z.two/z.zeta)
	}
	return z
}

func (z *zipf) next(rng *rand.Rand) int {
	u := rng.Float64()
	switch at := u * z.zeta; {
	case at < 1 || z.n < 2:
		return 0
	case at < z.two || z.n < 3:
		return 1
	}
	// YCSB's n*(eta*u - eta + 1)^(1/a), which this is for any a, near 0 too.
	x := z.eta * (1 - u)
	if z.a != 0 {
		x = -math.Log1p(-x) / z.a
	}
	return int(min(z.n*math.Exp(-x), z.n-1))
}

// zeta is the sum of k^-theta for k from 1 to n: the first terms, and for those that follow
// their integral with two terms of the Euler-Maclaurin formula, which is exact to 12 digits.
func zeta(n int, theta float64) float64 {
	const exact = 1000
	sum := 0.0
	for k := min(n, exact); k >= 1; k-- { // the small ones first
		sum += math.Pow(float64(k), -theta)
	}
	if n <= exact {
		return sum
	}
	m, a := float64(exact), 1-theta
	integral := math.Log(float64(n) / m)
	if a != 0 {
		integral = math.Pow(m, a) * math.Expm1(a*integral) / a
	}
	f := func(x float64) float64 { return math.Pow(x, -theta)/2 - theta*math.Pow(x, -theta-1)/12 }
	return sum + integral + f(float64(n)) - f(m)
}

// scrambled is YCSB's ScrambledZipfianGenerator: a Zipf distribution over 10^10 items, which a
// hash maps to numbers from 0 to n-1. So the numbers drawn often are anywhere, and all are
// drawn.
type scrambled struct {
	items *zipf
	n     uint64
}

const scrambledItems = 10_000_000_000

func newScrambled(n int, theta float64) *scrambled {
	return &scrambled{newZipf(scrambledItems, theta), uint64(n)}
}

func (s *scrambled) next(rng *rand.Rand) int { return int(fnv64(uint64(s.items.next(rng))) % s.n) }

// fnv64 is the 64-bit FNV-1a hash of a word's bytes, the lowest first, as an integer without
// sign bit, as in YCSB.
func fnv64(v uint64) uint64 {
	h := uint64(0xCBF29CE484222325)
	for range 8 {
		h = (h ^ v&0xff) * 0x100000001B3
		v >>= 8
	}
	if int64(h) < 0 {
		h = -h
	}
	return h
}
