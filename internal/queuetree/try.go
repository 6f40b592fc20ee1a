package queuetree

import (
	"context"
	"fmt"

	"github.com/rmalock/rmalock/lock"
)

// TryLock takes the lock if no rank holds or waits for it.
func (m *Mutex) TryLock() (bool, error) {
	s, err := m.t.claim(m.id)
	if err != nil {
		return false, err
	}
	got, err := visit{m.t, s}.try()
	if !got {
		m.t.unclaim(s)
	}
	return got, err
}

// poll takes the lock without queueing, until ctx ends.
func (v visit) poll(ctx context.Context) error {
	for try := 0; ; try++ {
		got, err := v.try()
		if got || err != nil {
			return err
		}
		if ctx.Err() != nil {
			v.t.unclaim(v.s)
			return fmt.Errorf("%s: lock %d: %w (%w)", v.t.name, v.s.id, lock.ErrDeadline, context.Cause(ctx))
		}
		if err := v.backoff(try); err != nil {
			return err
		}
	}
}

// try takes the lock if no rank holds or waits for it. Otherwise it leaves the queues
// again that it has entered.
func (v visit) try() (bool, error) {
	t, s := v.t, v.s
	for i := t.Leaf; i >= 0; i-- {
		word, mine := s.tails[i], s.node
		if i == t.Leaf && t.barging {
			word.disp, mine = s.state, held
			s.queued = false
		}
		last, err := t.W.CompareAndSwapFlush(mine, null, word.rank, word.disp)
		if err != nil {
			return false, err
		}
		if last != null {
			t.blockedLevel, t.blockedBy = i, last
			return false, v.leaveQueues(i + 1)
		}
	}
	if t.gate == nil {
		return true, nil
	}
	got, err := t.gate.TryAcquire(s.id)
	if got || err != nil {
		return got, err
	}
	if err := v.leaveQueues(0); err != nil {
		return false, err
	}
	t.blockedLevel = gateLevel
	return false, t.gate.Withdrawn(s.id)
}

// backoff pauses before another try: until the word that made the last one fail has
// changed, or for as long as the backend likes.
func (v visit) backoff(try int) error {
	t, s := v.t, v.s
	if t.blockedLevel == gateLevel {
		return t.gate.Backoff(try)
	}
	word := s.tails[t.blockedLevel]
	if t.blockedLevel == t.Leaf && t.barging {
		word.disp = s.state
	}
	return t.W.Backoff(word.rank, word.disp, t.blockedBy, try)
}
