package baseline

import (
	"context"
	"fmt"

	"github.com/rmalock/rmalock/internal/values"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// DSLRPlus is DSLR+ of
//
//	DecLock (declock), section 2.3: "we integrated the latest backoff technique on DM - truncated
//	exponential backoff [30] - into the state-of-the-art RDMA ticket lock called DSLR",
//
// the tickets of dslr without its leases. The paper gives no numbers: those here are of its
// authors' code.
//
//	word  class  whose memory                   fields
//	LOCK  far    the home: memory node or rank  gen, nX, nS, maxX, maxS
//
// A rank draws a ticket by adding 1 to maxX or maxS, and enters when the tickets of others
// before it that exclude it are released: nX, and for a writer nS, are what maxX and maxS were.
// Until then it reads the word, after pauses. Unlock adds 1 to nX or nS. The rank whose ticket
// is number CountMax makes the word zero when all tickets are released; ranks that draw
// meanwhile take their draws back, wait, and draw again.
//
// 1+1 remote operations, and a Get for each look of a rank that waits. Ranks enter in the order
// of their tickets, readers between two writers in any. A rank that dies stops its locks for
// ever.
//
// With a context that can end, or with Config.Retries in a rank that holds other locks, a rank
// does not draw, as a ticket cannot be given back: it tries until it would be served at once.
//
// # Where it differs
//
// The counters have 15 bits and CountMax is 2^14 (in the authors' code 16 and 2^15): gen counts
// resets, so that no operation on an old word succeeds on a new one. It wraps after 16 resets: a
// rank must not be stopped, in the middle of an acquire, for 262,144 tickets of one lock. Package
// dslr has more bits there, and more resets; of these a lock with many readers would see much.
// Draws are taken back by CompareAndSwap, and the reset does not wait for that: a subtraction
// after the reset would borrow from the field beside. After a reset a rank looks again whether its
// ticket is valid.
type DSLRPlus struct {
	table
	pace
	countMax int64
	prev     [MaxHeld]int64 // the word before the draw, of each lock held
}

var _ lock.Checked = (*DSLRPlus)(nil)

// PlusConfig of a table of DSLR+ locks. Times are in nanoseconds.
type PlusConfig struct {
	Config // but for Backoff
	// BaseNs and CapNs bound the pause between two looks, which doubles with each; up to RandomNs
	// more is random. The cap moves between the two. 0 means 100, 3,200 and 2,000.
	// BaseNs less than 0 leaves the pace to the backend.
	BaseNs, CapNs, RandomNs int64
	// CountMax is the number of tickets of a mode after which the counters are reset; 0 means
	// 16,384.
	CountMax int
}

// pace is how a rank waits: with pauses that double up to a limit, which grows while many
// looks are in vain.
type pace struct {
	baseNs, capNs, randomNs int64
	limitNs                 int64 // from baseNs to capNs
	looks, acquires         int64 // looks in vain, and acquires, from the beginning
	adapted                 int64 // when the limit was looked at last
}

// The authors' code looks at the share of looks in vain each 100 us. It has a limit for each
// core, and here each rank has one.
const (
	adaptEachNs = 100_000
	tooMany     = 0.7 // looks in vain of all looks: the limit doubles
	fewEnough   = 0.5 // the limit halves
)

var plus = struct{ gen, nX, nS, maxX, maxS rma.Field }{
	gen:  rma.Field{Name: "gen", Shift: 60, Bits: 4},
	nX:   rma.Field{Name: "nX", Shift: 45, Bits: 15},
	nS:   rma.Field{Name: "nS", Shift: 30, Bits: 15},
	maxX: rma.Field{Name: "maxX", Shift: 15, Bits: 15},
	maxS: rma.Field{Name: "maxS", Shift: 0, Bits: 15},
}

const plusCountMax = 1 << 14

// plusCounters are the counters of a mode: released and drawn.
func plusCounters(mode lock.Mode) (n, max rma.Field) {
	if mode == lock.Shared {
		return plus.nS, plus.maxS
	}
	return plus.nX, plus.maxX
}

const dslrPlus = "dslr-plus"

// NewDSLRPlus opens a table of DSLR+ locks. Collective; all ranks pass the same Config.
func NewDSLRPlus(c rma.Comm, cfg PlusConfig) (*DSLRPlus, error) {
	def := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	def(&cfg.BaseNs, 100)
	def(&cfg.CapNs, max(3200, cfg.BaseNs))
	def(&cfg.RandomNs, 2000)
	if cfg.CountMax == 0 {
		cfg.CountMax = plusCountMax
	}
	switch {
	case cfg.Backoff != (Backoff{}):
		return nil, fmt.Errorf("baseline: %s: Config.Backoff is %v, want none: BaseNs and CapNs are its own: %w", dslrPlus, cfg.Backoff, lock.ErrConfig)
	case cfg.CapNs < cfg.BaseNs || cfg.RandomNs < 0:
		return nil, fmt.Errorf("baseline: %s: BaseNs is %d, CapNs %d and RandomNs %d, want BaseNs up to CapNs, and no negative random part: %w",
			dslrPlus, cfg.BaseNs, cfg.CapNs, cfg.RandomNs, lock.ErrConfig)
	case cfg.CountMax < 1 || cfg.CountMax > plusCountMax:
		return nil, fmt.Errorf("baseline: %s: CountMax is %d, want 1 to %d: %w", dslrPlus, cfg.CountMax, plusCountMax, lock.ErrConfig)
	case c.Size() >= plusCountMax:
		return nil, fmt.Errorf("baseline: %s: %d ranks may draw more than %d tickets at once, the room in a counter: %w",
			dslrPlus, c.Size(), plusCountMax, lock.ErrConfig)
	}
	t, err := openWords(c, dslrPlus, cfg.Config, rma.Word{Name: "LOCK", Class: rma.Far, Fields: []rma.Field{plus.gen, plus.nX, plus.nS, plus.maxX, plus.maxS}})
	if err != nil {
		return nil, err
	}
	return &DSLRPlus{
		table: t, countMax: int64(cfg.CountMax),
		pace: pace{baseNs: cfg.BaseNs, capNs: cfg.CapNs, randomNs: cfg.RandomNs, limitNs: cfg.CapNs},
	}, nil
}

func init() {
	lock.Register(lock.Info{
		Name:   dslrPlus,
		Title:  "DSLR+ of DecLock's comparison, DSLR's tickets without leases, with pauses that adapt",
		Shared: true,
		Fair:   "in the order of the tickets; readers between two writers in any order",
		Params: []lock.Param{
			{Name: "BASE", Help: "first pause between two looks, doubling, as in 100ns, the default; 0: the backend's pace"},
			{Name: "CAP", Help: "longest pause but for what is random, as in 3200ns, the default"},
			{Name: "RANDOM", Help: "random part of a pause, as in 2us, the default"},
			{Name: "COUNTMAX", Help: "tickets of a mode between two resets; default 16384"},
			paramRetries,
		},
		Open: func(c rma.Comm, n, home int) (lock.Table, error) {
			return NewDSLRPlus(c, PlusConfig{Config: Config{Locks: n, Home: home}})
		},
		OpenWith: func(c rma.Comm, s lock.Setting) (lock.Table, error) {
			var cfg PlusConfig
			base, err := parse(dslrPlus, s, Fixed, func(param, value string) (err error) {
				switch param {
				case "BASE":
					if cfg.BaseNs, err = values.Time(value); cfg.BaseNs == 0 {
						cfg.BaseNs = -1
					}
				case "CAP":
					cfg.CapNs, err = values.Time(value)
				case "RANDOM":
					cfg.RandomNs, err = values.Time(value)
				case "COUNTMAX":
					cfg.CountMax, err = values.Number(value, 0)
				}
				return err
			})
			if err != nil {
				return nil, err
			}
			cfg.Config = base
			return NewDSLRPlus(c, cfg)
		},
	})
}

// Promise says that a rank is passed, after its draw, by each other rank once as a writer, and,
// if it is a writer, once as a reader. A draw that is taken back does not count.
func (t *DSLRPlus) Promise(mode lock.Mode) lock.Promise {
	p := unfair(1, 1)
	if t.baseNs > 0 {
		p.Acquire, p.Release = lock.Unbounded, lock.Unbounded // looks after pauses count
	}
	if t.countMax < plusCountMax {
		return unfair(lock.Unbounded, lock.Unbounded)
	}
	others := t.c.Size() - 1
	if mode == lock.Exclusive {
		p.Bypass = others
	} else {
		writers := func(_ int, mode lock.Mode) bool { return mode == lock.Exclusive }
		p.Bounds = []lock.Bound{{After: 1, Of: writers, Most: others}}
	}
	return p
}

// Idle checks that the handle holds nothing and that all tickets are released.
func (t *DSLRPlus) Idle() error {
	return t.idle(func(v int64) bool {
		return plus.nX.Get(v) == plus.maxX.Get(v) && plus.nS.Get(v) == plus.maxS.Get(v)
	})
}

// Lock takes lock id.
func (t *DSLRPlus) Lock(ctx context.Context, id int, mode lock.Mode) error {
	at := t.at(id)
	k, err := t.held.claim(t.name, id, mode)
	if err != nil {
		return err
	}
	if ctx.Done() != nil || t.retries > 0 && t.held.several() {
		t.prev[k], err = t.poll(ctx, id, at, mode)
	} else {
		t.prev[k], err = t.draw(at, mode)
	}
	t.acquires++
	_, err = t.taken(k, true, err)
	return err
}

// draw draws a ticket and waits until it is served. It returns the word before the draw.
func (t *DSLRPlus) draw(at place, mode lock.Mode) (prev int64, err error) {
	_, max := plusCounters(mode)
	for {
		prev, err = t.add(at, max.One())
		if err != nil {
			return prev, err
		}
		if !t.frozen(prev) {
			_, err = t.await(at, prev, served(prev, mode))
			return prev, err
		}
		if err = t.takeBack(at, prev+max.One(), max.One()); err != nil {
			return prev, err
		}
		if _, err = t.await(at, prev, rma.NotEqual(prev&plus.gen.Mask()).In(plus.gen.Mask())); err != nil {
			return prev, err
		}
	}
}

// frozen reports whether a word waits for its reset.
func (t *DSLRPlus) frozen(v int64) bool {
	return plus.maxX.Get(v) >= t.countMax || plus.maxS.Get(v) >= t.countMax
}

// served is the condition on the word that serves a ticket drawn at prev.
func served(prev int64, mode lock.Mode) rma.Cond {
	mask, want := plus.nX.Mask(), plus.nX.With(0, plus.maxX.Get(prev))
	if mode == lock.Exclusive {
		mask, want = mask|plus.nS.Mask(), plus.nS.With(want, plus.maxS.Get(prev))
	}
	return rma.Equal(want).In(mask)
}

// takeBack subtracts a draw from the word, which the draw left at v, unless the word is reset.
func (t *DSLRPlus) takeBack(at place, v, draw int64) error {
	for gen := plus.gen.Get(v); plus.gen.Get(v) == gen; {
		found, err := t.cas(at, v, v-draw)
		if err != nil || found == v {
			return err
		}
		v = found
	}
	return nil
}

// await waits for a condition on the word, which was v: by the backend, or by looks after
// pauses.
func (t *DSLRPlus) await(at place, v int64, c rma.Cond) (int64, error) {
	if t.baseNs < 0 && !c.Holds(v) {
		return t.w.Await(at.target, at.disp, c)
	}
	var err error
	for look := 0; err == nil && !c.Holds(v); look++ {
		if t.rest(look); notices(look) {
			if err = t.w.Backoff(at.target, at.disp, v, look); err != nil {
				break
			}
		}
		v, err = t.get(at)
	}
	return v, err
}

// rest pauses after a look in vain.
func (t *DSLRPlus) rest(look int) {
	t.looks++
	if now := t.c.Now(); now-t.adapted >= adaptEachNs {
		t.adapted = now
		switch share := float64(t.looks) / float64(t.looks+t.acquires); {
		case share > tooMany:
			t.limitNs = min(2*t.limitNs, t.capNs)
		case share < fewEnough:
			t.limitNs = max(t.limitNs/2, t.baseNs)
		}
	}
	ns := t.limitNs
	if look < 62 && t.baseNs <= t.limitNs>>look {
		ns = t.baseNs << look
	}
	t.c.Sleep(ns + t.upTo(t.randomNs))
}

// try draws a ticket only if it is served at once.
func (t *DSLRPlus) try(at place, mode lock.Mode) (got bool, v int64, err error) {
	_, max := plusCounters(mode)
	v, err = t.get(at)
	for err == nil && !t.frozen(v) && served(v, mode).Holds(v) {
		found, err := t.cas(at, v, v+max.One())
		if err != nil || found == v {
			return err == nil, v, err
		}
		v = found
	}
	return false, v, err
}

// poll tries until it draws a ticket that is served, or is to try no more.
func (t *DSLRPlus) poll(ctx context.Context, id int, at place, mode lock.Mode) (prev int64, err error) {
	for look := 0; ; look++ {
		got, v, err := t.try(at, mode)
		if got || err != nil {
			return v, err
		}
		if t.baseNs > 0 {
			if err = t.over(ctx, id, look); err == nil {
				t.rest(look)
			}
		} else {
			err = t.table.pause(ctx, id, blocker{at.target, at.disp, v}, look)
		}
		if err != nil {
			return v, err
		}
	}
}

// TryLock takes lock id if it is free, by a Get and a CompareAndSwap.
func (t *DSLRPlus) TryLock(id int, mode lock.Mode) (bool, error) {
	at := t.at(id)
	k, err := t.held.claim(t.name, id, mode)
	if err != nil {
		return false, err
	}
	var got bool
	got, t.prev[k], err = t.try(at, mode)
	return t.taken(k, got, err)
}

// Unlock releases lock id.
func (t *DSLRPlus) Unlock(id int, mode lock.Mode) error {
	at := t.at(id)
	k := t.held.claimed(id, mode)
	t.held.unclaim(k)
	n, max := plusCounters(mode)
	prev := t.prev[k]
	t.prev[k] = 0
	v, err := t.add(at, n.One())
	if err != nil || max.Get(prev) != t.countMax-1 {
		return err
	}
	return t.reset(at, v+n.One(), prev+max.One())
}

// reset makes the word zero, of the next generation, when all tickets are released: the last
// one is the caller's, and after it the word was last. What is above it are draws that are taken
// back.
func (t *DSLRPlus) reset(at place, v, last int64) error {
	released := plus.nX.Mask() | plus.nS.Mask()
	for {
		for plus.nX.Get(v) != plus.maxX.Get(last) || plus.nS.Get(v) != plus.maxS.Get(last) {
			var err error
			if v, err = t.await(at, v, rma.NotEqual(v&released).In(released)); err != nil {
				return err
			}
		}
		found, err := t.cas(at, v, plus.gen.With(0, plus.gen.Get(v)+1))
		if err != nil || found == v {
			return err
		}
		v = found
	}
}

// Mutex is a handle on lock id, a lock.RWMutex.
func (t *DSLRPlus) Mutex(id int) lock.Mutex {
	t.word(id)
	return &handle{t, id}
}
