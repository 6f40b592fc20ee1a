package declock

import (
	"github.com/rmalock/rmalock/rma"
)

// A Detector tells the dead from the living: the coordinator of section 4.6. A Table calls it;
// it belongs to the same rank.
type Detector interface {
	// Beat says that the caller lives. Others that look later see it. It returns for how long
	// no rank that lives and dies with the caller has said so.
	Beat() (silence int64, err error)
	// Dead reports whether a rank has said so for the last time: it has not for two leases. It
	// looks anew at each call.
	Dead(rank int) (bool, error)
	// Free ends its use. Collective.
	Free() error
}

// heartbeats are a Detector: each rank writes the time into a word of its own, or of its node, and a
// rank whose word stays the same for two leases is dead. The clocks of ranks need not agree:
// another rank's time is compared with its time before. A Beat costs no remote operation, a look one
// Get.
type heartbeats struct {
	c     rma.Comm
	w     *rma.Window
	lease int64
	nodes bool   // the ranks of a node live and die together
	at    int    // rank that has this rank's word
	seen  []seen // by rank
}

// seen is what a rank's word was when it was looked at, and since when. at is the rank that has
// the word, plus 1.
type seen struct{ beat, since, at int64 }

const (
	beatWord  = iota
	placeWord // which rank has the BEAT of this one, plus 1
)

// NewHeartbeats opens heartbeats with a lease in nanoseconds. nodes: the ranks of a node live and
// die together, and one that lives shows that all do. Collective; its only collective call is
// Allocate.
func NewHeartbeats(c rma.Comm, lease int64, nodes bool) (Detector, error) {
	w, err := c.Allocate(rma.Spec{Name: "heartbeats", Regions: []rma.Region{
		{Count: 1, Words: []rma.Word{{Name: "BEAT", Class: rma.Near}, {Name: "PLACE", Class: rma.Near}}},
	}})
	if err != nil {
		return nil, err
	}
	d := &heartbeats{c: c, w: w, lease: lease, nodes: nodes, at: c.Rank(), seen: make([]seen, c.Size())}
	if nodes {
		d.at = c.Node().Ranks[0]
		return d, w.PutFlush(int64(d.at)+1, c.Rank(), placeWord)
	}
	for r := range d.seen {
		d.seen[r].at = int64(r) + 1
	}
	return d, nil
}

func (d *heartbeats) Beat() (silence int64, err error) {
	now := d.c.Now() + 1
	if d.nodes {
		last, err := d.w.GetFlush(d.at, beatWord)
		if err != nil {
			return 0, err
		}
		silence = now - last
	}
	return silence, d.w.PutFlush(now, d.at, beatWord)
}

func (d *heartbeats) Dead(rank int) (bool, error) {
	s := &d.seen[rank]
	if s.at == 0 {
		at, err := d.w.GetFlush(rank, placeWord)
		if err != nil || at == 0 { // not so far yet
			return unreachable(err), reachable(err)
		}
		s.at = at
	}
	v, err := d.w.GetFlush(int(s.at-1), beatWord)
	if err != nil {
		return unreachable(err), reachable(err)
	}
	now := d.c.Now()
	if s.beat != v || s.since == 0 {
		s.beat, s.since = v, now+1
		return false, nil
	}
	return now+1-s.since >= 2*d.lease, nil
}

func (d *heartbeats) Free() error { return d.w.Free() }
