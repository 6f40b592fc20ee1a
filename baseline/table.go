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
	Home    int     // host that holds the word of lock 0; lock id is at (Home+id) mod the number of hosts
	Backoff Backoff // between two tries; the zero value is none
	// Retries is the number of tries that fail after which the Lock of a rank that holds other
	// locks of the table returns lock.ErrGiveWay: ranks may wait for each other in a circle. 0 is
	// no limit. dslr, section 6.1, gives such a limit to all locks that it compares with.
	Retries int
}

// validate refuses nonsense and fills in the defaults. size is the number of hosts.
func (c *Config) validate(name string, size int) error {
	if c.Locks == 0 {
		c.Locks = 1
	}
	if c.Locks < 0 {
		return fmt.Errorf("baseline: %s: Config.Locks is %d, want at least 1: %w", name, c.Locks, lock.ErrConfig)
	}
	if c.Home < 0 || c.Home >= size {
		return fmt.Errorf("baseline: %s: Config.Home is %d, want a host from 0 to %d: %w", name, c.Home, size-1, lock.ErrConfig)
	}
	if b := c.Backoff; b != (Backoff{}) && (b.BaseNs <= 0 || b.MaxNs < b.BaseNs || b.Jitter > Added) {
		return fmt.Errorf("baseline: %s: Config.Backoff has BaseNs %d, MaxNs %d and Jitter %d, want all 0 for none, or 0 < BaseNs <= MaxNs and a Jitter: %w",
			name, b.BaseNs, b.MaxNs, b.Jitter, lock.ErrConfig)
	}
	if c.Retries < 0 {
		return fmt.Errorf("baseline: %s: Config.Retries is %d, want 0 for no limit, or more: %w", name, c.Retries, lock.ErrConfig)
	}
	return nil
}

// Backoff is the pause between two tries. The zero value is none: the next try
// follows when Window.Backoff returns, as fast as the backend allows. Otherwise the
// pause is BaseNs after the first try and doubles with each, up to MaxNs; a Lock
// whose context has ended may be late by one pause.
type Backoff struct {
	BaseNs, MaxNs int64 // nanoseconds
	Jitter        Jitter
}

// Jitter says what is random in a pause.
type Jitter uint8

const (
	Fixed Jitter = iota // nothing
	Full                // all: a pause is from 0 to what Backoff says; dslr, appendix A.3
	Added               // a pause is up to as much again; the authors' code of cider
)

// String is the back-off as the benchmarks print it.
func (b Backoff) String() string {
	if b == (Backoff{}) {
		return "none"
	}
	return fmt.Sprintf("exp(%d ns, %d ns%s)", b.BaseNs, b.MaxNs, [...]string{"", ", random from 0", ", up to twice"}[b.Jitter])
}

// pauseNs is the pause after a try, counted from 0, but for what is random.
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
	retries int
	random  uint64
	held    held
}

// Len is the number of locks.
func (t *table) Len() int { return t.locks }

// Home is the host whose memory holds the lock's word.
func (t *table) Home(id int) int {
	home, _ := t.word(id)
	return home
}

// Backoff is the pause between tries that the table runs with.
func (t *table) Backoff() Backoff { return t.backoff }

// Free closes the window. Collective. To free a table with a held lock is misuse.
func (t *table) Free() error { return t.w.Free() }

// Hosts says whether homes are memory nodes or ranks.
func (t *table) Hosts() rma.Hosts { return t.w.Spec().Hosts }

// Idle checks that the handle holds nothing and that words are 0: the rank's, or those of all
// memory nodes.
func (t *table) Idle() error { return t.idle(func(v int64) bool { return v == 0 }) }

// idle is Idle of words that at rest are as ok says.
func (t *table) idle(ok func(v int64) bool) error {
	if t.held.busy != 0 || t.held.all {
		return fmt.Errorf("baseline: %s: a rank holds %b (everything: %v)", t.name, t.held.busy, t.held.all)
	}
	first, end := t.w.Rank(), t.w.Rank()+1
	if t.Hosts() == rma.MemoryNodes {
		first, end = 0, t.w.Size()
	}
	for host := first; host < end; host++ {
		for disp := range t.w.Words() {
			v, err := t.w.GetFlush(host, disp)
			if err != nil {
				return err
			}
			if !ok(v) {
				spec := t.w.Spec()
				word := spec.Word(disp)
				return fmt.Errorf("baseline: %s: %s of %v %d is %s at rest", t.name, spec.WordName(disp), spec.Hosts, host, word.Format(v))
			}
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

// notices reports whether a lock that pauses by itself lets the backend pause: each thousandth
// time, since the backend notices then that a rank has died, and a sleep does not.
func notices(try int) bool { return try > 0 && try%1000 == 0 }

// pause waits before the next try, or says that there is to be none.
func (t *table) pause(ctx context.Context, id int, b blocker, try int) error {
	if err := t.over(ctx, id, try); err != nil {
		return err
	}
	if t.backoff.BaseNs == 0 || notices(try) {
		return t.w.Backoff(b.target, b.disp, b.seen, try)
	}
	ns := t.backoff.pauseNs(try)
	switch t.backoff.Jitter {
	case Fixed:
	case Full:
		ns = t.upTo(ns)
	case Added:
		ns += t.upTo(ns)
	}
	t.c.Sleep(ns)
	return nil
}

// over says that a rank is to try no more: the context has ended, or its tries are used up.
func (t *table) over(ctx context.Context, id int, try int) error {
	if ctx.Err() != nil {
		what := "LockAll"
		if id != everything {
			what = fmt.Sprintf("lock %d", id)
		}
		return fmt.Errorf("baseline: %s: %s: %w (%w)", t.name, what, lock.ErrDeadline, context.Cause(ctx))
	}
	if t.retries > 0 && try+1 >= t.retries && t.held.several() {
		return fmt.Errorf("baseline: %s: lock %d: %d tries: %w", t.name, id, try+1, lock.ErrGiveWay)
	}
	return nil
}

// upTo is a random number from 0 to most, by xorshift64*.
func (t *table) upTo(most int64) int64 {
	x := t.random
	x ^= x >> 12
	x ^= x << 25
	x ^= x >> 27
	t.random = x
	return int64((x * 0x2545F4914F6CDD1D >> 1) % uint64(most+1))
}

// paced is a promise of a table with a back-off, in which tries that follow a pause count.
func (t *table) paced(p lock.Promise) lock.Promise {
	if t.backoff.BaseNs > 0 {
		p.Acquire = lock.Unbounded
	}
	return p
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

// several reports whether the rank holds another lock than the one that it is taking.
func (h *held) several() bool { return h.busy&(h.busy-1) != 0 }

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
