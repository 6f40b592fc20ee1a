package check_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// fenced is a spin lock with a second word, INSIDE, that is 1 while a rank holds it. Its release
// clears INSIDE and then the lock in one doorbell.
type fenced struct {
	w    *rma.Window
	home int
}

const (
	fencedLock = iota
	fencedInside
)

func openFenced(c rma.Comm, _, home int) (lock.Table, error) {
	w, err := c.Allocate(rma.Spec{Name: "fenced", Regions: []rma.Region{{Count: 1, Words: []rma.Word{{Name: "LOCK"}, {Name: "INSIDE", Class: rma.Plain}}}}})
	if err != nil {
		return nil, err
	}
	return &fenced{w, home}, nil
}

func (t *fenced) TryLock(int, lock.Mode) (bool, error) {
	v, err := t.w.CompareAndSwapFlush(1, 0, t.home, fencedLock)
	if v != 0 || err != nil {
		return false, err
	}
	if v, err = t.w.GetFlush(t.home, fencedInside); v != 0 {
		return false, fmt.Errorf("INSIDE is %d and the lock was free", v)
	}
	if err == nil {
		err = t.w.PutFlush(1, t.home, fencedInside)
	}
	return true, err
}

func (t *fenced) Lock(ctx context.Context, _ int, mode lock.Mode) error {
	for try := 0; ; try++ {
		in, err := t.TryLock(0, mode)
		if in || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return lock.ErrDeadline
		}
		if err := t.w.Backoff(t.home, fencedLock, 1, try); err != nil {
			return err
		}
	}
}

func (t *fenced) Unlock(int, lock.Mode) error {
	t.w.Put(0, t.home, fencedInside)
	t.w.Fence(t.home)
	t.w.Accumulate(0, t.home, fencedLock, rma.Replace)
	return t.w.Flush(t.home)
}

func (t *fenced) Len() int             { return 1 }
func (t *fenced) Home(int) int         { return t.home }
func (t *fenced) Mutex(int) lock.Mutex { return nil }
func (t *fenced) Free() error          { return t.w.Free() }

// TestMutantsWithoutFence: a lock with a Fence has a mutant without, which is caught.
func TestMutantsWithoutFence(t *testing.T) {
	info := lock.Info{Name: "fenced", Title: "a toy", Open: openFenced}
	mutants, err := check.Mutants(false, info)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, m := range mutants {
		if m.Mutation != check.NoFence {
			continue
		}
		n++
		v, err := check.Kill(m, 1000, info)
		if err != nil || v.Err == nil {
			t.Errorf("%v survives %d executions: %v", m, v.Executions, err)
		}
	}
	if n != 1 {
		t.Errorf("%d mutants without a fence of %d, want 1", n, len(mutants))
	}
}
