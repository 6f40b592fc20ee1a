package lock

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/topo"
)

var (
	// ErrDeadline is returned by Lock and RLock when their context ended. The lock is
	// unchanged.
	ErrDeadline = errors.New("lock: deadline passed before the lock was free")
	// ErrTooManyHeld is returned when a rank holds more locks of a Table at once than
	// the lock has queue nodes for. The lock is unchanged.
	ErrTooManyHeld = errors.New("lock: rank holds too many locks of the table at once")
	// ErrLeaseLost is returned by Unlock to a holder that other ranks took for dead, because
	// it held the lock for longer than its lease. Others may have held the lock since: what
	// the caller wrote under it may be lost, or wrong. The caller does not hold the lock.
	ErrLeaseLost = errors.New("lock: the lease ran out while the lock was held")
	// ErrOwnerDied is returned by Lock, with the lock held, when a holder before may have died,
	// or lost its lease: what the lock guards may be half written. The caller repairs it, or gives up,
	// and calls Unlock.
	ErrOwnerDied = errors.New("lock: held; a holder before may have died in it")
	// ErrGiveWay is returned by Lock of a caller that holds other locks of the table, when it
	// has waited for so long that ranks may wait for each other. The lock is not held. The
	// caller lets go of all its locks, and begins again.
	ErrGiveWay = errors.New("lock: not taken; let go of all locks and begin again")
	// ErrConfig is wrapped by errors about a lock's configuration.
	ErrConfig = errors.New("lock: bad configuration")
)

// A Mode says which other holders a holder excludes.
type Mode uint8

const (
	// Exclusive excludes all others.
	Exclusive Mode = iota
	// Shared excludes holders in Exclusive mode alone.
	Shared
)

// String is "exclusive" or "shared".
func (m Mode) String() string {
	if m == Shared {
		return "shared"
	}
	return "exclusive"
}

// A Mutex is a lock that one holder has at a time. Its cost in remote operations is the
// Promise of the table that it belongs to. A Lock by a rank that holds the lock, and an
// Unlock by one that does not, panic.
type Mutex interface {
	// Lock waits for the lock and returns nil when the caller holds it. The error wraps
	// ErrDeadline when ctx ended first, ErrTooManyHeld, ErrOwnerDied, with which the caller
	// holds the lock, or is that of the backend.
	Lock(ctx context.Context) error
	// Unlock passes the lock on. What the caller flushed before is visible to the next
	// holder. An error wraps ErrLeaseLost, or is the backend's and leaves the lock in an
	// unknown state.
	Unlock() error
	// TryLock takes the lock if it is free and reports whether it did. It does not wait
	// for other holders.
	TryLock() (bool, error)
}

// An RWMutex is a Mutex that many readers may share. Lock, Unlock and TryLock are those of
// writers, which exclude all others.
type RWMutex interface {
	Mutex
	// RLock waits until no writer holds the lock, and shares it with other readers. Its
	// errors are those of Lock.
	RLock(ctx context.Context) error
	// RUnlock ends the sharing. The writer that comes next sees what the caller flushed
	// before.
	RUnlock() error
	// TryRLock shares the lock if no writer holds it or waits for it, and reports whether
	// it did.
	TryRLock() (bool, error)
}

// A Table is an array of locks whose words lie in one window (or in one window per
// level of the machine). Opening one is collective. Locks are named by ids from 0. The
// homes that a table has get equally many locks, but for one; Home says which is where.
//
// A rank's Table handle belongs to one goroutine at a time, with all locks in it.
type Table interface {
	// Len is the number of locks.
	Len() int
	// Home is the host whose memory holds the lock's central word: a rank, or, where
	// HostsOf says so, a memory node. All ranks get the same.
	Home(id int) int

	// Lock takes lock id. A lock without a shared mode takes Shared for Exclusive. Its
	// errors are those of Mutex.Lock.
	Lock(ctx context.Context, id int, mode Mode) error
	// Unlock releases lock id, which the caller took with the same mode.
	Unlock(id int, mode Mode) error
	// TryLock takes lock id if it can without waiting, and reports whether it did.
	TryLock(id int, mode Mode) (bool, error)

	// Mutex is a handle on one lock of the table; it implements RWMutex where the
	// lock has a shared mode.
	Mutex(id int) Mutex
	// Free closes the windows. Collective.
	Free() error
}

// HostsOf says what the homes of a table's locks are: ranks, unless the table, or the one that
// it unwraps to, has a method Hosts that says otherwise.
func HostsOf(t Table) rma.Hosts {
	for {
		if h, ok := t.(interface{ Hosts() rma.Hosts }); ok {
			return h.Hosts()
		}
		u, ok := t.(interface{ Unwrap() Table })
		if !ok {
			return rma.Ranks
		}
		t = u.Unwrap()
	}
}

// HomesOf is the number of hosts that a table's locks may have their homes at.
func HomesOf(t Table, c rma.Comm) int {
	if HostsOf(t) == rma.MemoryNodes {
		return c.MemoryNodes()
	}
	return c.Size()
}

// Unbounded is a Promise.Bypass without a bound: a rank may wait for ever. As a number of
// operations it means that others may make a rank try again.
const Unbounded = -1

// A Promise is what a lock promises for one mode. The checker holds it to that.
type Promise struct {
	// Bypass is the most entries of other ranks into the lock between the first atomic
	// operation of a Lock that took effect and the return of that Lock.
	Bypass int
	// Bounds are those of locks whose doorways are many. All of them hold.
	Bounds []Bound
	// Lease is how long, in nanoseconds from the return of a Lock, a holder keeps the lock for
	// sure; 0 for ever. After it others may enter, and Unlock returns ErrLeaseLost then. A lock
	// may have leases, such as readers' alone, and yet not recover.
	// Recovery is how long, in nanoseconds of doing nothing else, the ranks that want a lock that
	// recovers wait for dead ones at most; 0 where the lock does not say.
	Lease, Recovery int64
	// Acquire and Release are the most operations on other ranks' memory in one Lock
	// and one Unlock. Waiting, and what follows a try that failed, is not counted.
	Acquire, Release int
}

// A Bound is the most entries of some other ranks into the lock between an atomic
// operation of a Lock that took effect and the return of that Lock.
type Bound struct {
	After int                            // the number of that operation in the Lock, from 1
	Of    func(rank int, mode Mode) bool // the entries that count, by rank and mode; nil for all
	Most  int                            // the most such entries
}

// Checked is what a table tells a checker.
type Checked interface {
	Table
	// Promise is what the table promises of each of its locks in a mode.
	Promise(mode Mode) Promise
	// Idle reports what is wrong with the words in the caller's memory, and with its
	// handle, at a time when no rank holds or wants a lock of the table.
	Idle() error
}

// Locker makes a sync.Locker of a Mutex, for code that wants one. An error panics,
// since sync.Locker has no other way to tell.
func Locker(m Mutex) sync.Locker { return locker{m} }

type locker struct{ m Mutex }

func (l locker) Lock() {
	if err := l.m.Lock(context.Background()); err != nil {
		panic(fmt.Errorf("lock: Locker: %w", err))
	}
}

func (l locker) Unlock() {
	if err := l.m.Unlock(); err != nil {
		panic(fmt.Errorf("lock: Locker: %w", err))
	}
}

// RLocker makes a sync.Locker whose Lock and Unlock are RLock and RUnlock.
func RLocker(m RWMutex) sync.Locker { return rlocker{m} }

type rlocker struct{ m RWMutex }

func (l rlocker) Lock() {
	if err := l.m.RLock(context.Background()); err != nil {
		panic(fmt.Errorf("lock: RLocker: %w", err))
	}
}

func (l rlocker) Unlock() {
	if err := l.m.RUnlock(); err != nil {
		panic(fmt.Errorf("lock: RLocker: %w", err))
	}
}

// An Info is what the registry knows of a lock.
type Info struct {
	Name   string // as on the command line: "dmcs"
	Title  string // a line for people
	Shared bool   // has a shared mode
	Fair   string // the fairness bound in words or as a formula; "none" for none
	// Recovers says that the lock goes on when a rank dies that holds it or waits for it,
	// with ErrOwnerDied for the next holder and ErrLeaseLost for one that was taken for dead.
	// Promise.Lease says whether a holder may lose the lock though no rank dies.
	Recovers bool
	// Serves says that some ranks serve the others and take no lock: its tables are a Server.
	Serves bool
	// Open makes a Table of n locks with lock 0 at home. Collective.
	Open func(c rma.Comm, n, home int) (Table, error)
	// Params are what OpenWith understands beside it; a lock without has no OpenWith.
	Params []Param
	// OpenWith makes a Table as a Setting says. Collective.
	OpenWith func(c rma.Comm, s Setting) (Table, error)
	// Regions are the words of a Table that may lie in a window of the caller's: see Setting.Window.
	// nil: it has windows of its own.
	Regions func(c rma.Comm, s Setting) ([]rma.Region, error)
}

// A Param is a parameter of a lock that can be set by name.
type Param struct {
	Name string // as in "dmcs:NAME=value"
	Help string // a line: the values, and the default
}

// A Setting is how a lock is opened by name.
type Setting struct {
	Locks    int               // number of locks
	Home     int               // lock 0's home: a rank, or a memory node
	Topology *topo.Topology    // of the Comm's ranks; nil for what is discovered
	Params   map[string]string // values by name of a Param; the default for those that are missing
	// Window, if not nil, has the words of Info.Regions from displacement At on, and the data that the
	// locks guard. Unlock then completes what the caller has issued in it to the lock's home, before it
	// lets go and in the same doorbell.
	Window *rma.Window
	At     int
}

// With opens a lock with a setting. A lock that has no parameters takes none, and no
// topology.
func (i Info) With(c rma.Comm, s Setting) (Table, error) {
	known := ""
	for name := range s.Params {
		found := false
		for _, p := range i.Params {
			found = found || p.Name == name
		}
		if found {
			continue
		}
		for k, p := range i.Params {
			if k > 0 {
				known += ", "
			}
			known += p.Name
		}
		if known == "" {
			known = "none"
		}
		return nil, fmt.Errorf("lock: %s has no parameter %q; it has: %s: %w", i.Name, name, known, ErrConfig)
	}
	if s.Window != nil && i.Regions == nil {
		return nil, fmt.Errorf("lock: %s has windows of its own: leave Setting.Window out: %w", i.Name, ErrConfig)
	}
	if i.OpenWith == nil {
		return i.Open(c, s.Locks, s.Home)
	}
	return i.OpenWith(c, s)
}

var registry = map[string]Info{}

// Register enters a lock. Lock packages call it in init, so that importing one for
// its side effect is enough to open it by name.
func Register(i Info) {
	if i.Name == "" || i.Open == nil {
		panic("lock: Register without name or Open")
	}
	if _, ok := registry[i.Name]; ok {
		panic("lock: Register of " + i.Name + " twice")
	}
	registry[i.Name] = i
}

// All lists the registered locks by name.
func All() []Info {
	out := make([]Info, 0, len(registry))
	for _, i := range registry {
		out = append(out, i)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// Lookup finds a lock by name.
func Lookup(name string) (Info, error) {
	i, ok := registry[name]
	if !ok {
		names := ""
		for k, i := range All() {
			if k > 0 {
				names += ", "
			}
			names += i.Name
		}
		return Info{}, fmt.Errorf("lock: no lock is called %q; there are: %s: %w", name, names, ErrConfig)
	}
	return i, nil
}
