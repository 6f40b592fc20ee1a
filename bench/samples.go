package bench

import (
	"encoding/binary"
	"errors"
	"maps"
	"math/bits"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// maxTracked is the longest wait in ps that counts as it is.
const maxTracked = 100e12

// samples counts values by the buckets of a histogram of three digits: lower bound of the
// bucket -> count. It takes memory for the buckets in use alone, and the histogram 300 KiB:
// each rank has samples, and a process may have ten thousand ranks.
type samples map[int64]int64

// significant is how many bits of a value tell its bucket.
const significant = 11

// record counts a value n times.
func (s samples) record(v int64, n int) {
	s[bucket(v)] += int64(n)
}

// bucket is the lower bound of a value's bucket.
func bucket(v int64) int64 {
	v = min(max(v, 0), maxTracked)
	drop := max(0, bits.Len64(uint64(v))-significant)
	return v >> drop << drop
}

// add adds samples.
func (s samples) add(o samples) {
	for v, n := range o {
		s[v] += n
	}
}

// median is the upper bound of the bucket that holds the median; 0 without values.
func (s samples) median() int64 {
	total := int64(0)
	for _, n := range s {
		total += n
	}
	half := (total + 1) / 2
	for _, v := range slices.Sorted(maps.Keys(s)) {
		if half -= s[v]; half <= 0 {
			return v | (1<<max(0, bits.Len64(uint64(v))-significant) - 1)
		}
	}
	return 0
}

// encode is the inverse of merge.
func (s samples) encode() []byte {
	var b []byte
	for v, n := range s {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(v)), uint64(n))
	}
	return b
}

var errSamples = errors.New("bench: a rank's samples arrived garbled; do all ranks run the same program?")

// merge adds samples that encode made.
func (s samples) merge(b []byte) error {
	for len(b) > 0 {
		v, k := binary.Uvarint(b)
		n, l := binary.Uvarint(b[max(0, k):])
		if k <= 0 || l <= 0 || v > maxTracked {
			return errSamples
		}
		s[int64(v)] += int64(n)
		b = b[k+l:]
	}
	return nil
}

// histogram has the samples.
func (s samples) histogram() *hdrhistogram.Histogram {
	h := hdrhistogram.New(1, maxTracked, 3)
	s.fill(h)
	return h
}

// fill makes h, a histogram that histogram made, that of the samples.
func (s samples) fill(h *hdrhistogram.Histogram) {
	h.Reset()
	for v, n := range s {
		_ = h.RecordValues(v, n) // cannot fail: record keeps values below the limit
	}
}
