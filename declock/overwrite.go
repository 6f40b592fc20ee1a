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
// index of a reader that is told. To write an entry of a rank that has gone meanwhile
// may overwrite one of another lap later, which is restored in turn.
func (t *Table) restore(k *member, next int64) error {
	h := &t.header
	for {
		v, err := t.locks.GetFlush(k.home, k.disp)
		if err != nil || v&h.state != h.epoch.With(0, k.epoch) || h.tail(v) <= next+h.capacity {
			return err
		}
		first := h.tail(v)
		err = t.waiting(k, func(rank, slot int, part int64) {
			if index := partIndex.Get(part); index >= next+h.capacity {
				t.locks.Put(t.entryOf(k, rank, slot, part), k.home, t.entryAt(k, index))
				first = min(first, index)
			}
		})
		if err != nil {
			return err
		}
		next = first
	}
}

// waiting calls f for each rank that waits for the lock, and completes what f does.
func (t *Table) waiting(k *member, f func(rank, slot int, part int64)) error {
	defer clear(t.parts)
	for rank := range t.c.Size() {
		if rank == t.c.Rank() {
			continue
		}
		t.ranks.GetBulk(t.parts, rank, t.partAt(0))
		if err := t.ranks.Flush(rank); err != nil {
			if unreachable(err) {
				continue
			}
			return err
		}
		for slot, v := range t.parts {
			if partState.Get(v) == waiting && partLock.Get(v) == int64(k.id) {
				f(rank, slot, v)
			}
		}
		if err := t.locks.Flush(k.home); err != nil {
			return err
		}
	}
	return nil
}

// entryOf is the entry of a part that waits.
func (t *Table) entryOf(k *member, rank, slot int, part int64) int64 {
	return t.newEntry(rank*maxHeld+slot, partGeneration.Get(part), k.epoch, lock.Mode(partMode.Get(part)), partIndex.Get(part))
}
