package baseline_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/sim"
)

// TestNCoSEDSearch: two writers and a server on all schedules, more ranks up to some
// preemptions, and many at random. The last rank serves.
func TestNCoSEDSearch(t *testing.T) {
	for _, k := range []struct {
		plan  check.Plan
		bound int
		long  bool
	}{
		{check.Plan{Ranks: 3, Acquires: 1, Writers: 2}, sim.Unbounded, true},
		{check.Plan{Ranks: 3, Acquires: 1, Writers: 1}, 3, true},
		{check.Plan{Ranks: 3, Acquires: 2, Writers: 2}, 1, false},
		{check.Plan{Ranks: 3, Acquires: 2, Writers: 1}, 2, true},
		{check.Plan{Ranks: 4, Acquires: 1, Writers: 2}, 1, true},
	} {
		t.Run(fmt.Sprintf("%d x %d, %d writers, %d", k.plan.Ranks, k.plan.Acquires, k.plan.Writers, k.bound), func(t *testing.T) {
			if k.long && locktest.Quick() {
				t.Skip("seconds")
			}
			k.plan.Info, k.plan.MemoryNodes = with(t, "ncosed", nil), 1
			locktest.RunWhole(t, k.plan, k.bound)
		})
	}
	for _, s := range []sim.Scheduler{sim.Random(1, 0, locktest.Draws(1000)), sim.PCT(1, 3, 0, locktest.Draws(1000))} {
		for _, plan := range []check.Plan{
			{Ranks: 4, Acquires: 3, Writers: 2, MemoryNodes: 1},
			{Ranks: 5, Acquires: 3, Writers: check.Mixed, Seed: 2},
			{Ranks: 9, Acquires: 3, Writers: check.Mixed, MemoryNodes: 2},
		} {
			plan.Info, plan.Guard = with(t, "ncosed", nil), true
			locktest.RunPlan(t, plan, s)
		}
	}
}

// TestNCoSED: clients count right under locks of two servers, with tries, deadlines, and
// several locks held.
func TestNCoSED(t *testing.T) {
	info := with(t, "ncosed", params{"SERVERS": "2", "RETRIES": "50", "R": "1us", "L": "20us"})
	for _, job := range []inproc.Job{{Nodes: 1, PerNode: 3}, {Nodes: 2, PerNode: 3}, {Nodes: 3, PerNode: 2, MemoryNodes: 2}} {
		if err := job.Run(func(c rma.Comm) error { return served(c, info) }); err != nil {
			t.Errorf("%+v: %v", job, err)
		}
	}
}

// TestNCoSEDCosts: one CAS to acquire exclusively and one to release, one FetchAndOp shared, and
// a message to release.
func TestNCoSEDCosts(t *testing.T) {
	err := inproc.Job{Nodes: 2, PerNode: 1, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		var n hook.Tally
		tab, err := with(t, "ncosed", nil).Open(hook.Count(c, &n), 1, 0)
		if err != nil {
			return err
		}
		if lock.Serves(tab) {
			return errors.Join(lock.Leave(tab), c.Barrier(), tab.Free())
		}
		for _, s := range []step{
			{"X", take(0, lock.Exclusive), map[rma.Kind]int64{rma.KindCompareAndSwap: 1}},
			{"unX", give(0, lock.Exclusive), map[rma.Kind]int64{rma.KindCompareAndSwap: 1}},
			{"S", take(0, lock.Shared), map[rma.Kind]int64{rma.KindFetchAndOp: 1}},
			{"unS", give(0, lock.Shared), map[rma.Kind]int64{rma.KindPut: 1, rma.KindPutBulk: 1}},
		} {
			n.Reset()
			if err := s.do(tab); err != nil {
				return err
			}
			for k := range rma.Kinds {
				if n.Ops(k, hook.Far) != s.want[k] {
					return fmt.Errorf("%s: want %v; counted are\n%v", s.what, s.want, &n)
				}
			}
		}
		return errors.Join(lock.Leave(tab), c.Barrier(), tab.Free())
	})
	if err != nil {
		t.Error(err)
	}
}

// untried is a lock without tries: one of N-CoSED may fail though the lock is free, and a rank
// that tries in a loop answers messages between two tries, which a search does not give it.
func untried(info lock.Info) lock.Info {
	out := info
	out.Open = func(c rma.Comm, n, home int) (lock.Table, error) {
		t, err := info.Open(c, n, home)
		if err != nil {
			return nil, err
		}
		return patient{t.(servedTable)}, nil
	}
	return out
}

type servedTable interface {
	lock.Checked
	lock.Server
}

type patient struct{ servedTable }

func (t patient) Lock(ctx context.Context, id int, mode lock.Mode) error {
	if ctx.Done() != nil {
		return errors.ErrUnsupported
	}
	return t.servedTable.Lock(ctx, id, mode)
}
func (patient) TryLock(int, lock.Mode) (bool, error) { return false, errors.ErrUnsupported }
func (t patient) Hosts() rma.Hosts                   { return lock.HostsOf(t.servedTable) }

// TestNCoSEDMutants: N-CoSED with a mistake does not pass.
func TestNCoSEDMutants(t *testing.T) {
	const (
		pace = "a wait is a pause: the rank looks at all mailboxes after it"
		over = "the flush before has completed all that there was"
		rare = "not caught: it takes a rank that finds the readers of an old turn gone, and another one that comes at that moment"
		next = "the next look at the bell flushes it: the rank takes its messages a call later"
		acks = "not caught: it takes two messages of one rank, of which the second is sent while this rank computes"

		wait, bell, taken = "Await ncosed-mail.BELL", "Flush of Flush of PutBulk ncosed-mail.BELL", "Flush of Flush of Get ncosed-mail.TAKEN"
		clears            = "CompareAndSwap ncosed.LOCK"
	)
	locktest.RunMutantsOf(t, check.Effort{Budget: 300, Every: 16, Turns: true}, []check.Equivalent{
		{Phase: check.Acquiring, Step: wait, Mutation: check.AnyChange, Why: pace},
		{Phase: check.Acquiring, Step: wait, Before: "Flush of Flush", Mutation: check.NoWait, Why: pace},
		{Phase: check.Acquiring, Step: wait, Before: "Flush of PutBulk", Mutation: check.NoWait, Why: pace},
		{Phase: check.Acquiring, Step: wait, Before: "Flush of GetBulk", Mutation: check.NoWait, Why: pace},
		{Phase: check.Releasing, Step: wait, Mutation: check.AnyChange, Why: pace},
		{Phase: check.Releasing, Step: "Flush of Get ncosed-mail.BELL", Mutation: check.NoFlush, Why: next},
		{Phase: check.Releasing, Step: "Flush of GetBulk", Mutation: check.NoFlush, Why: next},
		{Phase: check.Releasing, Step: "PutBulk ncosed-mail.TAKEN", Before: "Flush of CompareAndSwap", Mutation: check.Late, Readers: true, Why: "the sender's next message waits for longer"},
		{Phase: check.Releasing, Step: "Flush of PutBulk ncosed-mail.TAKEN", Before: "PutBulk ncosed-mail.TAKEN", Mutation: check.NoFlush, Readers: true, Why: acks},
		{Phase: check.Acquiring, Step: taken, Mutation: check.NoFlush, Why: over},
		{Phase: check.Acquiring, Step: bell, Mutation: check.NoFlush, Why: over},
		{Phase: check.Releasing, Step: bell, Mutation: check.NoFlush, Why: over},
		{Phase: check.Acquiring, Step: "Flush of " + clears, Mutation: check.NoFlush, Readers: true, Why: rare},
		{Phase: check.Acquiring, Step: clears, Mutation: check.Torn, Readers: true, Why: rare},
		{Phase: check.Releasing, Step: clears, Mutation: check.Torn, Readers: true, Why: rare},
	}, untried(with(t, "ncosed", nil)))
}
