package bench

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"time"

	"github.com/rmalock/rmalock/lock"
)

// A Workload says what the clients of mode clients do. A rank is a client.
type Workload interface {
	// String is the workload in a line: the same for equal workloads alone.
	String() string
	// Check reports why the workload cannot be on a number of locks. An error wraps ErrConfig.
	Check(locks int) error
	// Client is what one rank does. An error wraps ErrConfig.
	Client(s Site) (Client, error)
}

// A Sized workload says how many locks it wants.
type Sized interface {
	Workload
	// Table is the number of locks on so many hosts.
	Table(homes int) int
}

// A Site is the place of a client in a run.
type Site struct {
	Rank, Ranks int               // of the client, and their number
	Locks       int               // in the table
	Homes       int               // hosts that the locks go round: lock id is at host id modulo Homes
	Readers     float64           // Config.Readers
	Local       func(id int) bool // whether a lock's home is on the client's node
	Rand        *rand.Rand        // for all of the client's choices: equal seeds, equal visits
}

// A Client says what a rank does, visit by visit.
type Client interface {
	// Next fills in a visit, of which Locks is empty and has room. It does not allocate once
	// there is room enough.
	Next(v *Visit)
}

// A Visit acquires its locks in their order, works, and releases them, the last one first. Clients
// that acquire locks in another order than that of ids may wait for each other for ever, unless the
// lock has one of them give way. Then the visit releases all, pauses, and begins again, as it does
// if it has lost the lease of a lock.
type Visit struct {
	Locks []Acquire
	// Accesses is the number of memory accesses at the home of each lock while all are held. They
	// follow each other: Puts where the lock is exclusive, Gets where it is shared.
	Accesses int
	// Words are read at the home of each lock while all are held, before computing, and written
	// after it where the lock is exclusive, one lock after the other; at most 8.
	Words  int
	Inside time.Duration // of computing while all locks are held, after the accesses
	Think  time.Duration // after the releases
	Leases int           // that each lock is taken for, where a lock has leases of several slots; 0 means 1
	// Fails is how many attempts end without a release, as if the client had died with its locks.
	Fails int
}

// An Acquire is a lock and its mode.
type Acquire struct {
	Lock  int // id in the table
	Mode  lock.Mode
	Reads bool // no Words are written there, though the lock is exclusive
}

// A Mix is a Workload whose visits are drawn one by one. The zero value acquires one lock,
// each equally often, with nothing to do.
type Mix struct {
	Keys Keys `json:"keys"` // how often each lock is acquired
	// Local is the share of acquires of locks whose home is on the rank's own node, more than
	// 0 and at most 1. Keys then go by the ids among these locks, and among the others. 0 is
	// no such rule.
	Local    float64       `json:"local"`
	Together int           `json:"together"`  // locks of a visit, all different, acquired in the order of ids; 0 means 1
	Accesses int           `json:"accesses"`  // as in Visit
	Inside   time.Duration `json:"inside_ns"` // as in Visit
	Think    time.Duration `json:"think_ns"`  // as in Visit
}

// String is the fields that are not zero.
func (m Mix) String() string {
	text := []string{"keys " + m.Keys.String()}
	add := func(given bool, format string, value any) {
		if given {
			text = append(text, fmt.Sprintf(format, value))
		}
	}
	add(m.Local != 0, "local %.4g %%", 100*m.Local)
	add(m.Together > 1, "together %d", m.Together)
	add(m.Accesses > 0, "accesses %d", m.Accesses)
	add(m.Inside > 0, "inside %v", m.Inside)
	add(m.Think > 0, "think %v", m.Think)
	return strings.Join(text, ", ")
}

// Check reports what is wrong with the fields.
func (m Mix) Check(locks int) error {
	if err := m.Keys.check(); err != nil {
		return err
	}
	switch {
	case m.Keys.Power > 0 && m.Local > 0:
		return fmt.Errorf("keys %s are drawn at each host alike, so there is no share of local ones: %w", m.Keys, ErrConfig)
	case !(m.Local >= 0 && m.Local <= 1):
		return fmt.Errorf("share of local locks is %g, want 0 to 1: %w", m.Local, ErrConfig)
	case m.Together < 0 || m.Together > m.Keys.distinct(locks):
		return fmt.Errorf("%d locks together of %d with keys %s, want 1 to %d: %w", m.Together, locks, m.Keys, m.Keys.distinct(locks), ErrConfig)
	case m.Accesses < 0:
		return fmt.Errorf("number of accesses is %d, want 0 or more: %w", m.Accesses, ErrConfig)
	case m.Inside < 0 || m.Think < 0:
		return fmt.Errorf("time inside is %v and time after it %v, want 0 or more: %w", m.Inside, m.Think, ErrConfig)
	}
	return nil
}

// Client draws visits.
func (m Mix) Client(s Site) (Client, error) {
	c := &mixClient{Mix: m, rng: s.Rand, readers: share(s.Readers)}
	c.Together = max(1, m.Together)
	switch {
	case m.Keys.Power > 0:
		c.keys = byHome{m.Keys.over(max(1, s.Locks/s.Homes)), s.Homes}
		return c, nil
	case m.Local == 0:
		c.keys = m.Keys.over(s.Locks)
		return c, nil
	}
	l := &localKeys{local: share(m.Local)}
	for id := range s.Locks {
		if s.Local(id) {
			l.near = append(l.near, int32(id))
		}
	}
	near, far := len(l.near), s.Locks-len(l.near)
	if near == 0 || far == 0 && m.Local < 1 || max(m.Keys.distinct(near), m.Keys.distinct(far)) < c.Together {
		return nil, fmt.Errorf("%.4g %% local locks, %d together: the homes of %d locks are on the node of rank %d and of %d elsewhere; take more locks or nodes: %w",
			100*m.Local, c.Together, near, s.Rank, far, ErrConfig)
	}
	l.nearKeys, l.farKeys = m.Keys.over(near), m.Keys.over(max(far, 1))
	c.keys = l
	return c, nil
}

// share is a share for a comparison with 63 random bits.
func share(v float64) uint64 { return uint64(v * (1 << 63)) }

// localKeys draws locks of the own node with a share, and others.
type localKeys struct {
	local             uint64  // of 1<<63
	near              []int32 // ids of the own node's locks, ascending
	nearKeys, farKeys source
}

func (l *localKeys) next(rng *rand.Rand) int {
	if rng.Uint64()>>1 < l.local {
		return int(l.near[l.nearKeys.next(rng)])
	}
	far := l.farKeys.next(rng)
	// Before near[i] are near[i]-i locks of other nodes.
	return far + sort.Search(len(l.near), func(i int) bool { return int(l.near[i])-i > far })
}

// mixClient is the Client of a Mix.
type mixClient struct {
	Mix
	keys    source
	rng     *rand.Rand
	readers uint64 // of 1<<63 acquires
}

// Next draws locks until there are enough different ones.
func (c *mixClient) Next(v *Visit) {
	for len(v.Locks) < c.Together {
		c.add(v, c.keys.next(c.rng))
	}
	v.Accesses, v.Inside, v.Think = c.Accesses, c.Inside, c.Think
}

// add puts a lock in its place if it is not there.
func (c *mixClient) add(v *Visit, id int) {
	at := len(v.Locks)
	for at > 0 && v.Locks[at-1].Lock > id {
		at--
	}
	if at > 0 && v.Locks[at-1].Lock == id {
		return
	}
	mode := lock.Exclusive
	if c.readers > 0 && c.rng.Uint64()>>1 < c.readers {
		mode = lock.Shared
	}
	v.Locks = append(v.Locks, Acquire{})
	copy(v.Locks[at+1:], v.Locks[at:])
	v.Locks[at] = Acquire{Lock: id, Mode: mode}
}
