package shiftlock

import (
	"fmt"

	"github.com/rmalock/rmalock/lock"
)

// release lets a writer's lock go (release_ex): to the next writer if there is one and fewer
// than K have had it since readers were let in; otherwise to the readers that wait.
func (t *Table) release(p *place) error {
	p.cons++
	next, err := t.successor(p)
	switch {
	case err != nil:
		return err
	case next == 0:
		return t.close(p)
	case p.cons >= int64(t.cfg.K):
		return t.letReadersIn(p, next)
	case t.late(p):
		v, err := t.w.GetFlush(p.home, p.disp)
		if err != nil {
			return err
		}
		if !sameEra(v, p.word) {
			return lost(p.id)
		}
	}
	return t.handOver(p, next)
}

// successor is the writer that has named itself as the next, or 0.
func (t *Table) successor(p *place) (name, error) {
	next, err := t.box.GetFlush(t.c.Rank(), p.me.slot()*slotWords+nextWord)
	if err != nil || next&address != p.me.to(p.id, p.word) {
		return 0, err
	}
	p.used = true
	return name(from.Get(next)), nil
}

// close ends the queue, and lets the readers in. If another writer has come it goes on with
// that one.
func (t *Table) close(p *place) error {
	for v := p.word; ; {
		switch {
		case !sameEra(v, p.word):
			return lost(p.id)
		case name(tail.Get(v)) != p.me:
			p.word = v
			return t.awaitSuccessor(p)
		}
		found, err := t.w.CompareAndSwapFlush(tail.With(flipped(v), 0), v, p.home, p.disp)
		if err != nil || found == v {
			return err
		}
		v = found
	}
}

// awaitSuccessor goes on when the writer that is behind has named itself. If that one has died
// in between, the lock is reset.
func (t *Table) awaitSuccessor(p *place) error {
	if p.cons >= int64(t.cfg.K) {
		return t.letReadersIn(p, 0)
	}
	next, err := t.hears(p)
	if next == 0 || err != nil {
		return err
	}
	return t.handOver(p, next)
}

// hears waits until the successor has named itself; 0 if the lock was reset meanwhile.
func (t *Table) hears(p *place) (name, error) {
	still := t.watch(p.word)
	for {
		next, came, err := t.receive(p, nextWord, t.until(t.now()))
		if came || err != nil {
			return name(from.Get(next)), err
		}
		if in, err := t.standing(p, &still); !in {
			return 0, err
		}
	}
}

// handOver hands the lock over to the next writer, without a word to its home.
func (t *Table) handOver(p *place, next name) error {
	return t.give(p, next, cons.With(age.With(0, t.aged(t.now()-p.since)), p.cons))
}

// letReadersIn lets the readers in that wait, and the next writer after these: it hears how far
// rel moves until they have left.
func (t *Table) letReadersIn(p *place, next name) error {
	now, v := t.now(), p.word
	for {
		if !sameEra(v, p.word) {
			return lost(p.id)
		}
		found, err := t.w.CompareAndSwapFlush(flipped(v), v, p.home, p.disp)
		if err != nil {
			return err
		}
		if found == v {
			break
		}
		v = found
	}
	p.word = flipped(v)
	after := drained.Get(p.word + rdr.Get(p.word)*rel.One())
	if next == 0 {
		var err error
		if next, err = t.hears(p); next == 0 || err != nil {
			return err
		}
	}
	return t.give(p, next, target.With(age.With(drains.One(), t.aged(t.now()-now)), after))
}

// give sends the next writer its turn.
func (t *Table) give(p *place, next name, turn int64) error {
	err := t.send(p, next, turnWord, turn)
	t.box.HandedOver(next.rank())
	return err
}

// lost is the error of a holder that others took for dead.
func lost(id int) error {
	return fmt.Errorf("shiftlock: lock %d: %w", id, lock.ErrLeaseLost)
}
