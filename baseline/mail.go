package baseline

import (
	"github.com/rmalock/rmalock/rma"
)

// mail is the way by which ranks send each other messages, and do not wait for answers. A rank
// takes what it was sent when it looks, in the order of each sender.
//
//	word   class  whose memory  values
//	SLOT   plain  each rank     a message of each rank
//	TAKEN  plain  each rank     the parity of the last message to each rank that it has taken
//	BELL   plain  each rank     the rank that sent last, and how many it has sent
//
// To send is a Put of SLOT and one of BELL, together; a message to a rank that has not taken the
// one before waits in out. Puts of BELL and TAKEN have the form of a bulk of one word, so that a
// simulator that prices the window's Puts as messages prices one.
type mail struct {
	c    rma.Comm
	w    *rma.Window
	n    int
	sent int64
	ring [1]int64
	last []int64 // by rank: the parity of the last message sent
	bits [2][1]int64
	acks int     // Puts of TAKEN since the last flush of all
	got  []int64 // by rank: the message in its slot at the last look
	seen []int64 // by rank: the last message that was taken
	bell int64   // BELL before the last look
	out  []parcel
}

type parcel struct {
	to int
	v  int64
}

// parity is the bit of a message that changes from one to the next.
var parity = rma.Field{Name: "parity", Shift: 63, Bits: 1}

func openMail(c rma.Comm, name string, fields ...rma.Field) (*mail, error) {
	n := c.Size()
	w, err := c.Allocate(rma.Spec{Name: name, Regions: []rma.Region{
		{Count: n, Words: []rma.Word{{Name: "SLOT", Class: rma.Plain, Fields: append([]rma.Field{parity}, fields...)}}},
		{Count: n, Words: []rma.Word{{Name: "TAKEN", Class: rma.Plain}}},
		{Count: 1, Words: []rma.Word{{Name: "BELL", Class: rma.Plain}}},
	}})
	if err != nil {
		return nil, err
	}
	got, err := w.Buffer(n)
	if err != nil {
		return nil, err
	}
	return &mail{c: c, w: w, n: n, last: make([]int64, n), got: got, seen: make([]int64, n), bits: [2][1]int64{{0}, {1}}}, nil
}

// post has a message sent as soon as its receiver has taken the one before.
func (m *mail) post(to int, v int64) { m.out = append(m.out, parcel{to, v}) }

// pump sends what can be sent.
func (m *mail) pump() error {
	kept := m.out[:0]
	for i, p := range m.out {
		waits := false
		for _, q := range kept {
			waits = waits || q.to == p.to
		}
		sent := false
		if !waits {
			var err error
			if sent, err = m.send(p); err != nil {
				m.out = append(kept, m.out[i:]...)
				return err
			}
		}
		if !sent {
			kept = append(kept, p)
		}
	}
	m.out = kept
	return nil
}

// send sends a message if the one before has been taken.
func (m *mail) send(p parcel) (bool, error) {
	me := m.c.Rank()
	if m.w.Peek(m.n+p.to) != m.last[p.to] {
		return false, nil
	}
	m.sent++
	m.last[p.to] ^= 1
	m.ring[0] = int64(me+1)<<40 | m.sent&(1<<40-1)
	m.w.Put(parity.With(p.v, m.last[p.to]), p.to, me)
	m.w.Fence(p.to)
	m.w.PutBulk(m.ring[:], p.to, 2*m.n)
	return true, m.w.Flush(p.to)
}

// take takes a message that was there at the last look, if there is one.
func (m *mail) take() (from int, v int64, err error) {
	for from, v := range m.got {
		if v != m.seen[from] && parity.Get(v) != parity.Get(m.seen[from]) {
			m.seen[from] = v
			m.w.PutBulk(m.bits[parity.Get(v)][:], from, m.n+m.c.Rank())
			if m.acks++; m.acks < rma.MaxPending/2 {
				return from, v, nil
			}
			return from, v, m.flush()
		}
	}
	return -1, 0, nil
}

// flush completes the Puts of TAKEN.
func (m *mail) flush() error {
	if m.acks == 0 {
		return nil
	}
	m.acks = 0
	return m.w.FlushAll()
}

// wait waits until a rank has rung the bell, or has taken a message that the caller waits for.
func (m *mail) wait() error {
	me := m.c.Rank()
	rung := rma.Wait{Target: me, Disp: 2 * m.n, Cond: rma.NotEqual(m.bell)}
	var err error
	if len(m.out) == 0 {
		_, err = m.w.Await(me, 2*m.n, rung.Cond)
	} else {
		to := m.out[0].to
		_, _, err = m.w.AwaitEither(rung, rma.Wait{Target: me, Disp: m.n + to, Cond: rma.Equal(m.last[to])}, rma.Forever)
	}
	return err
}

// look looks at all slots, if a rank has rung since the last look.
func (m *mail) look() error {
	me := m.c.Rank()
	bell := m.w.Peek(2 * m.n)
	if bell == m.bell {
		return nil
	}
	m.bell = bell
	m.w.GetBulk(m.got, me, 0)
	return m.w.Flush(me)
}
