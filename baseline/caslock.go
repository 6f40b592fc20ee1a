package baseline

import (
	"context"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// CASLock is the spin lock for readers and writers on one word that declock (section 6.1,
// "Comparing targets") and cider (section 5.1, "CAS") compare with, and Retry-on-Fail of dslr,
// section 6.1.
//
//	word  class  whose memory                   fields
//	LOCK  far    the home: memory node or rank  owner: its rank + 1; readers: their number
//
// An exclusive Lock is CAS(LOCK, 0 to the owner) until it succeeds. A shared Lock adds 1 to
// readers, and waits until there is no owner. Unlock takes back what Lock added: a writer by
// CAS, once more for each reader that has come or gone meanwhile; with UndoAndRetry by
// FetchAndOp, as readers come and go without end there.
//
// 1+1 remote operations where no rank interferes. A writer that waits costs a CAS for each
// try, a reader a Get for each look. It is not fair: a reader that is in or waits fails every
// CAS, so readers starve writers; and a rank that is fast starves one that is slow.
//
// The papers print no code. That a writer's release leaves readers as they are is DecLock's
// code; that of the authors of dslr compares with no readers.
type CASLock struct {
	table
	undo bool
	me   int64 // the rank as owner of a word
}

var _ lock.Checked = (*CASLock)(nil)

// Readers says what a reader does that meets a writer.
type Readers uint8

const (
	// Keep leaves the reader's 1 in the word while it waits.
	Keep Readers = iota
	// UndoAndRetry takes it back, and adds it again with each try: a reader that waits costs two
	// operations a try. It does not keep writers out while it waits, but for moments.
	UndoAndRetry
)

// NewCASLock opens a table of CASLocks. Collective; all ranks pass the same arguments.
func NewCASLock(c rma.Comm, cfg Config, readers Readers) (*CASLock, error) {
	return openCASLock(c, "caslock", cfg, readers)
}

func openCASLock(c rma.Comm, name string, cfg Config, readers Readers) (*CASLock, error) {
	t, err := openWords(c, name, cfg, ownerAndReaders)
	if err != nil {
		return nil, err
	}
	return &CASLock{table: t, undo: readers == UndoAndRetry, me: fieldOwner.With(0, owner(c))}, nil
}

func init() {
	const name = "caslock"
	lock.Register(lock.Info{
		Name:   name,
		Title:  "CASLock of DecLock and CIDER, a spin lock for readers and writers on one word",
		Shared: true,
		Fair:   "none; readers starve writers",
		Params: []lock.Param{paramR, paramL, paramRetries},
		Open: func(c rma.Comm, n, home int) (lock.Table, error) {
			return NewCASLock(c, Config{Locks: n, Home: home}, Keep)
		},
		OpenWith: func(c rma.Comm, s lock.Setting) (lock.Table, error) {
			cfg, err := parse(name, s, Added, nil)
			if err != nil {
				return nil, err
			}
			return NewCASLock(c, cfg, Keep)
		},
	})
}

// Promise has no bound on entries of others.
func (t *CASLock) Promise(mode lock.Mode) lock.Promise {
	if mode == lock.Exclusive && !t.undo {
		return t.paced(unfair(1, lock.Unbounded))
	}
	return t.paced(unfair(1, 1))
}

// Lock takes lock id.
func (t *CASLock) Lock(ctx context.Context, id int, mode lock.Mode) error {
	at := t.at(id)
	k, err := t.held.claim(t.name, id, mode)
	if err != nil {
		return err
	}
	if mode == lock.Shared {
		err = t.enterShared(ctx, id, at, fieldReaders.One(), noOwner, t.undo)
	} else {
		err = t.spin(ctx, id, at)
	}
	_, err = t.taken(k, true, err)
	return err
}

// spin takes a lock exclusively.
func (t *CASLock) spin(ctx context.Context, id int, at place) error {
	for try := 0; ; try++ {
		found, err := t.cas(at, 0, t.me)
		if err != nil || found == 0 {
			return err
		}
		if err := t.pause(ctx, id, blocker{at.target, at.disp, found}, try); err != nil {
			return err
		}
	}
}

// TryLock takes lock id if it is free, with one operation, and one more to take back a
// reader's.
func (t *CASLock) TryLock(id int, mode lock.Mode) (bool, error) {
	at := t.at(id)
	k, err := t.held.claim(t.name, id, mode)
	if err != nil {
		return false, err
	}
	if mode == lock.Shared {
		got, err := t.tryShared(at, fieldReaders.One(), noOwner)
		return t.taken(k, got, err)
	}
	found, err := t.cas(at, 0, t.me)
	return t.taken(k, found == 0, err)
}

// Unlock releases lock id.
func (t *CASLock) Unlock(id int, mode lock.Mode) error {
	at := t.at(id)
	t.held.unclaim(t.held.claimed(id, mode))
	switch {
	case mode == lock.Shared:
		_, err := t.add(at, -fieldReaders.One())
		return err
	case t.undo: // a CAS could fail for ever, as readers come and go
		_, err := t.add(at, -t.me)
		return err
	}
	for v := t.me; ; {
		found, err := t.cas(at, v, fieldOwner.With(v, 0))
		if err != nil || found == v {
			return err
		}
		v = found
	}
}

// Mutex is a handle on lock id, a lock.RWMutex.
func (t *CASLock) Mutex(id int) lock.Mutex {
	t.word(id)
	return &handle{t, id}
}
