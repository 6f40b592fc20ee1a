//go:build cgo && verbs

package verbs

import (
	"sync/atomic"

	"github.com/rmalock/rmalock/rma"
)

// InUse is what the process has of its devices.
func InUse() map[string]int64 {
	return map[string]int64{
		"devices": inUse.devices.Load(), "regions": inUse.regions.Load(), "pairs": inUse.pairs.Load(), "bytes": inUse.bytes.Load(),
	}
}

// Counts are of the pairs of a rank's node.
type Counts struct{ Doorbells, Operations, Completions uint64 }

// CountsOf sums over all targets, or over the rank's own node alone.
func CountsOf(c rma.Comm, itself bool) Counts {
	n := c.(*comm).node()
	var k Counts
	for _, t := range n.targets {
		if itself && t != n.self {
			continue
		}
		p := t.pair.p
		k.Doorbells += atomic.LoadUint64((*uint64)(&p.doorbells))
		k.Operations += atomic.LoadUint64((*uint64)(&p.operations))
		k.Completions += atomic.LoadUint64((*uint64)(&p.completions))
	}
	return k
}

// Soft reports whether a rank's device is Soft-RoCE.
func Soft(c rma.Comm) bool { return c.(*comm).node().nic.d.way.soft != 0 }

// Revoke ends the window that a rank has allocated last, at the memory node alone.
func Revoke(c rma.Comm, s *Server, words int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, w := range s.windows {
		if w.bytes == words*8 {
			return s.drop(name)
		}
	}
	return nil
}

// FencesOf tells for each operation whether it is posted with IBV_SEND_FENCE. It needs no device.
func FencesOf(ops []rma.Operation) (fences []bool) {
	t := &transport{hosts: make([]host, 2), spare: ^uint64(0)}
	allocate(&t.h)
	for i, o := range ops {
		t.Issue(o)
		fences = append(fences, t.h.ops[i].fence != 0)
	}
	return fences
}

// allocate is for a type of C, whose name a test cannot use.
func allocate[T any](p **T) { *p = new(T) }
