package declock

import (
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// stampNs is the unit of timestamps: section 5.3.
const stampNs = 1000

// A remote is the timestamp of a rank of another node that waits, if one is known.
type remote struct {
	stamp int64
	known bool
}

// stamp is the time of an acquire in microseconds, modulo 2^StampBits.
func (t *Table) stamp() int64 {
	if !t.timed() {
		return 0
	}
	return (t.c.Now() - t.offset) / stampNs & t.stampMask()
}

func (t *Table) stampMask() int64 { return 1<<t.cfg.StampBits - 1 }

// older reports whether stamp a is before b, or the same: over half the range the order is the
// other way round.
func (t *Table) older(a, b int64) bool {
	return (b-a)&t.stampMask() <= t.stampMask()/2
}

// follow sets this rank's clock forward to a stamp of another rank that it has seen: whatever has
// a stamp lies in the past. So clocks of ranks that meet at a lock keep up with the fastest
// one, and no rank need stop to compare them. A stamp that is ahead by more than an
// eighth of the range is taken for an old one.
func (t *Table) follow(stamp int64) {
	if ahead := (stamp - t.stamp()) & t.stampMask(); ahead <= t.stampMask()/8 {
		t.offset -= ahead * stampNs
	}
}

// earliest is the earliest stamp of the entries from an index on that are written.
func (t *Table) earliest(k *member, from, end int64) (r remote) {
	if !t.timed() {
		return r
	}
	for i := from; i < end; i++ {
		e := t.queue[t.header.slot(i)]
		if t.header.age(e, i, k.epoch) != written || entryStamped.Get(e) == 0 {
			continue
		}
		t.follow(entryStamp.Get(e))
		if s := entryStamp.Get(e); !r.known || t.older(s, r.stamp) {
			r = remote{s, true}
		}
	}
	return r
}

// behind is the stamp of the entry at an index, the first one that waits on after a grant. The text
// of section 5.3 has the earliest stamp of the queue in a message, the public code this one: see
// docs/errata.md.
func (t *Table) behind(k *member, index, end int64) remote {
	return t.earliest(k, index, min(index+1, end))
}

// prefetch reads the queue, and notes the earliest stamp in the local lock: section 5.3. If the lock
// is being reset, the ranks of other nodes come first. exclusive: the node has the lock for a writer.
func (t *Table) prefetch(k *member, exclusive bool) error {
	header := t.locks.Get(k.home, k.disp)
	t.locks.GetBulk(t.queue, k.home, t.entryAt(k, 0))
	if err := t.locks.Flush(k.home); err != nil {
		return err
	}
	h, v := &t.header, t.locks.Value(header)
	q := &member{epoch: h.epoch.Get(v)}
	first := h.qhead.Get(v) + 1 // all behind a writer wait
	if !exclusive {
		first = t.firstWriter(q, v)
	}
	found := t.earliest(q, first, h.tail(v))
	if h.rst.Get(v) != 0 {
		found = remote{k.stamp - 1, true}
	}
	clear(t.queue)
	if !found.known {
		return nil
	}
	r, ok, err := t.lockLocal(k.id)
	if !ok || err != nil {
		return err
	}
	if heldHeld.Get(r.held) != 0 && heldLock.Get(r.held) == int64(k.id) && heldEpoch.Get(r.held) == q.epoch && heldStamped.Get(r.held) == 0 {
		r.held = heldStamp.With(heldStamped.With(r.held, 1), found.stamp)
	}
	return t.unlockLocal(&r)
}

// firstWriter is the index of the first writer behind readers that hold the lock.
func (t *Table) firstWriter(k *member, v int64) int64 {
	h := &t.header
	for i := h.qhead.Get(v) + 1; i < h.tail(v); i++ {
		e := t.queue[h.slot(i)]
		if h.age(e, i, k.epoch) == written && (entryMode.Get(e) == int64(lock.Exclusive)) {
			return i
		}
	}
	return h.tail(v)
}

// Synchronise sets this rank's clock for timestamps to 0 at the same time as the others, up to
// the time of one Get: section 5.3. The paper does so every second. Here it is for ranks whose
// clocks differ by more than an eighth of the range of stamps, 8 ms: those that are closer follow
// each other at the locks. Collective; all ranks wait for each other.
func (t *Table) Synchronise() error {
	at, all := t.cfg.At+t.perHost()*(1+t.cfg.Capacity), int64(t.c.Size())
	const round = 1 << 32
	v, err := t.locks.FetchAndOpFlush(1, 0, at, rma.Sum)
	if err != nil {
		return err
	}
	if v%round == all-1 { // the last one begins the next round
		_, err = t.locks.FetchAndOpFlush(round-all, 0, at, rma.Sum)
	} else {
		_, err = t.locks.Await(0, at, rma.AtLeast(v-v%round+round))
	}
	t.offset = t.c.Now()
	return err
}
