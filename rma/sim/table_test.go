package sim

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTableActsAsAMap: a table does what a map does, with keys that lie close together too.
func TestTableActsAsAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, spread := range []uint64{50, 5000, 1 << 63} {
		table, want := newTable(), map[uint64]uint64{}
		for range 200_000 {
			key := 1 + rng.Uint64N(spread)
			value, was := table.lookup(key)
			before, known := want[key]
			require.Equal(t, known, was, key)
			require.Equal(t, before, *value, key)
			*value = rng.Uint64()
			want[key] = *value
		}
		require.Equal(t, len(want), table.used)
		for key, v := range want {
			value, was := table.lookup(key)
			require.True(t, was)
			require.Equal(t, v, *value)
		}
	}
	table := newTable()
	value, was := table.lookup(0)
	require.False(t, was)
	*value = 7
	value, was = table.lookup(0)
	require.True(t, was)
	require.EqualValues(t, 7, *value)
}
