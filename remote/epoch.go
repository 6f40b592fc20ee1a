package remote

import (
	"fmt"

	"github.com/rmalock/rmalock/rma"
)

// A suspect is a client that keeps the epoch from advancing.
type suspect struct {
	client int
	entry  int64 // its ENTRY
	since  int64 // when this client saw it first, by its own clock
}

// Enter begins a section. What the client finds in it stays as it is until Leave, unless it is
// changed in place. Before that it makes blocks usable that no reader can see any more; it waits
// for readers only if the client has freed more than a quarter of a chunk that they may see. It makes
// a Put and a Get in one doorbell, and those that give blocks to the pool. Enter in a section panics.
func (h *Heap) Enter() error {
	if h.inside {
		panic("remote: Enter in a section")
	}
	if err := h.reclaim(); err != nil {
		return err
	}
	for {
		h.began = h.c.Now() // before others can see the entry
		h.section++
		h.w.Put(h.section<<epochBits|h.epoch, 0, h.entryAt)
		r := h.w.Get(0, h.epochAt) // before the Put or after it: an old epoch stands against all later ones
		if err := h.w.Flush(0); err != nil {
			return err
		}
		if e := h.w.Value(r); e == h.epoch {
			break
		} else {
			h.epoch = e
		}
	}
	h.inside = true
	h.ripen(h.epoch)
	return nil
}

// Leave ends a section. The caller has flushed all reads of it. ErrExpired says that what they found
// may be garbage. It makes a Put, which the next Flush completes. Leave outside a section panics.
func (h *Heap) Leave() error {
	if !h.inside {
		panic("remote: Leave outside a section")
	}
	h.inside = false
	lasted := h.c.Now() - h.began
	h.w.Put(0, 0, h.entryAt)
	if lasted > h.cfg.Lease {
		return fmt.Errorf("remote: heap %q: a section lasted %d us, and the lease (Config.Lease) is %d us; begin it again: %w",
			h.cfg.Name, lasted/1000, h.cfg.Lease/1000, ErrExpired)
	}
	return nil
}

// ripen marks the blocks that were freed before EPOCH was read as e, and makes those usable that
// wait for two epochs.
func (h *Heap) ripen(e int64) {
	for i := len(h.limbo) - h.unmarked; i < len(h.limbo); i++ {
		h.limbo[i].mark = e
	}
	h.unmarked = 0
	n := 0
	for ; n < len(h.limbo) && h.limbo[n].mark+2 <= e; n++ {
		h.put(h.limbo[n].kind, h.limbo[n].ref)
		h.limboWords -= h.sizes[h.limbo[n].kind]
	}
	if n > 0 {
		h.limbo = h.limbo[:copy(h.limbo, h.limbo[n:])]
	}
}

// reclaim keeps what the client holds small: it advances the epoch for blocks that wait, and
// gives blocks to the pool that it does not need. It is called outside a section, since a
// section would stop its own client.
func (h *Heap) reclaim() error {
	if h.limboWords > h.cfg.Chunk/8 {
		if err := h.advance(false); err != nil {
			return err
		}
	}
	for h.limboWords > h.cfg.Chunk/4 {
		if err := h.advance(true); err != nil {
			return err
		}
	}
	for h.freeWords > h.cfg.Chunk/4 {
		if err := h.giveList(h.largest()); err != nil {
			return err
		}
	}
	return nil
}

// advance moves EPOCH on by one if no section stands against it. wait says to wait for one that
// does, until it ends or its lease does.
func (h *Heap) advance(wait bool) error {
	r := h.w.Get(0, h.epochAt)
	h.w.Fence(0) // a client that is not yet in its ENTRY now enters in this epoch or later
	h.w.GetBulk(h.entries, 0, h.clientsAt)
	if err := h.w.Flush(0); err != nil {
		return err
	}
	e := h.w.Value(r)
	h.epoch = e
	h.ripen(e)
	for client := 0; client < len(h.entries)/clientWords; client++ {
		entry, evicted := h.entries[client*clientWords+entryWord], h.entries[client*clientWords+evictedWord]
		if entry == 0 || entry == evicted || entry&(1<<epochBits-1) == e {
			continue
		}
		return h.obstructed(client, entry, wait)
	}
	before, err := h.w.CompareAndSwapFlush(e+1, e, 0, h.epochAt)
	if err != nil {
		return err
	}
	if h.epoch = before; before == e {
		h.epoch = e + 1
	}
	h.ripen(h.epoch)
	return nil
}

// obstructed deals with a section that stands against the next epoch. It ends the section when
// the client has seen it for longer than a lease: it has then lasted longer than that.
func (h *Heap) obstructed(client int, entry int64, wait bool) error {
	now := h.c.Now()
	if h.suspect.client != client || h.suspect.entry != entry {
		h.suspect = suspect{client: client, entry: entry, since: now}
	}
	until := h.suspect.since + h.cfg.Lease + 1
	at := h.clientsAt + client*clientWords
	if now < until {
		if !wait {
			return nil
		}
		_, moved, err := h.w.AwaitUntil(0, at+entryWord, rma.NotEqual(entry), until)
		if moved || err != nil {
			return err
		}
	}
	return h.w.PutFlush(entry, 0, at+evictedWord)
}
