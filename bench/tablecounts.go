package bench

import (
	"maps"
	"slices"

	"github.com/rmalock/rmalock/rma"
)

// A counting table counts what its rank does, by name: the same names at all ranks.
type counting interface{ Counts() map[string]int64 }

// tableCounts are the table's own counts at this rank; nil if it has none.
func (v *visitor) tableCounts() map[string]int64 {
	if t, ok := tableAs[counting](v.table); ok {
		return t.Counts()
	}
	return nil
}

// tableCounts are what the locks have counted since begin, at all ranks together; nil where they
// count nothing. Collective.
func tableCounts(c rma.Comm, w runner) (map[string]int64, error) {
	v, ok := w.(*visitor)
	if !ok || v.before == nil {
		return nil, nil
	}
	now := v.tableCounts()
	names := slices.Sorted(maps.Keys(now))
	var mine []int64
	for _, name := range names {
		mine = append(mine, now[name]-v.before[name])
	}
	all, err := c.Allgather(mine)
	sum := map[string]int64{}
	for i, n := range all {
		sum[names[i%len(names)]] += n
	}
	return sum, err
}

// tableCounts fills in the table's counts per acquire.
func (r *Result) tableCounts(sum map[string]int64) {
	if sum == nil {
		return
	}
	r.Counts = map[string]float64{}
	for name, n := range sum {
		r.Counts[name] = float64(n) / float64(max(1, r.Acquires))
	}
}
