package queuetree_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rmalock/rmalock/internal/queuetree"
	"github.com/rmalock/rmalock/lock"
)

func TestParseSwitch(t *testing.T) {
	for text, want := range map[string]bool{"": false, "off": false, "on": true} {
		got, err := queuetree.ParseSwitch("rmamcs", "ADAPT", text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"On", "1", "true", " on"} {
		_, err := queuetree.ParseSwitch("rmamcs", "ADAPT", text)
		require.ErrorIs(t, err, lock.ErrConfig, text)
		require.ErrorContains(t, err, "rmamcs: ADAPT is", text)
	}
}

func TestParseTL(t *testing.T) {
	got, err := queuetree.ParseTL("rmarw", "0/16")
	require.NoError(t, err)
	require.Equal(t, []int{0, 16}, got)
	for _, text := range []string{"0/x", "/", "1//2"} {
		_, err := queuetree.ParseTL("rmarw", text)
		require.ErrorIs(t, err, lock.ErrConfig, text)
	}
}
