package verbs

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/rmalock/rmalock/rma"
)

// The protocol of control: frames of a length in four bytes, big-endian, and JSON. The memory node
// speaks first. Each request has a number, which its reply repeats; replies come in any order.
const (
	protocol   = 2
	greeting   = "rmalock memory node"
	helloBytes = 1 << 10  // longest frame of a peer that has not shown the token
	frameBytes = 64 << 20 // longest frame
)

// hello is the first frame of a memory node, and its third.
type hello struct {
	Greeting string
	Protocol int
	Nonce    []byte `json:",omitempty"`
	Error    string `json:",omitempty"`
}

// answer is the first frame of a peer.
type answer struct {
	Protocol int
	Proof    []byte // of the token, for the nonce
}

// proof shows that a peer knows the token without sending it.
func proof(token, nonce []byte) []byte {
	h := hmac.New(sha256.New, token)
	h.Write(nonce)
	return h.Sum(nil)
}

// Calls of a request.
const (
	callPair   = "pair"   // makes a queue pair, instead of the connection's earlier one
	callWindow = "window" // creates a window or attaches to it
	callFree   = "free"   // ends a window
	callJob    = "job"    // makes the connection one of a job's processes
	callGather = "gather" // waits until all processes of a group have brought data
	callSlot   = "slot"   // leases a slot for a client
	callLeave  = "leave"  // ends the lease of a slot
	callDone   = "done"   // the process ends in good order
)

// request is a request of a peer.
type request struct {
	ID   uint64
	Call string
	Name string `json:",omitempty"` // of a window, job or group

	Address     *address `json:",omitempty"` // of the peer's queue pair
	Fingerprint int64    `json:",omitempty"`
	Words       int      `json:",omitempty"`
	Keep        bool     `json:",omitempty"` // the window stays when the connection ends
	Index       int      `json:",omitempty"` // of the process in the group; a slot
	Count       int      `json:",omitempty"` // processes of the group
	Generation  int      `json:",omitempty"`
	Data        []byte   `json:",omitempty"`
}

// reply answers a request, or, with number 0, is an event.
type reply struct {
	ID    uint64
	Error string `json:",omitempty"`
	Class string `json:",omitempty"` // of the error: a key of classes

	Address    *address `json:",omitempty"`
	Place      place
	Slots      int      `json:",omitempty"`
	Slot       int      `json:",omitempty"`
	Generation int      `json:",omitempty"`
	Process    int      `json:",omitempty"` // of an event: the one that is gone
	All        [][]byte `json:",omitempty"`
}

// address is where a queue pair is, for its other end.
type address struct {
	QPN, PSN uint32
	LID      uint16
	GID      [16]byte
	MTU      uint8
	Ethernet bool
	Reads    uint8 // reads and atomics that it answers at once
}

// place is memory that the peer may reach.
type place struct {
	Address uint64
	Key     uint32
}

// classes are the sentinels that cross the network.
var classes = map[string]error{
	"mismatch": rma.ErrMismatch,
	"memory":   rma.ErrMemory,
	"peer":     rma.ErrPeer,
	"full":     ErrFull,
	"refused":  rma.ErrRefused,
}

// err is the error of a reply, or nil.
func (r *reply) err(from string) error {
	if r.Error == "" {
		return nil
	}
	class := classes[r.Class]
	if class == nil {
		class = rma.ErrTransport
	}
	return fmt.Errorf("verbs: memory node %s: %s: %w", from, r.Error, class)
}

func writeFrame(w io.Writer, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(body) > frameBytes {
		return fmt.Errorf("verbs: a message of %d bytes, at most %d may be sent", len(body), frameBytes)
	}
	frame := make([]byte, 4, 4+len(body))
	binary.BigEndian.PutUint32(frame, uint32(len(body)))
	_, err = w.Write(append(frame, body...))
	return err
}

// A beat is an empty frame. Neither writing nor reading one allocates.
var beatFrame = make([]byte, 4)

// skipBeats reads beats until another frame comes.
func skipBeats(r *bufio.Reader) error {
	for {
		head, err := r.Peek(len(beatFrame))
		if err != nil || binary.BigEndian.Uint32(head) != 0 {
			return err
		}
		_, _ = r.Discard(len(beatFrame)) // they are there
	}
}

// readFrame reads a frame of at most limit bytes. It takes memory as bytes come, and not by what
// the length says.
func readFrame(r *bufio.Reader, limit int, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > uint32(limit) {
		return fmt.Errorf("verbs: a message of %d bytes, want at most %d: this is not the protocol of a memory node", n, limit)
	}
	body, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err != nil {
		return err
	}
	if len(body) < int(n) {
		return io.ErrUnexpectedEOF
	}
	return json.Unmarshal(body, v)
}
