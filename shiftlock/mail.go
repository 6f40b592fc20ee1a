package shiftlock

import (
	"errors"

	"github.com/rmalock/rmalock/rma"
)

// Words of a slot.
const (
	nextWord = iota
	turnWord
	slotWords
)

// empty clears the mailboxes of a place before another rank can know of them. Messages that
// still come are of another lock or era.
func (t *Table) empty(p *place) error {
	if !p.used {
		return nil
	}
	me, slot := t.c.Rank(), p.me.slot()*slotWords
	t.box.Put(0, me, slot+nextWord)
	t.box.Put(0, me, slot+turnWord)
	p.used = false
	return t.box.Flush(me)
}

// send puts a message into a mailbox of a writer. One that is gone gets none: its lock will be
// reset.
func (t *Table) send(p *place, to name, word int, message int64) error {
	err := t.box.PutFlush(to.to(p.id, p.word)|message, to.rank(), to.slot()*slotWords+word)
	if errors.Is(err, rma.ErrPeer) {
		return nil
	}
	return err
}

// receive waits for a message of this era, until a moment. now is a moment before it came.
func (t *Table) receive(p *place, word int, until int64) (message int64, came bool, err error) {
	want := rma.Equal(p.me.to(p.id, p.word)).In(address)
	message, came, err = t.box.AwaitUntil(t.c.Rank(), p.me.slot()*slotWords+word, want, until)
	p.used = p.used || came
	return message, came, err
}
