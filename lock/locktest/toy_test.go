package locktest_test

import (
	"context"
	"fmt"
	"runtime"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// toy is the simplest reader-writer lock: one word, changed by compare-and-swap,
// that holds writer or the number of readers. It can be told to do things wrong.
type toy struct {
	w       *rma.Window
	size    int
	n, home int
	held    map[int]lock.Mode
	fault   fault
	asked   int // for homes
}

const (
	writer  = 1 << 32
	maxHeld = 20
)

// A fault is something that a lock does wrong.
type fault string

const (
	none            fault = ""
	noExclusion     fault = "no rank is kept out"
	tornTry         fault = "a try reads and writes"
	lateUnlock      fault = "Unlock does not flush"
	blindReaders    fault = "readers do not see writers"
	blindWriters    fault = "writers do not see readers"
	lonelyReaders   fault = "readers keep readers out"
	oneWord         fault = "all locks of a table are one"
	shiftedHome     fault = "lock 0 is not at the home that was asked for"
	noHome          fault = "a home is no rank"
	ownHome         fault = "each rank names other homes"
	fickleHome      fault = "a home changes"
	unevenHome      fault = "a home has more locks than the others"
	oneHome         fault = "all locks are at one rank"     // which is no fault
	onMemoryNodes   fault = "the locks are on memory nodes" // which is no fault
	anyConfig       fault = "a bad configuration is taken"
	patientTry      fault = "TryLock waits"
	boldTry         fault = "TryLock says yes"
	shyTry          fault = "TryLock says no"
	messyTry        fault = "TryLock leaves something behind"
	deafLock        fault = "Lock does not look at its context"
	hastyLock       fault = "Lock gives up before it tries"
	greedyLock      fault = "Lock takes the lock and gives up"
	silentUnlock    fault = "Unlock of an unlocked lock does nothing"
	recursive       fault = "Lock of a held lock does nothing"
	wrongText       fault = "panics do not name the package"
	swallowed       fault = "errors are swallowed"
	panicking       fault = "errors panic"
	allocating      fault = "Lock allocates"
	overfull        fault = "one lock too many is taken and refused"
	miserly         fault = "no lock can be held"
	forgetful       fault = "Free does not free"
	unsupportedTry  fault = "the lock cannot try" // which is no fault
	exclusiveHandle fault = "handles have no shared mode"
)

// info is the registry's entry of a toy with a fault.
func info(f fault) lock.Info {
	return lock.Info{Name: "toy", Title: "a word", Shared: true, Fair: "none",
		Open: func(c rma.Comm, n, home int) (lock.Table, error) { return openToy(c, n, home, f) }}
}

func openToy(c rma.Comm, n, home int, f fault) (lock.Table, error) {
	if f == anyConfig {
		n, home = max(n, 1), max(0, min(home, c.Size()-1))
	}
	hosts := c.Size()
	if f == onMemoryNodes {
		hosts = c.MemoryNodes()
	}
	if n < 1 || home < 0 || home >= hosts {
		return nil, fmt.Errorf("toy: %d locks at %d: %w", n, home, lock.ErrConfig)
	}
	spec := rma.CounterSpec("toy", n)
	if f == onMemoryNodes {
		spec.Hosts = rma.MemoryNodes
	}
	w, err := c.Allocate(spec)
	if err != nil {
		return nil, err
	}
	return &toy{w: w, size: c.Size(), n: n, home: home, held: map[int]lock.Mode{}, fault: f}, nil
}

func (t *toy) Len() int { return t.n }

func (t *toy) Hosts() rma.Hosts { return t.w.Spec().Hosts }

func (t *toy) Home(id int) int {
	t.asked++
	switch {
	case t.fault == shiftedHome:
		id++
	case t.fault == noHome && id == 1:
		return -1
	case t.fault == ownHome && id > 0:
		id += t.w.Rank()
	case t.fault == fickleHome && id == 7:
		id += t.asked / 100
	case t.fault == onMemoryNodes:
		return (t.home + id) % t.w.Size()
	case t.fault == unevenHome && id < 10, t.fault == oneHome:
		id = 0
	}
	return (t.home + id) % t.size
}

func (t *toy) Free() error {
	if t.fault == forgetful {
		return fmt.Errorf("toy: the window stays")
	}
	return t.w.Free()
}

// word is the place of a lock's word.
func (t *toy) word(id int) (target, disp int) {
	if t.fault == oneWord {
		id = 0
	}
	switch t.fault {
	case oneHome:
		return t.home, id
	case onMemoryNodes:
		return (t.home + id) % t.w.Size(), id
	}
	return (t.home + id) % t.size, id
}

var sink any

// take gives a lock a place among the held ones.
func (t *toy) take(id int, mode lock.Mode) (err error) {
	if t.fault == allocating {
		sink = new(int64)
	}
	if _, ok := t.held[id]; ok && t.fault == wrongText {
		panic("do not do that")
	} else if ok && t.fault != recursive {
		panic("toy: lock of a lock that this rank holds")
	}
	if len(t.held) == maxHeld || t.fault == miserly {
		if t.fault == overfull {
			target, disp := t.word(id)
			t.w.PutFlush(writer, target, disp)
		}
		return fmt.Errorf("toy: %d locks: %w", maxHeld, lock.ErrTooManyHeld)
	}
	t.held[id] = mode
	return nil
}

// try is one try of a lock that has its place.
func (t *toy) try(id int, mode lock.Mode) (got bool, seen int64, err error) {
	target, disp := t.word(id)
	if seen, err = t.w.GetFlush(target, disp); err != nil {
		return false, 0, err
	}
	free, next := seen == 0 || t.fault == blindWriters && seen < writer, int64(writer)
	if mode == lock.Shared {
		free, next = seen < writer || t.fault == blindReaders, seen+1
		if t.fault == lonelyReaders {
			free = seen == 0
		}
	}
	switch {
	case t.fault == noExclusion:
		return true, seen, nil
	case !free:
		return false, seen, nil
	case t.fault == tornTry:
		runtime.Gosched()
		return true, seen, t.w.PutFlush(next, target, disp)
	case t.fault == blindWriters && mode == lock.Exclusive:
		next = seen + writer
	}
	before, err := t.w.CompareAndSwapFlush(next, seen, target, disp)
	return err == nil && before == seen, before, err
}

func (t *toy) Lock(ctx context.Context, id int, mode lock.Mode) error {
	if _, held := t.held[id]; held && t.fault == recursive {
		return nil
	}
	if err := t.take(id, mode); err != nil {
		return err
	}
	for try := 0; ; try++ {
		if t.fault == hastyLock && ctx.Done() != nil {
			delete(t.held, id)
			return fmt.Errorf("toy: %w", lock.ErrDeadline)
		}
		got, seen, err := t.try(id, mode)
		if got || err != nil {
			return t.wrong(err)
		}
		target, disp := t.word(id)
		if ctx.Done() != nil && t.fault != deafLock && ctx.Err() != nil {
			delete(t.held, id)
			if t.fault == greedyLock {
				t.w.AccumulateFlush(1, target, disp, rma.Sum)
			}
			return fmt.Errorf("toy: %w", lock.ErrDeadline)
		}
		if err := t.w.Backoff(target, disp, seen, try); err != nil {
			return err
		}
	}
}

func (t *toy) TryLock(id int, mode lock.Mode) (bool, error) {
	if t.fault == unsupportedTry {
		return false, errUnsupported
	}
	if t.fault == patientTry {
		return true, t.Lock(context.Background(), id, mode)
	}
	if err := t.take(id, mode); err != nil {
		return false, err
	}
	for {
		got, seen, err := t.try(id, mode)
		err = t.wrong(err)
		if !got && err == nil && mode == lock.Shared && seen < writer && t.fault != lonelyReaders {
			continue // lost against another reader
		}
		if t.fault == boldTry {
			return true, err
		}
		if got && t.fault == shyTry {
			delete(t.held, id)
			target, disp := t.word(id)
			return false, t.w.AccumulateFlush(-amount(mode), target, disp, rma.Sum)
		}
		if !got {
			delete(t.held, id)
			if t.fault == messyTry {
				target, disp := t.word(id)
				t.w.AccumulateFlush(1, target, disp, rma.Sum)
			}
		}
		return got, err
	}
}

func (t *toy) Unlock(id int, mode lock.Mode) error {
	if m, ok := t.held[id]; !ok || m != mode {
		switch t.fault {
		case silentUnlock:
			return nil
		case wrongText:
			panic("do not do that")
		}
		panic("toy: unlock of unlocked lock")
	}
	delete(t.held, id)
	if t.fault == noExclusion {
		return nil
	}
	target, disp := t.word(id)
	t.w.Accumulate(-amount(mode), target, disp, rma.Sum)
	if t.fault == lateUnlock {
		return nil
	}
	return t.wrong(t.w.Flush(target))
}

// wrong is what becomes of an error.
func (t *toy) wrong(err error) error {
	switch {
	case err == nil || t.fault == swallowed:
		return nil
	case t.fault == panicking:
		panic(err)
	}
	return err
}

func amount(mode lock.Mode) int64 {
	if mode == lock.Shared {
		return 1
	}
	return writer
}

func (t *toy) Mutex(id int) lock.Mutex {
	if t.fault == exclusiveHandle {
		return struct{ lock.Mutex }{&handle{t, id}}
	}
	return &handle{t, id}
}

type handle struct {
	t  *toy
	id int
}

func (h *handle) Lock(ctx context.Context) error  { return h.t.Lock(ctx, h.id, lock.Exclusive) }
func (h *handle) RLock(ctx context.Context) error { return h.t.Lock(ctx, h.id, lock.Shared) }
func (h *handle) TryLock() (bool, error)          { return h.t.TryLock(h.id, lock.Exclusive) }
func (h *handle) TryRLock() (bool, error)         { return h.t.TryLock(h.id, lock.Shared) }
func (h *handle) Unlock() error                   { return h.t.Unlock(h.id, lock.Exclusive) }
func (h *handle) RUnlock() error                  { return h.t.Unlock(h.id, lock.Shared) }
