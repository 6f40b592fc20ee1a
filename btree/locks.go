package btree

import (
	"context"
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/remote"
	"github.com/rmalock/rmalock/rma"
)

// A locker locks nodes, by hashes of their names: two nodes may have one lock. A client holds
// one at a time.
type locker interface {
	lock(ref remote.Ref, mode lock.Mode) error
	// unlock completes what the client has issued to the node, and lets go.
	unlock(ref remote.Ref, mode lock.Mode) error
	free() error // collective
}

// hash is a number below n.
func hash(ref remote.Ref, n int) int { return int(uint64(sum(int64(ref))) >> 1 % uint64(n)) }

// tableLocks are locks of any table. If its words lie in another window, the node is complete before
// the Unlock: nothing but a Flush orders two windows.
type tableLocks struct {
	w      *rma.Window
	locks  lock.Table
	within bool // its words lie in the tree's window, those of a node's lock at the node's host
}

// id is the lock of a node.
func (t *tableLocks) id(ref remote.Ref) int {
	if hosts := t.w.Size(); t.within {
		return hash(ref, t.locks.Len()/hosts)*hosts + ref.Node()
	}
	return hash(ref, t.locks.Len())
}

func (t *tableLocks) lock(ref remote.Ref, mode lock.Mode) error {
	err := t.locks.Lock(context.Background(), t.id(ref), mode)
	if errors.Is(err, lock.ErrOwnerDied) {
		return nil // a node that is half written shows
	}
	return err
}

func (t *tableLocks) unlock(ref remote.Ref, mode lock.Mode) error {
	if !t.within {
		if err := t.w.Flush(ref.Node()); err != nil {
			return err
		}
	}
	return t.locks.Unlock(t.id(ref), mode)
}

func (t *tableLocks) free() error { return nil }

// globalLocks are Sherman's locks without hierarchy: a word for each at the node's host, taken by
// CompareAndSwap. The node's write and the release are one doorbell.
type globalLocks struct {
	w  *rma.Window
	at int   // displacement of the first
	n  int   // at each host
	me int64 // what a lock holds that the client holds, or with hierarchy its compute node
}

func (g *globalLocks) word(ref remote.Ref) (host, disp int) {
	return ref.Node(), g.at + hash(ref, g.n)
}

func (g *globalLocks) lock(ref remote.Ref, _ lock.Mode) error {
	host, disp := g.word(ref)
	for try := 0; ; try++ {
		seen, err := g.w.CompareAndSwapFlush(g.me, 0, host, disp)
		if err != nil || seen == 0 {
			return err
		}
		if err := g.w.Backoff(host, disp, seen, try); err != nil {
			return err
		}
	}
}

// unlock releases by a sum. Sherman writes 0: a Put of a word that network cards change by
// atomics is not atomic with them on most.
func (g *globalLocks) unlock(ref remote.Ref, _ lock.Mode) error {
	host, disp := g.word(ref)
	g.w.Fence(host)
	g.w.Accumulate(-g.me, host, disp, rma.Sum)
	return g.w.Flush(host)
}

func (g *globalLocks) free() error { return nil }

// The words of a compute node's local lock.
const (
	ticketWord = iota // the next ticket
	turnWord          // ticket whose turn it is 60 | hand-overs of the global lock in a row 4
	localWords
)

const (
	turnShift   = 4
	maxHandOver = 8 // Sherman's kMaxHandOverTime
)

// hierarchicalLocks are Sherman's: the clients of a compute node take turns by tickets, and the
// one whose turn it is has the global lock, at most eight times in a row without releasing
// it.
type hierarchicalLocks struct {
	globalLocks
	local *rma.Window // at the first rank of each compute node
	host  int         // that rank
	mine  int64       // the client's ticket
	times int64       // hand-overs before this client's turn
}

func (h *hierarchicalLocks) slot(ref remote.Ref) int {
	host, disp := h.word(ref)
	return (host*h.n + disp - h.at) * localWords
}

func (h *hierarchicalLocks) lock(ref remote.Ref, mode lock.Mode) error {
	at := h.slot(ref)
	ticket, err := h.local.FetchAndOpFlush(1, h.host, at+ticketWord, rma.Sum)
	if err != nil {
		return err
	}
	turn, err := h.local.Await(h.host, at+turnWord, rma.AtLeast(ticket<<turnShift))
	if err != nil {
		return err
	}
	h.mine, h.times = ticket, turn&(1<<turnShift-1)
	if h.times > 0 {
		return nil // the global lock came with the turn
	}
	return h.globalLocks.lock(ref, mode)
}

func (h *hierarchicalLocks) unlock(ref remote.Ref, mode lock.Mode) error {
	at := h.slot(ref)
	next, err := h.local.GetFlush(h.host, at+ticketWord)
	if err != nil {
		return err
	}
	times := int64(0)
	if next > h.mine+1 && h.times < maxHandOver-1 {
		times = h.times + 1
		err = h.w.Flush(ref.Node())
	} else {
		err = h.globalLocks.unlock(ref, mode)
	}
	if err != nil {
		return err
	}
	return h.local.PutFlush((h.mine+1)<<turnShift|times, h.host, at+turnWord)
}

func (h *hierarchicalLocks) free() error { return h.local.Free() }

// The names of Sherman's own locks; any other is of a lock.Table.
const (
	Vanilla = "vanilla" // hierarchical: tickets in the compute node, then CompareAndSwap
	NH      = "nh"      // CompareAndSwap alone
)

// newLocker opens the locks of a tree. Collective.
func (t *Tree) newLocker(c rma.Comm, at int) error {
	global := globalLocks{w: t.w, at: at, n: t.cfg.NodeLocks, me: int64(c.Rank()) + 1}
	switch {
	case t.cfg.Open != nil:
		locks, err := t.cfg.Open(t.w, at+t.cfg.NodeLocks)
		if err != nil {
			return fmt.Errorf("btree: %w", err)
		}
		if hosts := t.w.Size(); locks.Len() < hosts || locks.Home(0) != 0 {
			return fmt.Errorf("btree: Config.Open has %d locks with the first at host %d, want one for each of the %d hosts and more, from host 0 on: %w",
				locks.Len(), locks.Home(0), hosts, ErrConfig)
		}
		t.locks = &tableLocks{w: t.w, locks: locks, within: true}
	case t.cfg.Locks != nil:
		t.locks = &tableLocks{w: t.w, locks: t.cfg.Locks}
	case t.cfg.Own == NH:
		t.locks = &global
	default:
		local, err := c.Allocate(rma.Spec{Name: "btree, local locks", Regions: []rma.Region{{
			Count: t.cfg.NodeLocks * max(1, t.w.Size()),
			Words: []rma.Word{ticketWord: {Name: "TICKET", Class: rma.Near}, turnWord: {Name: "TURN", Class: rma.Near}},
		}}})
		if err != nil {
			return fmt.Errorf("btree: %w", err)
		}
		global.me = int64(c.Node().Index) + 1 // another client of the node may release it
		t.locks = &hierarchicalLocks{globalLocks: global, local: local, host: c.Node().Ranks[0]}
	}
	return nil
}
