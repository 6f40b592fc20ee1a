package dht

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// intruded is a Comm whose windows call before ahead of every operation.
type intruded struct {
	rma.Comm
	before *func(o rma.Operation)
}

func (c intruded) Allocate(spec rma.Spec) (*rma.Window, error) {
	w, err := c.Comm.Allocate(spec)
	if err != nil {
		return nil, err
	}
	return rma.Decorate(w, func(t rma.Transport) rma.Transport { return intruder{t, c.before} }), nil
}

type intruder struct {
	rma.Transport
	before *func(o rma.Operation)
}

func (i intruder) Issue(o rma.Operation) {
	if *i.before != nil {
		(*i.before)(o)
	}
	i.Transport.Issue(o)
}

// A rank that sleeps before its pop, while the top of the stack is popped, used and
// pushed again, does not get an element that is in use.
func TestSpareTopComesBack(t *testing.T) {
	other := make(chan *Table, 1)
	err := inproc.Run(2, func(c rma.Comm) error {
		var before func(o rma.Operation)
		table, err := New(intruded{c, &before}, Config{Slots: 1, Heap: 3, Volumes: 1})
		if err != nil {
			return err
		}
		if c.Rank() == 1 {
			other <- table
		} else if err = topComesBack(table, <-other, &before); err != nil {
			return err
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		return table.Free()
	})
	if err != nil {
		t.Fatal(err)
	}
}

func topComesBack(mine, his *Table, before *func(o rma.Operation)) error {
	expect := func(t *Table, want int64) error {
		if e, err := t.takeElement(0, 9); err != nil || e != want {
			return fmt.Errorf("took element %d (%v), want %d", e, err, want)
		}
		return nil
	}
	for e := int64(1); e <= 3; e++ {
		if err := expect(mine, e); err != nil {
			return err
		}
	}
	for e := int64(3); e >= 1; e-- { // so that the stack is 1, 2, 3
		if err := mine.giveBack(0, e); err != nil {
			return err
		}
	}
	var intruderErr error
	*before = func(o rma.Operation) {
		if o.Kind == rma.KindCompareAndSwap && o.Disp == spare {
			*before = nil
			// 1 and 2 are popped and 1 comes back: the stack is 1, 3.
			intruderErr = errors.Join(expect(his, 1), expect(his, 2), his.giveBack(0, 1))
		}
	}
	if err := errors.Join(expect(mine, 1), intruderErr, expect(mine, 3)); err != nil {
		return err
	}
	if e, err := mine.takeElement(0, 9); !errors.Is(err, ErrFull) {
		return fmt.Errorf("took element %d (%v) of an empty stack", e, err)
	}
	return nil
}

// A value that needs an element does not claim the slot when there is none.
func TestFullLeavesSlotUnclaimed(t *testing.T) {
	err := inproc.Run(1, func(c rma.Comm) error {
		table, err := New(c, Config{Slots: 1})
		if err != nil {
			return err
		}
		for _, create := range []func() error{
			func() error { _, err := table.Insert(7, 1<<62); return err },
			func() error { _, err := table.Add(8, 1<<62); return err },
		} {
			if err := create(); !errors.Is(err, ErrFull) {
				return fmt.Errorf("a value beyond 63 bits without a heap: %v, want %w", err, ErrFull)
			}
		}
		created, err := table.Insert(9, 1)
		if err != nil || !created {
			return fmt.Errorf("the slot is lost: %v, %w", created, err)
		}
		return table.Free()
	})
	if err != nil {
		t.Fatal(err)
	}
}
