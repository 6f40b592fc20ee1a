package bench

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// verifyTries bounds the attempts of a visit in verify: with leases shorter than that takes it
// might never succeed.
const verifyTries = 20

// findings are what the visits of verify find on one rank, by lock.
type findings struct {
	made   samples         // increments
	unsure samples         // losses of leases: the lock is left out
	wrong  map[int64]error // locks that did not exclude
}

// verify checks that the locks exclude, in visits after the measured ones. Exclusive holders raise
// the locks' counters without atomics, so increments are lost if two of them are in. For shared
// holders the counters must not change. Locks of which a holder lost its lease are left out.
// Collective.
func (v *visitor) verify() error {
	v.gapNs = 0
	seen := findings{made: samples{}, unsure: samples{}, wrong: map[int64]error{}}
	visits := min(max(v.visits/10, 10), 1000)
	if !v.active() {
		visits = 0
	}
	for range visits {
		v.draw()
		for try := range verifyTries {
			done, err := v.verifyOnce(&seen)
			if err != nil {
				return err
			}
			if done {
				break
			}
			v.restart(try)
		}
	}
	if err := v.leave(); err != nil {
		return err
	}
	unsure, err := v.union(seen.unsure)
	if err != nil {
		return err
	}
	var first error
	for id, err := range seen.wrong {
		if unsure[id] == 0 {
			first = err
		}
	}
	if err := agree(v.c, v.cfg, first); err != nil {
		return err
	}
	for id := range unsure {
		delete(seen.made, id)
	}
	return agree(v.c, v.cfg, v.compare(seen.made))
}

// verifyOnce tries the visit that is drawn, and reports whether it held all its locks to its end.
func (v *visitor) verifyOnce(seen *findings) (done bool, err error) {
	held, err := v.attempt(false)
	if err != nil {
		return false, err
	}
	var found []error
	for _, a := range v.next.Locks[:held] {
		n, err := v.touch(a)
		if err != nil && !errors.Is(err, ErrExclusion) {
			return false, err
		}
		found = append(found, err)
		seen.made[int64(a.Lock)] += n
	}
	lost, err := v.release(held)
	if err != nil {
		return false, err
	}
	for i, a := range v.next.Locks[:held] {
		if v.lost[i] {
			seen.unsure[int64(a.Lock)]++
		} else if found[i] != nil {
			seen.wrong[int64(a.Lock)] = found[i] // the ranks go on together
		}
	}
	return held == len(v.next.Locks) && !lost, nil
}

// union adds up the samples of all ranks. Collective.
func (v *visitor) union(mine samples) (samples, error) {
	return rma.Combine(v.c, mine.encode(), func(all [][]byte) (samples, error) {
		sum := samples{}
		for _, b := range all {
			if err := sum.merge(b); err != nil {
				return nil, err
			}
		}
		return sum, nil
	})
}

// increments are those of one lock's counter.
type increments struct {
	lock int
	made int64
}

// compare compares counters with the increments of all ranks. There may be many locks of which
// few were acquired, so it goes by lock, and each rank looks at some.
func (v *visitor) compare(made samples) error {
	all, err := rma.Combine(v.c, made.encode(), func(all [][]byte) ([]increments, error) {
		sum := samples{}
		for _, b := range all {
			if err := sum.merge(b); err != nil {
				return nil, err
			}
		}
		out := make([]increments, 0, len(sum))
		for lock, n := range sum {
			out = append(out, increments{int(lock), n})
		}
		slices.SortFunc(out, func(a, b increments) int { return cmp.Compare(a.lock, b.lock) })
		return out, nil
	})
	if err != nil {
		return err
	}
	for i := v.c.Rank(); i < len(all); i += v.c.Size() {
		host, disp := v.data.word(all[i].lock, counter)
		found, err := v.data.w.GetFlush(host, disp)
		if err != nil {
			return err
		}
		if found != all[i].made {
			return fmt.Errorf("%d increments of a counter were made under lock %d of %q and it holds %d: %w",
				all[i].made, all[i].lock, v.cfg.Lock, found, ErrExclusion)
		}
	}
	return nil
}

// touch reads a lock's counter, waits for 1 to 4 us, and raises it, or reads it again if the
// lock is shared. It returns the number of increments.
func (v *visitor) touch(a Acquire) (made int64, err error) {
	host, disp := v.data.word(a.Lock, counter)
	before, err := v.data.w.GetFlush(host, disp)
	if err != nil {
		return 0, err
	}
	compute(v.c, v.cfg, 1000+v.rng.Int64N(3001))
	if a.Mode == lock.Exclusive || !v.shared {
		return 1, v.data.w.PutFlush(before+1, host, disp)
	}
	after, err := v.data.w.GetFlush(host, disp)
	if err == nil && after != before {
		err = fmt.Errorf("the counter of lock %d went from %d to %d while lock %q was shared: %w", a.Lock, before, after, v.cfg.Lock, ErrExclusion)
	}
	return 0, err
}
