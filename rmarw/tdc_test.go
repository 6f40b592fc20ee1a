package rmarw

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rmalock/rmalock/lock"
)

func TestParseTDC(t *testing.T) {
	for text, want := range map[string]TDC{
		"16": {Ranks: 16}, "every 16th rank": {Ranks: 16}, "1": {Ranks: 1}, "every rank": {Ranks: 1}, "1 per rank": {Ranks: 1},
		"every node": {Each: 1, Level: "node"}, "1 per node": {Each: 1, Level: "node"}, " 4  per node ": {Each: 4, Level: "node"},
		"every 2nd node": {Every: 2, Level: "node"}, "every 3 rack": {Every: 3, Level: "rack"}, "every 1st numa": {Each: 1, Level: "numa"},
		"every 23rd node": {Every: 23, Level: "node"},
	} {
		got, err := ParseTDC(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		again, err := ParseTDC(got.String())
		require.NoError(t, err, got.String())
		require.Equal(t, got, again, got.String())
	}
	require.Equal(t, "1 per node", TDC{}.String())
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 112: "112th", 122: "122nd"} {
		require.Equal(t, want, ordinal(n))
	}
	for text, want := range map[string]string{
		"0":                "rmarw: T_DC is \"0\", want at least 1",
		"-4":               "rmarw: T_DC is \"-4\", want at least 1",
		"every 0th node":   "rmarw: T_DC is \"every 0th node\", want at least 1",
		"0 per node":       "rmarw: T_DC is \"0 per node\", want at least 1",
		"2 per rank":       "rmarw: T_DC is \"2 per rank\", but a rank has at most one counter",
		"":                 `rmarw: T_DC: want for example "16" (ranks), "2 per node" or "every 2nd node", not ""`,
		"x":                `rmarw: T_DC: want for example "16" (ranks), "2 per node" or "every 2nd node", not "x"`,
		"2nd per node":     `rmarw: T_DC: want for example "16" (ranks), "2 per node" or "every 2nd node", not "2nd per node"`,
		"each 2nd node":    `rmarw: T_DC: want for example "16" (ranks), "2 per node" or "every 2nd node", not "each 2nd node"`,
		"every 2nd node x": `rmarw: T_DC: want for example "16" (ranks), "2 per node" or "every 2nd node", not "every 2nd node x"`,
	} {
		_, err := ParseTDC(text)
		require.EqualError(t, err, want+": "+lock.ErrConfig.Error(), text)
	}
}
