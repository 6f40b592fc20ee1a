package baseline

import (
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// requests is the way by which ranks ask those that serve, which are the last ranks. A rank has
// one request under way at a time.
//
//	word    class  whose memory  values
//	SLOT    plain  each server   a rank's request, for each rank: number, what, mode, lock
//	BELL    plain  each server   the rank that asked last, and the number of its request
//	ANSWER  plain  each rank     the number of the request that is answered, and the answer
//
// To ask is a Put of SLOT and then one of BELL, which a server awaits: it then looks at all slots
// at once, and takes the requests among them in turn. The Put of BELL has the form of a bulk of one
// word, so that a simulator that prices the window's Puts as messages prices a request as one.
type requests struct {
	c       rma.Comm
	w       *rma.Window
	servers int
	clients int
	number  int64 // of the last request
	ring    [1]int64

	// Of a server.
	slots []int64 // by rank: its request at the last look
	seen  []int64 // by rank: its last request that was received
	next  int     // where to go on
	bell  int64   // BELL before the last look
	ended int     // ranks that want no more locks
}

// What a rank asks for.
const (
	askLock = iota
	askTry
	askGiveUp // takes back a request that is queued
	askUnlock
	askEnd // the rank wants no more locks
)

// What a server answers.
const (
	answerNo = iota // also: the request is queued
	answerYes
)

var request = struct{ number, what, mode, lock rma.Field }{
	number: rma.Field{Name: "number", Shift: 36, Bits: 28},
	what:   rma.Field{Name: "what", Shift: 33, Bits: 3},
	mode:   rma.Field{Name: "mode", Shift: 32, Bits: 1},
	lock:   rma.Field{Name: "lock", Shift: 0, Bits: 32},
}

var reply = struct{ number, answer rma.Field }{
	number: rma.Field{Name: "number", Shift: 36, Bits: 28},
	answer: rma.Field{Name: "answer", Shift: 0, Bits: 1},
}

func openRequests(c rma.Comm, name string, servers int) (*requests, error) {
	clients := c.Size() - servers
	if servers < 1 || clients < 1 {
		return nil, fmt.Errorf("baseline: %s: %d ranks of %d serve, want at least one, and one that does not: %w", name, servers, c.Size(), lock.ErrConfig)
	}
	plain := func(name string, fields ...rma.Field) []rma.Word {
		return []rma.Word{{Name: name, Class: rma.Plain, Fields: fields}}
	}
	w, err := c.Allocate(rma.Spec{Name: name, Regions: []rma.Region{
		{Count: clients, Words: plain("SLOT", request.number, request.what, request.mode, request.lock)},
		{Count: 1, Words: plain("BELL")},
		{Count: 1, Words: plain("ANSWER", reply.number, reply.answer)},
	}})
	if err != nil {
		return nil, err
	}
	r := &requests{c: c, w: w, servers: servers, clients: clients}
	if r.Serves() {
		r.seen = make([]int64, clients)
		if r.slots, err = w.Buffer(clients); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *requests) bellAt() int   { return r.clients }
func (r *requests) answerAt() int { return r.clients + 1 }

// Serves reports whether the caller serves.
func (r *requests) Serves() bool { return r.c.Rank() >= r.clients }

// ask sends a request and waits for the answer.
func (r *requests) ask(server, what, id int, mode lock.Mode) (int64, error) {
	me := r.c.Rank()
	r.number++
	v := request.number.With(request.what.With(request.mode.With(int64(id), int64(mode)), int64(what)), r.number)
	r.ring[0] = int64(me+1)<<32 | r.number&(1<<32-1)
	r.w.Put(v, server, me)
	r.w.Fence(server)
	r.w.PutBulk(r.ring[:], server, r.bellAt())
	if err := r.w.Flush(server); err != nil {
		return 0, err
	}
	v, err := r.w.Await(me, r.answerAt(), rma.Equal(reply.number.With(0, r.number)).In(reply.number.Mask()))
	return reply.answer.Get(v), err
}

// later waits for the second answer to the last request, if it comes in time.
func (r *requests) later(until int64) (bool, error) {
	_, held, err := r.w.AwaitUntil(r.c.Rank(), r.answerAt(), rma.Equal(r.yes(r.number)), until)
	return held, err
}

func (r *requests) yes(number int64) int64 {
	return reply.answer.With(reply.number.With(0, number), answerYes)
}

// answer answers a request.
func (r *requests) answer(client int, v, answer int64) error {
	return r.w.PutFlush(reply.answer.With(reply.number.With(0, request.number.Get(v)), answer), client, r.answerAt())
}

// receive waits for a request. Ranks come in turn.
func (r *requests) receive() (client int, v int64, err error) {
	for {
		for i := range r.clients {
			client := (r.next + i) % r.clients
			if v := r.slots[client]; v != r.seen[client] {
				r.seen[client], r.next = v, client+1
				return client, v, nil
			}
		}
		if err := r.look(); err != nil {
			return 0, 0, err
		}
	}
}

// look waits until a rank has rung since the last look, and looks at all slots.
func (r *requests) look() (err error) {
	me := r.c.Rank()
	if r.bell, err = r.w.Await(me, r.bellAt(), rma.NotEqual(r.bell)); err != nil {
		return err
	}
	r.w.GetBulk(r.slots, me, 0)
	return r.w.Flush(me)
}

// end tells all servers that the rank wants no more locks.
func (r *requests) end() error {
	for s := range r.servers {
		if _, err := r.ask(r.clients+s, askEnd, 0, lock.Exclusive); err != nil {
			return err
		}
	}
	return nil
}
