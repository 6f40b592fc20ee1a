package hook

import "github.com/rmalock/rmalock/rma"

// Check makes misuse show on one node that would show on many. Where all ranks
// share memory, a window does some operations inline and does not look at the
// class of the word, and results can be read before the Flush. On the windows of
// the Comm that Check returns
//
//   - every operation is checked against the class of its word: an atomic on a Flag
//     word, or a change of a Near word of another node, is rma.ErrClass at Flush;
//   - a result holds garbage until the Flush of its target;
//   - more than rma.MaxPending operations without a Flush are rma.ErrPending.
//
// Every decorated window does this, by being decorated: Check adds nothing else.
// That only one rank at a time writes a Flag word cannot be seen by one rank; the
// simulator sees it.
func Check(c rma.Comm) rma.Comm {
	return decorate(c, func(_ handleID, below rma.Transport) rma.Transport { return below })
}
