package topo

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseSet(t *testing.T) {
	for text, want := range map[string]Set{
		"":                "",
		" \n":             "",
		"0":               "0",
		"0-3,8\n":         "0-3,8",
		"8,0-3":           "0-3,8",
		"0,1,2":           "0-2",
		"0-5,2-3,6":       "0-6",
		"3 , 1":           "1,3",
		"007":             "7",
		"16777215":        "16777215",
		"0-16777215":      "0-16777215",
		"0,2,4,6,8-9,1-1": "0-2,4,6,8-9",
	} {
		got, err := ParseSet(text)
		require.NoError(t, err, "%q", text)
		require.Equal(t, want, got, "%q", text)
	}
	for _, text := range []string{",", "0,", "a", "0-x", "-1", "3-1", "0--2", "0-1-2", "16777216", "99999999999999999999", "0 1", "0x1", "1.5"} {
		_, err := ParseSet(text)
		require.ErrorIs(t, err, ErrTopology, "%q", text)
	}
	_, err := ParseSet("0-3,x")
	require.EqualError(t, err, `topo: list "0-3,x": "x" is neither a number nor a range such as 0-3 of numbers up to 16777215: bad description of the machine`)
}

func TestSetMembers(t *testing.T) {
	require.Equal(t, Set("0-3,8"), MakeSet(8, 2, 0, 1, 3, 2))
	require.Equal(t, Set(""), MakeSet())
	s := Set("0-3,8")
	require.Equal(t, 5, s.Len())
	require.Equal(t, []int{0, 1, 2, 3, 8}, slices.Collect(s.All()))
	for m := range s.All() { // stops when told to
		if m == 2 {
			break
		}
		require.Less(t, m, 2)
	}
	one, ok := Set("8").One()
	require.True(t, ok)
	require.Equal(t, 8, one)
	for _, s := range []Set{"", "0-3", "0,8", "x"} {
		_, ok := s.One()
		require.False(t, ok, "%q", s)
	}
}

func FuzzParseSet(f *testing.F) {
	for _, s := range []string{"", "0-3,8", "8,0-3", "1-", "5-2", "0,0,0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSet(text)
		if err != nil {
			require.ErrorIs(t, err, ErrTopology)
			return
		}
		again, err := ParseSet(string(s))
		require.NoError(t, err)
		require.Equal(t, s, again)
		if s.Len() < 1000 {
			require.Equal(t, s, MakeSet(slices.Collect(s.All())...))
		}
	})
}
