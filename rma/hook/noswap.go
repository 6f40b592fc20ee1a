package hook

import "github.com/rmalock/rmalock/rma"

// NoSwap makes a window of a transport without a native swap: FetchAndOp with Replace
// is a loop of CompareAndSwap at its Flush, by [rma.Emulate].
func NoSwap(c rma.Comm) rma.Comm {
	return decorate(c, func(_ handleID, below rma.Transport) rma.Transport {
		return rma.Emulate(below, rma.Caps{AtomicPut: true})
	})
}
