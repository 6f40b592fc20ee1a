package rma

import (
	"errors"
	"fmt"
)

// Sentinels. Every error of this package and of its backends wraps one of them or
// errors.ErrUnsupported.
var (
	ErrRank      = errors.New("rank out of range")
	ErrDisp      = errors.New("displacement out of range")
	ErrClass     = errors.New("operation not allowed on a word of this class")
	ErrPending   = errors.New("too many pending operations, flush oftener")
	ErrSpec      = errors.New("bad window description")
	ErrMemory    = errors.New("not enough memory for a window")
	ErrMismatch  = errors.New("ranks disagree in a collective call")
	ErrFreed     = errors.New("window was freed")
	ErrPeer      = errors.New("a peer failed or is gone")
	ErrTransport = errors.New("transport failed")
	ErrRefused   = errors.New("transport refused")
)

// An AccessError says which access was refused. It wraps ErrRank, ErrDisp or
// ErrClass.
type AccessError struct {
	Window string // name of the window
	Op     string // operation, as in "FetchAndOp(SUM)"
	Target int    // rank
	Disp   int    // first displacement, in words
	Words  int    // length, in words
	Size   int    // ranks of the window
	Limit  int    // words per rank
	Word   string // name and class of the word, when in range
	Err    error
}

func (e *AccessError) Error() string {
	switch e.Err {
	case ErrRank:
		return fmt.Sprintf("rma: window %q: %s at rank %d, displacement %d: %v (the window has ranks 0 to %d)",
			e.Window, e.Op, e.Target, e.Disp, e.Err, e.Size-1)
	case ErrDisp:
		if e.Words != 1 {
			return fmt.Sprintf("rma: window %q: %s at rank %d, displacements %d to %d: %v (each rank has words 0 to %d)",
				e.Window, e.Op, e.Target, e.Disp, e.Disp+e.Words-1, e.Err, e.Limit-1)
		}
		return fmt.Sprintf("rma: window %q: %s at rank %d, displacement %d: %v (each rank has words 0 to %d)",
			e.Window, e.Op, e.Target, e.Disp, e.Err, e.Limit-1)
	}
	return fmt.Sprintf("rma: window %q: %s at rank %d, displacement %d, word %s: %v",
		e.Window, e.Op, e.Target, e.Disp, e.Word, e.Err)
}

func (e *AccessError) Unwrap() error { return e.Err }
