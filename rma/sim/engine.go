package sim

import (
	"errors"

	"github.com/rmalock/rmalock/rma"
)

// ErrDeadlock is wrapped when no rank can continue and not all have returned.
var ErrDeadlock = errors.New("deadlock")

// An engine decides which rank continues, and when. World, rank and Comm know it by this
// interface alone: the search (search*.go) follows a schedule, the clock (clock*.go) a model
// of time. Neither knows the other.
type engine interface {
	name() string
	// memory gives a new segment its words, for so many hosts.
	memory(s *segment, hosts int) error
	// open is the way of a rank to a window, and what it can do.
	open(c *Comm, s *segment) (rma.Transport, rma.Caps)
	// wake resumes a rank that is parked.
	wake(r *rank)
	// returned is called when a rank's body has returned.
	returned(r *rank)
	// enter is called when a rank enters a collective call, and met when the last one has:
	// then the others continue.
	enter(r *rank)
	met(g *group, last *rank)
	now(r *rank) int64
	sleep(r *rank, ns int64)
	controls
}

// controls is what a check asks of an engine: the methods of Comm that have these names.
type controls interface {
	beginSchedule(c *Comm) error
	endSchedule(c *Comm) error
	keepWindows(r *rank)
	memoiseRanks(r *rank, outside Snapshotter)
	watch(w Watcher)
	clockForCheck(r *rank) int64
	startWith(r *rank, f func())
	effectOutside(r *rank, f func())
	declareHome(r *rank, state func() uint64)
	turn(r *rank, t Turn)
	seeVisible()
	traces(r *rank) bool
	markTrace(r *rank, text string)
	extraHash(hash func() uint64)
	extraHashOf(hash func(rank int) uint64)
	alikeAs(r *rank, class uint64)
	failWith(r *rank, err error)
	elapsedSoFar() Elapsed
}
