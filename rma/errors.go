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
	ErrDied      = errors.New("the rank has died") // of a rank that plays dead: hook.Failure.Dies
	ErrTransport = errors.New("transport failed")
	ErrRefused   = errors.New("transport refused")
)

// An AccessError says which access was refused. It wraps ErrRank, ErrDisp or
// ErrClass.
type AccessError struct {
	Window string // name of the window
	Op     string // operation, as in "FetchAndOp(SUM)"
	Target int    // rank, or memory node
	Disp   int    // first displacement, in words
	Words  int    // length, in words
	Size   int    // hosts of the window
	Limit  int    // words per host
	Hosts  Hosts
	Word   string // name and class of the word, when in range
	Err    error
}

func (e *AccessError) Error() string {
	at := fmt.Sprintf("rma: window %q: %s at %v %d", e.Window, e.Op, e.Hosts, e.Target)
	switch e.Err {
	case ErrRank:
		if e.Size == 0 {
			return fmt.Sprintf("%s, displacement %d: %v (the job has no memory nodes)", at, e.Disp, e.Err)
		}
		return fmt.Sprintf("%s, displacement %d: %v (the window has %vs 0 to %d)", at, e.Disp, e.Err, e.Hosts, e.Size-1)
	case ErrDisp:
		where := fmt.Sprintf("displacement %d", e.Disp)
		if e.Words != 1 {
			where = fmt.Sprintf("displacements %d to %d", e.Disp, e.Disp+e.Words-1)
		}
		return fmt.Sprintf("%s, %s: %v (each %v has words 0 to %d)", at, where, e.Err, e.Hosts, e.Limit-1)
	}
	return fmt.Sprintf("%s, displacement %d, word %s: %v", at, e.Disp, e.Word, e.Err)
}

func (e *AccessError) Unwrap() error { return e.Err }
