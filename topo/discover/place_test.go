package discover

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rmalock/rmalock/topo"
)

func TestPlaceEncoding(t *testing.T) {
	for _, p := range []topo.Place{
		{},
		{Host: "n01", Node: 65535, CPUs: "0-3,8"},
		{
			Host: "n01", Node: 300, CPUs: "3", Above: []topo.Part{{Level: "rack", Name: "A|\x00"}, {Level: "switch", Name: ""}},
			Inside: []topo.Span{{Level: "numa", IDs: "0"}, {Level: "core", IDs: ""}}, Notes: []string{"a", "b"},
		},
	} {
		sent := report{p, "n1"}
		got, err := decodeReport(sent.encode())
		require.NoError(t, err)
		require.Equal(t, sent, got)
	}
	b := (&report{Place: topo.Place{Host: "n01", Inside: []topo.Span{{Level: "numa", IDs: "0"}}}}).encode()
	for n := range b {
		_, err := decodeReport(b[:n])
		require.ErrorIs(t, err, topo.ErrTopology, "%d of %d bytes", n, len(b))
	}
	_, err := decodeReport(append(b, 0))
	require.ErrorIs(t, err, topo.ErrTopology)
}

func TestPlaceIsSmall(t *testing.T) {
	p := report{Place: topo.Place{
		Host: "nid001234", Node: 1234, CPUs: "17,145",
		Inside: []topo.Span{{Level: "group", IDs: "0"}, {Level: "numa", IDs: "1"}, {Level: "cache", IDs: "16"}, {Level: "core", IDs: "17"}},
	}}
	require.LessOrEqual(t, len(p.encode()), 64)
}

func TestNotesAreBounded(t *testing.T) {
	var p report
	for i := range 100 {
		p.note("trouble %d\n%s", i, string(make([]byte, 10000)))
		p.note("trouble %d\n%s", i, string(make([]byte, 10000)))
	}
	require.Len(t, p.Notes, maxNotes)
	require.LessOrEqual(t, len(p.encode()), maxNotes*(maxNote+6)+10)
}

func FuzzDecodePlace(f *testing.F) {
	p := say(300, "n01", "x", topo.Part{Level: "rack", Name: "A"})
	f.Add(p.encode())
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := decodeReport(b)
		if err != nil {
			require.ErrorIs(t, err, topo.ErrTopology)
			return
		}
		again, err := decodeReport(p.encode())
		require.NoError(t, err)
		require.Equal(t, p, again)
		if _, err := build([]report{p, p}); err != nil {
			require.ErrorIs(t, err, topo.ErrTopology)
		}
	})
}
