package degree

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/rmalock/rmalock/bench/graph"
	"github.com/rmalock/rmalock/rma"
)

// read reads the rank's share and learns from all how many edges there are, and
// about how many vertices.
func (j *job) read() error {
	guess, _ := j.cfg.Source.Estimate()
	room := guess/int64(j.c.Size())*2 + 64
	j.ends = make([]int64, 0, min(room, 1<<24)) // a guess: grown from there
	least, greatest := int64(math.MaxInt64), int64(-1)
	var s sketch
	err := j.cfg.Source.Edges(j.c.Rank(), j.c.Size(), func(u, v int64) error {
		if u < 0 || v < 0 {
			return fmt.Errorf("degree: %v has an edge from %d to %d, vertices are at least 0: %w", j.cfg.Source, u, v, ErrConfig)
		}
		j.ends = append(j.ends, u, v)
		least, greatest = min(least, u, v), max(greatest, u, v)
		s.add(u)
		s.add(v)
		return nil
	})
	if err := rma.Agree(j.c, err); err != nil {
		return err
	}
	words := append([]int64{int64(len(j.ends) / 2), least, greatest}, s.words()...)
	all, err := j.c.Allgather(words)
	if err != nil {
		return err
	}
	for per := len(words); len(all) > 0; all = all[per:] {
		j.edges += all[0]
		least, greatest = min(least, all[1]), max(greatest, all[2])
		s.merge(all[3:per])
	}
	if j.edges == 0 {
		return fmt.Errorf("degree: %v: %w", j.cfg.Source, graph.ErrNoEdges)
	}
	j.most = min(2*j.edges, s.most())
	if spread := greatest - least; spread < j.most {
		j.most = spread + 1
	}
	return nil
}

// A sketch estimates how many different vertices it was shown (P. Flajolet et al.:
// HyperLogLog. AofA 2007). Vertex names may be scattered over 63 bits: without it,
// a table for a social network would be sized for twice its edges, a factor of
// ten or more.
type sketch [registers]uint8

const (
	registers = 256
	// The standard error is 1.04/sqrt(256) = 6.5 %; this is six of them.
	sketchMargin = 1.39
)

// add shows it a vertex.
func (s *sketch) add(v int64) {
	// The finaliser of MurmurHash3, so that the table's hash has no part in it.
	h := uint64(v)
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	zeros := uint8(bits.LeadingZeros64(h<<8 | 1<<7))
	if r := &s[h>>56]; *r <= zeros {
		*r = zeros + 1
	}
}

// most is an estimate from above.
func (s *sketch) most() int64 {
	sum, zero := 0.0, 0
	for _, r := range s {
		sum += math.Ldexp(1, -int(r))
		if r == 0 {
			zero++
		}
	}
	const m = registers
	n := 0.7213 / (1 + 1.079/m) * m * m / sum
	if n <= 2.5*m && zero > 0 { // few: linear counting is better
		n = m * math.Log(m/float64(zero))
	}
	return int64(math.Ceil(n*sketchMargin)) + 16
}

// words are the registers, eight to a word.
func (s *sketch) words() []int64 {
	words := make([]int64, registers/8)
	for i, r := range s {
		words[i/8] |= int64(r) << (i % 8 * 8)
	}
	return words
}

// merge makes it the sketch of what either was shown.
func (s *sketch) merge(words []int64) {
	for i := range s {
		s[i] = max(s[i], uint8(words[i/8]>>(i%8*8)))
	}
}
