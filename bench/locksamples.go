package bench

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
)

// busiest is how many locks a Result has figures of.
const busiest = 16

// lockSamples counts times by lock and bucket. It takes memory for the locks that were
// acquired, and the buckets in use of each, alone.
type lockSamples map[lockBucket]int64

// lockBucket is a bucket of a lock, by its lower bound as in samples.
type lockBucket struct {
	lock int
	ps   int64
}

// mostLockBuckets bounds the memory of lockSamples: locks that come first later than that are
// acquired too rarely to be shown.
const mostLockBuckets = 1 << 20

// record counts a time.
func (s lockSamples) record(lock int, ns int64) {
	k := lockBucket{lock, bucket(max(1000*ns, 1))}
	if n := s[k]; n > 0 || len(s) < mostLockBuckets {
		s[k] = n + 1
	}
}

// encode is the inverse of merge.
func (s lockSamples) encode() []byte {
	var b []byte
	for k, n := range s {
		b = binary.AppendUvarint(binary.AppendUvarint(binary.AppendUvarint(b, uint64(k.lock)), uint64(k.ps)), uint64(n))
	}
	return b
}

// merge adds samples that encode made, of a table of so many locks.
func (s lockSamples) merge(b []byte, locks int) error {
	for len(b) > 0 {
		var v [3]uint64
		for i := range v {
			n := 0
			if v[i], n = binary.Uvarint(b); n <= 0 {
				return errSamples
			}
			b = b[n:]
		}
		if v[0] >= uint64(locks) || v[1] > maxTracked {
			return errSamples
		}
		s[lockBucket{int(v[0]), int64(v[1])}] += int64(v[2])
	}
	return nil
}

// counts is the number of samples of each lock.
func (s lockSamples) counts() map[int]int64 {
	out := map[int]int64{}
	for k, n := range s {
		out[k.lock] += n
	}
	return out
}

// top lists the locks with the most samples, no more than n of them, the first one first.
// Among locks with as many the lower id is first.
func top(counts map[int]int64, n int) []int {
	ids := slices.SortedFunc(maps.Keys(counts), func(a, b int) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	return ids[:min(n, len(ids))]
}

// of is the samples of some locks.
func (s lockSamples) of(locks []int) map[int]samples {
	out := map[int]samples{}
	for _, lock := range locks {
		out[lock] = samples{}
	}
	for k, n := range s {
		if of, ok := out[k.lock]; ok {
			of[k.ps] += n
		}
	}
	return out
}
