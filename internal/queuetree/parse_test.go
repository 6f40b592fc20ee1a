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
	for text, want := range map[string][]int{"": nil, "20/16": {20, 16}, "20, 16": {20, 16}, "/16": {0, 16}, "5//2": {5, 0, 2}, "/": {0, 0}} {
		got, err := queuetree.ParseTL("rmarw", text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{
		"1/x":   "want numbers with commas between them",
		"0/5":   "entry 1 is 0, want at least 1, or nothing for the default of its level",
		"5,0":   "entry 2 is 0",
		"3/-1":  "entry 2 is -1",
		"1 2/3": "want numbers",
	} {
		_, err := queuetree.ParseTL("rmarw", text)
		require.ErrorIs(t, err, lock.ErrConfig, text)
		require.ErrorContains(t, err, "rmarw: TL is", text)
		require.ErrorContains(t, err, want, text)
	}
}
