package declock

import (
	"github.com/rmalock/rmalock/rma"
)

// A Detector tells the dead from the living: the coordinator of section 4.6. A Table calls it;
// it belongs to the same rank.
type Detector interface {
	// Beat says that the caller lives. Others that look later see it.
	Beat() error
	// Dead reports whether a rank has said so for the last time: it has not for more than two
	// leases. It looks anew at each call.
	Dead(rank int) (bool, error)
	// Free ends its use. Collective.
	Free() error
}

// heartbeats are a Detector: each rank writes the time into a word of its own, and a rank whose
// word stays the same for more than two leases is dead: it issues operations up to one after its
// last beat, and they take effect up to one later. The clocks of ranks need not agree: another
// rank's time is compared with its time before. A Beat costs no remote operation, a look one Get.
type heartbeats struct {
	c     rma.Comm
	w     *rma.Window
	lease int64
	seen  []seen // by rank
}

// seen is what a word was when it was looked at, and since when. Since 0 is never.
type seen struct{ beat, since int64 }

// same notes a look at a word, and reports for how long it has been the same.
func (s *seen) same(beat, now int64) int64 {
	if s.beat != beat || s.since == 0 {
		s.beat, s.since = beat, now+1
	}
	return now + 1 - s.since
}

// NewHeartbeats opens heartbeats with a lease in nanoseconds. Collective; its only collective
// call is Allocate.
func NewHeartbeats(c rma.Comm, lease int64) (Detector, error) {
	w, err := c.Allocate(rma.Spec{Name: "heartbeats", Regions: []rma.Region{
		{Count: 1, Words: []rma.Word{{Name: "BEAT", Class: rma.Near}}},
	}})
	if err != nil {
		return nil, err
	}
	return &heartbeats{c: c, w: w, lease: lease, seen: make([]seen, c.Size())}, nil
}

func (d *heartbeats) Beat() error { return d.w.PutFlush(d.c.Now()+1, d.c.Rank(), 0) }

func (d *heartbeats) Dead(rank int) (bool, error) {
	v, err := d.w.GetFlush(rank, 0)
	if err != nil {
		return unreachable(err), reachable(err)
	}
	return d.seen[rank].same(v, d.c.Now()) > 2*d.lease, nil
}

func (d *heartbeats) Free() error { return d.w.Free() }
