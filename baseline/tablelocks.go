package baseline

import (
	"context"
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// TableLocks are locks on whole tables of a database, above the locks of their rows: those of
// the code of dslr's authors, for the long reads of dslr, section 6.4. A rank that takes rows
// says so first (IntentExclusive, IntentShared); one that reads the whole table
// (WholeShared) then needs no row.
//
//	word  class  whose memory                   fields
//	LOCK  far    the home: memory node or rank  IX, IS, S: the ranks that hold the lock so, or try
//
// A rank adds 1 to its count. If ranks are there that it excludes, it takes the 1 back, looks at
// the word until they have gone, and tries again. WholeShared and IntentExclusive exclude each
// other, and nothing else does: row locks keep rows apart.
//
// 1+1 remote operations, two more for each try that fails, and a Get for each look. It is not
// fair: ranks that overlap keep those out that they exclude, and two may make each other fail
// again and again.
type TableLocks struct {
	table
	intents [MaxHeld]Intent
}

// An Intent is how a rank holds a table's lock.
type Intent uint8

const (
	IntentExclusive Intent = iota // IX: the rank takes rows exclusively
	IntentShared                  // IS: it takes rows in shared mode
	WholeShared                   // S: it reads the whole table
)

// String is the mode as databases name it.
func (i Intent) String() string { return intents[i].count.Name }

// intents has the count of each Intent, and the count of those that it excludes.
var intents = [...]struct{ count, against rma.Field }{
	IntentExclusive: {rma.Field{Name: "IX", Shift: 40, Bits: 20}, rma.Field{Name: "S", Shift: 0, Bits: 20}},
	IntentShared:    {rma.Field{Name: "IS", Shift: 20, Bits: 20}, rma.Field{}},
	WholeShared:     {rma.Field{Name: "S", Shift: 0, Bits: 20}, rma.Field{Name: "IX", Shift: 40, Bits: 20}},
}

// excludes reports whether ranks are in a word that an intent excludes.
func (i Intent) excludes(v int64) bool {
	against := intents[i].against
	return against.Bits > 0 && against.Get(v) > 0
}

// NewTableLocks opens a table of such locks. Collective; all ranks pass the same Config.
func NewTableLocks(c rma.Comm, cfg Config) (*TableLocks, error) {
	const name = "table-locks"
	if c.Size() >= 1<<20 {
		return nil, fmt.Errorf("baseline: %s: %d ranks, and a count has 20 bits: %w", name, c.Size(), lock.ErrConfig)
	}
	fields := []rma.Field{intents[IntentExclusive].count, intents[IntentShared].count, intents[WholeShared].count}
	t, err := openWords(c, name, cfg, rma.Word{Name: "LOCK", Class: rma.Far, Fields: fields})
	return &TableLocks{table: t}, err
}

// Lock takes lock id. Its errors are those of lock.Table.
func (t *TableLocks) Lock(ctx context.Context, id int, in Intent) error {
	at := t.at(id)
	k, err := t.held.claim(t.name, id, lock.Shared)
	if err != nil {
		return err
	}
	t.intents[k] = in
	got, v, err := t.try(at, in)
	for try := 0; !got && err == nil; try++ {
		if err = t.pause(ctx, id, blocker{at.target, at.disp, v}, try); err != nil {
			break
		}
		if v, err = t.get(at); err == nil && !in.excludes(v) {
			got, v, err = t.try(at, in)
		}
	}
	_, err = t.taken(k, true, err)
	return err
}

// try adds to the count, and takes that back if ranks are there that exclude the caller. It
// returns the word before.
func (t *TableLocks) try(at place, in Intent) (got bool, v int64, err error) {
	one := intents[in].count.One()
	v, err = t.add(at, one)
	if err == nil && in.excludes(v) {
		_, err = t.add(at, -one)
		return false, v, err
	}
	return err == nil, v, err
}

// TryLock takes lock id if no rank is there that excludes the caller.
func (t *TableLocks) TryLock(id int, in Intent) (bool, error) {
	at := t.at(id)
	k, err := t.held.claim(t.name, id, lock.Shared)
	if err != nil {
		return false, err
	}
	t.intents[k] = in
	got, _, err := t.try(at, in)
	return t.taken(k, got, err)
}

// Unlock releases lock id.
func (t *TableLocks) Unlock(id int) error {
	k := t.held.claimed(id, lock.Shared)
	t.held.unclaim(k)
	in := t.intents[k]
	t.intents[k] = 0
	_, err := t.add(t.at(id), -intents[in].count.One())
	return err
}
