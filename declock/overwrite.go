package declock

import (
	"github.com/rmalock/rmalock/lock"
)

// This file is about entries that are overwritten: section 4.4. It happens between the release
// of a writer and its messages to the readers behind it. Other readers hold the lock by then,
// come and go, and move the head over a reader that has not been told yet. A lap later a rank
// writes its entry into the same place: over the reader's, or the reader over its. The paper
// resets the lock if it sees the first, and does not see the second. Here the writer that
// releases finds in the parts of the ranks which of them waits at which index.

// search is look for an index whose entry a later one overwrites.
func (t *Table) search(k *member, index int64) (e int64, how age, err error) {
	h := &t.header
	for err == nil {
		err = t.waiting(k, func(rank, slot int, part int64) {
			if partIndex.Get(part) == index {
				e, how = t.entryOf(k, rank, slot, part), written
			}
		})
		if how == written || err != nil {
			return e, how, err
		}
		// The rank has not come so far; it writes its entry yet.
		var gone bool
		if gone, err = t.refetch(k, index); gone {
			return 0, unwritten, err
		}
		if e = t.queue[h.slot(index)]; h.age(e, index, k.epoch) == written {
			return e, written, err
		}
	}
	return 0, unwritten, err
}

// restore writes entries again that may be overwritten: those a lap and more behind next, the
// index of a reader that is told. v is the header after that reader's entry was read. To write an
// entry of a rank that has gone meanwhile may overwrite one of another lap later, which is
// restored in turn.
func (t *Table) restore(k *member, next, v int64) error {
	h := &t.header
	for v&h.state == h.epoch.With(0, k.epoch) && h.tail(v) > next+h.capacity {
		first := h.tail(v)
		err := t.waiting(k, func(rank, slot int, part int64) {
			if index := partIndex.Get(part); index >= next+h.capacity {
				t.locks.Put(t.entryOf(k, rank, slot, part), k.home, t.entryAt(k, index))
				first = min(first, index)
			}
		})
		if err != nil {
			return err
		}
		if v, err = t.locks.GetFlush(k.home, k.disp); err != nil {
			return err
		}
		next = first
	}
	return nil
}

// scanned is the number of ranks whose parts are read in one flush.
const scanned = 32

// waiting calls f for each rank that waits for the lock, and completes what f does.
func (t *Table) waiting(k *member, f func(rank, slot int, part int64)) error {
	defer clear(t.scan)
	var some [scanned]int32
	for first := 0; first < t.c.Size(); first += scanned {
		ranks := some[:min(scanned, t.c.Size()-first)]
		for i := range ranks {
			ranks[i] = int32(first + i)
		}
		if _, err := t.read(ranks); err != nil {
			return err
		}
		for i, v := range t.scan[:len(ranks)*t.cfg.Held] {
			if partState.Get(v) == waiting && partLock.Get(v) == int64(k.id) {
				f(first+i/t.cfg.Held, i%t.cfg.Held, v)
			}
		}
		if err := t.locks.Flush(k.home); err != nil {
			return err
		}
		clear(t.scan)
	}
	return nil
}

// read reads the parts of up to scanned ranks into scan, but for the caller's. It reports whether
// it could read all: one of them may be gone.
func (t *Table) read(ranks []int32) (all bool, err error) {
	if t.scan == nil {
		t.scan = make([]int64, scanned*t.cfg.Held)
	}
	for i, rank := range ranks {
		if int(rank) != t.c.Rank() {
			t.ranks.GetBulk(t.scan[i*t.cfg.Held:][:t.cfg.Held], int(rank), t.partAt(0))
		}
	}
	err = t.ranks.FlushAll()
	return err == nil, reachable(err)
}

// entryOf is the entry of a part that waits.
func (t *Table) entryOf(k *member, rank, slot int, part int64) int64 {
	return t.newEntry(rank*maxHeld+slot, partGeneration.Get(part), k.epoch, lock.Mode(partMode.Get(part)), partIndex.Get(part))
}
