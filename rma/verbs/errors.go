package verbs

import (
	"fmt"

	"github.com/rmalock/rmalock/rma"
)

// Statuses of completions, enum ibv_wc_status, with two of the C side's own.
const (
	wcSuccess   = 0
	wcFlush     = 5
	wcRetry     = 12
	notPosted   = 1000
	givenUp     = 1001
	unknownText = "an error of a kind that has no name here"
)

// statuses say what a completion's status means, what to do, and which error it is.
var statuses = map[int]struct {
	text string
	err  error
}{
	1:         {"the data is longer than the card allows for one operation (LOC_LEN_ERR)", rma.ErrTransport},
	2:         {"the queue pair was used wrongly on this side (LOC_QP_OP_ERR)", rma.ErrTransport},
	3:         {"the address handle was used wrongly on this side (LOC_EEC_OP_ERR)", rma.ErrTransport},
	4:         {"this side's memory is not registered for the operation (LOC_PROT_ERR)", rma.ErrTransport},
	wcFlush:   {"the queue pair was broken by an earlier error; the operations may have taken effect or not (WR_FLUSH_ERR)", rma.ErrTransport},
	6:         {"a memory window cannot be bound (MW_BIND_ERR)", rma.ErrTransport},
	7:         {"the other side sent an answer that does not fit (BAD_RESP_ERR)", rma.ErrTransport},
	8:         {"this side's memory does not allow the access (LOC_ACCESS_ERR)", rma.ErrTransport},
	9:         {"the other side refuses a request that is wrong or too long (REM_INV_REQ_ERR)", rma.ErrTransport},
	10:        {"the other side refuses the access: the window was freed there, its key was revoked, or the address is outside of it; allocate it again (REM_ACCESS_ERR)", rma.ErrTransport},
	11:        {"the other side could not do the operation (REM_OP_ERR)", rma.ErrTransport},
	wcRetry:   {"it does not answer: the process or its machine is gone, or the network is cut (RETRY_EXC_ERR)", rma.ErrPeer},
	13:        {"it has no room for a message, again and again (RNR_RETRY_EXC_ERR)", rma.ErrPeer},
	14:        {"local RDD violation (LOC_RDD_VIOL_ERR)", rma.ErrTransport},
	15:        {"the other side refuses a datagram (REM_INV_RD_REQ_ERR)", rma.ErrTransport},
	16:        {"the operation was aborted by the other side (REM_ABORT_ERR)", rma.ErrPeer},
	17:        {"wrong number of an end-to-end context (INV_EECN_ERR)", rma.ErrTransport},
	18:        {"wrong state of an end-to-end context (INV_EEC_STATE_ERR)", rma.ErrTransport},
	19:        {"the card failed; look at the kernel's log (FATAL_ERR)", rma.ErrTransport},
	20:        {"the card gave up waiting for an answer (RESP_TIMEOUT_ERR)", rma.ErrPeer},
	21:        {"the card reports a general error; look at the kernel's log (GENERAL_ERR)", rma.ErrTransport},
	notPosted: {"the card's driver does not take the operations (ibv_post_send failed)", rma.ErrTransport},
	givenUp:   {"the card has not ended the operations within 5 s", rma.ErrPeer},
}

// statusError is the error of a step.
func statusError(target string, status int) error {
	s, ok := statuses[status]
	if !ok {
		s.text, s.err = unknownText, rma.ErrTransport
	}
	return fmt.Errorf("verbs: %s: %s, status %d: %w", target, s.text, status, s.err)
}
