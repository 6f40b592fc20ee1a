package hook

import "github.com/rmalock/rmalock/rma"

// NoSwap makes a window of a transport without a native swap: FetchAndOp with Replace
// is a loop of CompareAndSwap at its Flush, by [rma.Emulate], and so is
// Window.MaskedSwapFlush.
func NoSwap(c rma.Comm) rma.Comm {
	return decorate(c, func(_ handleID, below rma.Transport) rma.Transport {
		return rma.Emulate(below, rma.Caps{AtomicPut: true})
	})
}

// LikeVerbs makes a window of a transport that has what plain InfiniBand verbs have: no swap,
// no masked swap, and no Put of a Far word that is atomic with other operations on it. All are loops of
// CompareAndSwap, by [rma.Emulate].
func LikeVerbs(c rma.Comm) rma.Comm {
	return decorate(c, func(_ handleID, below rma.Transport) rma.Transport {
		return rma.Emulate(below, rma.Caps{})
	})
}
