package baseline

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// MaxHeld is the number of locks of one table that a rank may hold or wait for at
// once. One more is lock.ErrTooManyHeld.
const MaxHeld = 64

// Config of a table.
type Config struct {
	Locks   int     // number of locks; 0 means 1
	Home    int     // rank that holds the word of lock 0; lock id is at (Home+id) mod Size
	Backoff Backoff // between two tries; the zero value is none
}

func (c *Config) validate(name string, size int) error {
	if c.Locks == 0 {
		c.Locks = 1
	}
	if c.Locks < 0 {
		return fmt.Errorf("baseline: %s: Config.Locks is %d, want at least 1: %w", name, c.Locks, lock.ErrConfig)
	}
	if c.Home < 0 || c.Home >= size {
		return fmt.Errorf("baseline: %s: Config.Home is %d, want a rank from 0 to %d: %w", name, c.Home, size-1, lock.ErrConfig)
	}
	if b := c.Backoff; b != (Backoff{}) && (b.BaseNs <= 0 || b.MaxNs < b.BaseNs) {
		return fmt.Errorf("baseline: %s: Config.Backoff has BaseNs %d and MaxNs %d, want both 0 for none, or 0 < BaseNs <= MaxNs: %w",
			name, b.BaseNs, b.MaxNs, lock.ErrConfig)
	}
	return nil
}

// Backoff is the pause between two tries. The zero value is none: the next try
// follows when Window.Backoff returns, as fast as the backend allows. Otherwise the
// pause is BaseNs after the first try and doubles with each, up to MaxNs; a Lock
// whose context has ended may be late by one pause.
type Backoff struct {
	BaseNs, MaxNs int64 // nanoseconds
}

// String is the back-off as the benchmarks print it.
func (b Backoff) String() string {
	if b == (Backoff{}) {
		return "none"
	}
	return fmt.Sprintf("exp(%d ns, %d ns)", b.BaseNs, b.MaxNs)
}

// pauseNs is the pause after a try, counted from 0.
func (b Backoff) pauseNs(try int) int64 {
	if try >= 63 || b.BaseNs > b.MaxNs>>try {
		return b.MaxNs
	}
	return b.BaseNs << try
}

// table is what the tables on a window have in common.
type table struct {
	name    string
	c       rma.Comm
	w       *rma.Window
	size    int
	locks   int
	home    int
	words   int // displacement of the first lock's word
	backoff Backoff
	held    held
}

// Len is the number of locks.
func (t *table) Len() int { return t.locks }

// Home is the rank whose memory holds the lock's word.
func (t *table) Home(id int) int {
	home, _ := t.word(id)
	return home
}

// Backoff is the pause between tries that the table runs with.
func (t *table) Backoff() Backoff { return t.backoff }

// Free closes the window. Collective. To free a table with a held lock is misuse.
func (t *table) Free() error { return t.w.Free() }

// Idle checks that the rank's words are 0 and its handle holds nothing.
func (t *table) Idle() error {
	if t.held.busy != 0 || t.held.all {
		return fmt.Errorf("baseline: %s: a rank holds %b (everything: %v)", t.name, t.held.busy, t.held.all)
	}
	for disp := range t.w.Words() {
		if v := t.w.Peek(disp); v != 0 {
			return fmt.Errorf("baseline: %s: %s of rank %d is %#x, want 0", t.name, t.w.Spec().WordName(disp), t.w.Rank(), v)
		}
	}
	return nil
}

// word is the home of a lock and the displacement of its word there.
func (t *table) word(id int) (home, disp int) {
	if uint(id) >= uint(t.locks) {
		panic(fmt.Sprintf("baseline: lock %d of a table of %d", id, t.locks))
	}
	return (t.home + id) % t.size, t.words + id/t.size
}

// everything stands for all locks of a table where an id is wanted.
const everything = -1

// A blocker is the word that made a try fail, and what it held.
type blocker struct {
	target, disp int
	seen         int64
}

// pause waits before the next try, or says that the context has ended.
func (t *table) pause(ctx context.Context, id int, b blocker, try int) error {
	if ctx.Err() != nil {
		what := "LockAll"
		if id != everything {
			what = fmt.Sprintf("lock %d", id)
		}
		return fmt.Errorf("baseline: %s: %s: %w (%w)", t.name, what, lock.ErrDeadline, context.Cause(ctx))
	}
	if t.backoff.BaseNs > 0 {
		t.c.Sleep(t.backoff.pauseNs(try))
	}
	return t.w.Backoff(b.target, b.disp, b.seen, try)
}

// perRank is the number of locks whose word a rank must have room for.
func perRank(locks, size int) int { return (locks + size - 1) / size }

// held is the set of locks that a rank holds or waits for, with their modes.
type held struct {
	all    bool   // the rank holds or waits for everything
	busy   uint64 // places in use, a bit each
	shared uint64 // of those, the ones in shared mode
	ids    [MaxHeld]int
}

// find is the place of a lock, or -1.
func (h *held) find(id int) int {
	for b := h.busy; b != 0; b &= b - 1 {
		if k := bits.TrailingZeros64(b); h.ids[k] == id {
			return k
		}
	}
	return -1
}

// claim gives a lock a place.
func (h *held) claim(table string, id int, mode lock.Mode) (k int, err error) {
	if h.all || h.find(id) >= 0 {
		panic("baseline: lock of a lock that this rank holds")
	}
	if k = bits.TrailingZeros64(^h.busy); k == MaxHeld {
		return 0, fmt.Errorf("baseline: %s: this rank holds %d locks: %w", table, MaxHeld, lock.ErrTooManyHeld)
	}
	h.busy |= 1 << k
	h.shared &^= 1 << k
	h.shared |= uint64(mode&1) << k
	h.ids[k] = id
	return k, nil
}

// claimed is the place of a lock that is about to be unlocked.
func (h *held) claimed(id int, mode lock.Mode) (k int) {
	if k = h.find(id); k < 0 || lock.Mode(h.shared>>k&1) != mode {
		panic("baseline: unlock of unlocked lock")
	}
	return k
}

// unclaim frees a place.
func (h *held) unclaim(k int) { h.busy &^= 1 << k }
