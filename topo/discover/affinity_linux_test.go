package discover

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestAffinityIsTheThreads(t *testing.T) {
	var mask unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &mask))
	got, err := affinity()
	require.NoError(t, err)
	require.Equal(t, mask.Count(), got.Len())
	for c := range got.All() {
		require.True(t, mask.IsSet(c))
	}
	p, err := local(Options{})
	require.NoError(t, err)
	require.Equal(t, got, p.CPUs)
}
