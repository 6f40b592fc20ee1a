package topo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlaceEncoding(t *testing.T) {
	for _, p := range []Place{
		{},
		{Host: "n01", Node: 65535, CPUs: "0-3,8"},
		{
			Host: "n01", Node: 300, CPUs: "3", Above: []Part{{"rack", "A|\x00"}, {"switch", ""}},
			Inside: []Span{{"numa", "0"}, {"core", ""}}, Notes: []string{"a", "b"},
		},
	} {
		got, err := decodePlace(p.encode())
		require.NoError(t, err)
		require.Equal(t, p, got)
	}
	b := (&Place{Host: "n01", Inside: []Span{{"numa", "0"}}}).encode()
	for n := range b {
		_, err := decodePlace(b[:n])
		require.ErrorIs(t, err, ErrTopology, "%d of %d bytes", n, len(b))
	}
	_, err := decodePlace(append(b, 0))
	require.ErrorIs(t, err, ErrTopology)
}

func TestPlaceIsSmall(t *testing.T) {
	p := Place{
		Host: "nid001234", Node: 1234, CPUs: "17,145",
		Inside: []Span{{"group", "0"}, {"numa", "1"}, {"cache", "16"}, {"core", "17"}},
	}
	require.LessOrEqual(t, len(p.encode()), 64)
}

func TestNotesAreBounded(t *testing.T) {
	var p Place
	for i := range 100 {
		p.note("trouble %d\n%s", i, string(make([]byte, 10000)))
		p.note("trouble %d\n%s", i, string(make([]byte, 10000)))
	}
	require.Len(t, p.Notes, maxNotes)
	require.LessOrEqual(t, len(p.encode()), maxNotes*(maxNote+6)+10)
}

func FuzzDecodePlace(f *testing.F) {
	p := Place{Host: "n01", Node: 300, CPUs: "3", Above: []Part{{"rack", "A"}}, Inside: []Span{{"numa", "0"}}, Notes: []string{"a"}}
	f.Add(p.encode())
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := decodePlace(b)
		if err != nil {
			require.ErrorIs(t, err, ErrTopology)
			return
		}
		again, err := decodePlace(p.encode())
		require.NoError(t, err)
		require.Equal(t, p, again)
		if topo, err := Build([]Place{p, p}); err != nil {
			require.ErrorIs(t, err, ErrTopology)
		} else {
			checkInvariants(t, topo)
		}
	})
}
