//go:build cgo && verbs

package verbs_test

import (
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/verbs"
	"github.com/stretchr/testify/require"
)

// TestFences: an operation waits for those before it where the memory model orders the two and a
// queue pair does not, and nowhere else.
func TestFences(t *testing.T) {
	put := func(disp int, epoch uint8) rma.Operation {
		return rma.Operation{Kind: rma.KindPut, Class: rma.Plain, Disp: disp, Epoch: epoch}
	}
	get := func(disp int, epoch uint8) rma.Operation {
		return rma.Operation{Kind: rma.KindGet, Disp: disp, Epoch: epoch}
	}
	read := func(disp int, epoch uint8) rma.Operation {
		return rma.Operation{Kind: rma.KindFetchAndOp, Op: rma.NoOp, Disp: disp, Epoch: epoch}
	}
	add := func(disp int, epoch uint8) rma.Operation {
		return rma.Operation{Kind: rma.KindAccumulate, Op: rma.Sum, Disp: disp, Epoch: epoch}
	}
	cas := func(disp int, epoch uint8) rma.Operation {
		return rma.Operation{Kind: rma.KindCompareAndSwap, Disp: disp, Epoch: epoch}
	}
	there := func(o rma.Operation) rma.Operation {
		o.Target = 1
		return o
	}
	for name, c := range map[string]struct {
		ops    []rma.Operation
		fenced bool // the last one
	}{
		"WRITE, WRITE":                      {[]rma.Operation{put(0, 0), put(1, 1)}, false},
		"WRITE, atomic":                     {[]rma.Operation{put(0, 0), cas(1, 1)}, false},
		"WRITE, READ":                       {[]rma.Operation{put(0, 0), get(1, 1)}, false},
		"READ, READ":                        {[]rma.Operation{get(0, 0), read(1, 1)}, false},
		"atomic, READ":                      {[]rma.Operation{add(0, 0), get(0, 1)}, false},
		"READ, WRITE":                       {[]rma.Operation{get(0, 0), put(1, 1)}, true},
		"READ, atomic":                      {[]rma.Operation{read(0, 0), cas(1, 1)}, true},
		"atomic, WRITE":                     {[]rma.Operation{add(0, 0), put(1, 1)}, true},
		"atomic, atomic":                    {[]rma.Operation{cas(0, 0), add(1, 1)}, true},
		"READ, WRITE of the same word":      {[]rma.Operation{get(3, 0), put(3, 0)}, true},
		"atomic, atomic of the same word":   {[]rma.Operation{add(3, 0), cas(3, 0)}, true},
		"READ, WRITE without a Fence":       {[]rma.Operation{get(0, 0), put(1, 0)}, false},
		"READ, WRITE at another target":     {[]rma.Operation{get(0, 0), there(put(0, 1))}, false},
		"READ far before a WRITE":           {[]rma.Operation{get(0, 0), put(1, 0), put(2, 0), put(4, 1)}, true},
		"many words read, one of them next": {[]rma.Operation{{Kind: rma.KindGetBulk, Data: make([]int64, 4)}, put(2, 0)}, true},
	} {
		got := verbs.FencesOf(c.ops)
		require.Equal(t, c.fenced, got[len(got)-1], name)
		require.False(t, got[0], name)
	}
}
