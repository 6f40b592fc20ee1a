package baseline

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// NCoSED is N-CoSED, with which dslr compares (section 6.1), after
//
//	S. Narravula and others: High Performance Distributed Lock Management Services using
//	Network-based Remote Atomic Operations. CCGrid 2007:
//
// CAS for writers, FetchAndOp for readers, and messages between ranks where they meet.
//
//	word  class  whose memory                   fields
//	LOCK  far    the home: memory node or rank  rank and turn of the last writer; requests of readers since
//
// A writer swaps itself and a number, its turn, for what the word holds, and 0 for the readers. If
// there was a writer it asks that one for the lock, if there were readers alone it asks the
// lock's server. A reader adds 1; if there is a writer it asks that one. Who was asked grants the
// lock when it has released it, and those readers that it let in have left; the server does so
// for readers that met no writer.
//
// 1+1 remote operations exclusively and 1+0 shared, and a message for the release of a reader.
// A rank that waits sends a message and gets one. A message is a Put of the message and one of a
// bell, and later one by its receiver, which says that the next may come.
//
// Writers enter in the order of their swaps; a reader may be passed by writers.
//
// A rank answers others in its calls of Lock, Unlock and Serve: one that computes keeps them
// waiting. The last NCoSEDConfig.Servers ranks serve, and take no locks; see [lock.Server].
//
// # Where it differs
//
// The paper's text is not the source, but the account of dslr and the two programs of its
// authors, which are unsafe: one lets a writer in beside readers, and neither tells a request
// for an old turn of a writer from one for its new turn. Hence the turn.
type NCoSED struct {
	table
	mail    *mail
	clients int
	servers int
	turn    int64
	same    bool     // of a test: all turns have one number
	records []record // turns of this rank that are not over
	homes   []homed  // of a server: locks whose readers it counts
	granted bool     // the rank's last request is
	readAs  [MaxHeld]writerTurn
	turns   [MaxHeld]int64

	ended   int  // of the first server: ranks that want no more locks
	ending  bool // the rank has said so
	stopped bool // and so have all
}

var (
	_ lock.Checked = (*NCoSED)(nil)
	_ lock.Server  = (*NCoSED)(nil)
)

// NCoSEDConfig of a table of N-CoSED locks.
type NCoSEDConfig struct {
	Config
	Servers int // the last ranks, which serve; 0 means 1
}

// A record is a writer's turn: what it owes to those who asked it.
type record struct {
	id       int
	turn     int64
	released bool
	waiting  []int // readers
	granted  int   // readers that were let in
	returned int   // readers that have left
	succ     int   // the next writer's rank + 1, or 0
	succS    int   // the readers that it waits for
}

// homed is what a server knows of readers that met no writer.
type homed struct {
	id, left int
	succ     int // a writer that waits, its rank + 1, or 0
	succS    int
}

// writerTurn is whom a reader has asked; rank -1 for none.
type writerTurn struct {
	rank int
	turn int64
}

var ncosed = struct{ rank, turn, shared rma.Field }{
	rank:   rma.Field{Name: "writer", Shift: 44, Bits: 20},
	turn:   rma.Field{Name: "turn", Shift: 32, Bits: 12},
	shared: rma.Field{Name: "readers", Shift: 0, Bits: 32},
}

var letter = struct{ kind, turn, shared, lock rma.Field }{
	kind:   rma.Field{Name: "kind", Shift: 56, Bits: 4},
	turn:   rma.Field{Name: "turn", Shift: 44, Bits: 12},
	shared: rma.Field{Name: "readers", Shift: 32, Bits: 12},
	lock:   rma.Field{Name: "lock", Shift: 0, Bits: 32},
}

// Kinds of messages.
const (
	mailGrant    = iota // to a rank that waits: the lock is its
	mailWriter          // a writer asks the writer before it
	mailReader          // a reader asks a writer
	mailLeft            // a reader that a writer let in has left
	mailHomed           // a writer asks the server, behind readers
	mailLeftHome        // a reader that met no writer has left
	mailEnd             // a rank wants no more locks
	mailStop            // no rank does
)

const ncosedName = "ncosed"

// NewNCoSED opens a table of N-CoSED locks. Collective; all ranks pass the same Config.
func NewNCoSED(c rma.Comm, cfg NCoSEDConfig) (*NCoSED, error) {
	if cfg.Servers == 0 {
		cfg.Servers = 1
	}
	clients := c.Size() - cfg.Servers
	if cfg.Servers < 1 || clients < 1 || c.Size() >= 1<<12 {
		return nil, fmt.Errorf("baseline: %s: %d ranks of %d serve, want at least one, one that does not, and less than 4,096 in all: %w",
			ncosedName, cfg.Servers, c.Size(), lock.ErrConfig)
	}
	t, err := openWords(c, ncosedName, cfg.Config, rma.Word{Name: "LOCK", Class: rma.Far, Fields: []rma.Field{ncosed.rank, ncosed.turn, ncosed.shared}})
	if err != nil {
		return nil, err
	}
	m, err := openMail(c, ncosedName+"-mail", letter.kind, letter.turn, letter.shared, letter.lock)
	if err != nil {
		return nil, err
	}
	return &NCoSED{table: t, mail: m, clients: clients, servers: cfg.Servers}, nil
}

func init() {
	lock.Register(lock.Info{
		Name:   ncosedName,
		Title:  "N-CoSED, CAS and fetch-and-add on one word, and messages between ranks that meet",
		Shared: true,
		Serves: true,
		Fair:   "writers in the order of their swaps; a reader may be passed by writers",
		Params: []lock.Param{
			{Name: "SERVERS", Help: "the number of ranks that serve, the last ones; default 1"},
			paramR, paramL, paramRetries,
		},
		Open: func(c rma.Comm, n, home int) (lock.Table, error) {
			return NewNCoSED(c, NCoSEDConfig{Config: Config{Locks: n, Home: home}})
		},
		OpenWith: func(c rma.Comm, s lock.Setting) (lock.Table, error) {
			var cfg NCoSEDConfig
			base, err := parse(ncosedName, s, Full, func(_, value string) (err error) {
				if cfg.Servers, err = strconv.Atoi(value); err == nil && cfg.Servers < 1 {
					err = fmt.Errorf("want 1 or more")
				}
				return err
			})
			if err != nil {
				return nil, err
			}
			cfg.Config = base
			return NewNCoSED(c, cfg)
		},
	})
}

// Promise has no bound on readers that wait, nor on operations: a swap is tried until it
// succeeds, and a rank answers others in its calls.
func (t *NCoSED) Promise(lock.Mode) lock.Promise { return unfair(lock.Unbounded, lock.Unbounded) }

// Idle checks that the rank holds nothing and owes nothing, and that words are 0.
func (t *NCoSED) Idle() error {
	if len(t.records)+len(t.homes)+len(t.mail.out) > 0 {
		return fmt.Errorf("baseline: %s: rank %d has %d turns, %d locks with readers and %d messages", ncosedName, t.c.Rank(), len(t.records), len(t.homes), len(t.mail.out))
	}
	return t.table.Idle()
}

// Serves reports whether the caller serves.
func (t *NCoSED) Serves() bool { return t.c.Rank() >= t.clients }

// server is the rank that counts the readers of a lock.
func (t *NCoSED) server(id int) int { return t.clients + id%t.servers }

// Lock takes lock id.
func (t *NCoSED) Lock(ctx context.Context, id int, mode lock.Mode) error {
	at := t.at(id)
	k, err := t.claim(id, mode)
	if err != nil {
		return err
	}
	switch {
	case ctx.Done() != nil || t.retries > 0 && t.held.several():
		err = t.poll(ctx, k, id, at, mode)
	case mode == lock.Shared:
		err = t.share(k, id, at)
	default:
		err = t.own(k, id, at)
	}
	_, err = t.taken(k, true, err)
	return err
}

func (t *NCoSED) claim(id int, mode lock.Mode) (int, error) {
	if t.Serves() {
		panic("baseline: lock by a rank that serves")
	}
	return t.held.claim(t.name, id, mode)
}

// begin begins a turn, and returns the word that says so.
func (t *NCoSED) begin(k, id int) int64 {
	for t.turn++; !t.same && t.record(id, ncosed.turn.Get(t.turn<<ncosed.turn.Shift)) != nil; t.turn++ {
	}
	turn := ncosed.turn.Get(t.turn << ncosed.turn.Shift)
	t.turns[k] = turn
	t.records = append(t.records, record{id: id, turn: turn})
	return t.wordOf(turn)
}

// wordOf is the word with a turn of this rank and no readers.
func (t *NCoSED) wordOf(turn int64) int64 {
	return ncosed.rank.With(ncosed.turn.With(0, turn), owner(t.c))
}

// record finds a turn that is not over.
func (t *NCoSED) record(id int, turn int64) *record {
	for i := range t.records {
		if r := &t.records[i]; r.id == id && r.turn == turn {
			return r
		}
	}
	return nil
}

// retire ends a turn.
func (t *NCoSED) retire(r *record) {
	for i := range t.records {
		if &t.records[i] == r {
			t.records = append(t.records[:i], t.records[i+1:]...)
			return
		}
	}
}

// own takes a lock exclusively.
func (t *NCoSED) own(k, id int, at place) error {
	mine := t.begin(k, id)
	v := int64(0)
	for {
		found, err := t.cas(at, v, mine)
		if err != nil {
			return err
		}
		if found == v {
			break
		}
		v = found
	}
	readers := ncosed.shared.Get(v)
	switch writer := int(ncosed.rank.Get(v)) - 1; {
	case v == 0:
		return nil
	case writer < 0:
		return t.request(t.server(id), mailHomed, 0, readers, id)
	default:
		return t.request(writer, mailWriter, ncosed.turn.Get(v), readers, id)
	}
}

// share takes a lock with other readers.
func (t *NCoSED) share(k, id int, at place) error {
	v, err := t.add(at, ncosed.shared.One())
	if err != nil {
		return err
	}
	as := writerTurn{int(ncosed.rank.Get(v)) - 1, ncosed.turn.Get(v)}
	t.readAs[k] = as
	if as.rank < 0 {
		return nil
	}
	return t.request(as.rank, mailReader, as.turn, 0, id)
}

// request asks for a lock and waits for it.
func (t *NCoSED) request(to, kind int, turn, readers int64, id int) error {
	t.granted = false
	if err := t.tell(to, kind, turn, readers, id); err != nil {
		return err
	}
	return t.attend(func() bool { return t.granted })
}

// tell sends a message; one to the rank itself is taken at once.
func (t *NCoSED) tell(to, kind int, turn, readers int64, id int) error {
	v := letter.kind.With(letter.turn.With(letter.shared.With(int64(id), readers), turn), int64(kind))
	if to == t.c.Rank() {
		return t.handle(to, v)
	}
	t.mail.post(to, v)
	return nil
}

// attend answers others until done, and all messages are sent.
func (t *NCoSED) attend(done func() bool) error {
	for {
		t.mail.listen()
		for {
			from, v, err := t.mail.take()
			if err != nil {
				return err
			}
			if from < 0 {
				break
			}
			if err := t.handle(from, v); err != nil {
				return err
			}
		}
		if err := errors.Join(t.mail.pump(), t.mail.flush()); err != nil {
			return err
		}
		if done() && len(t.mail.out) == 0 {
			return nil
		}
		if err := t.mail.wait(); err != nil {
			return err
		}
	}
}

// handle does what a message asks for.
func (t *NCoSED) handle(from int, v int64) error {
	id, turn, readers := int(letter.lock.Get(v)), letter.turn.Get(v), int(letter.shared.Get(v))
	switch letter.kind.Get(v) {
	case mailGrant:
		t.granted = true
	case mailWriter:
		r := t.record(id, turn)
		if r.released && r.returned == readers {
			t.retire(r)
			return t.tell(from, mailGrant, 0, 0, id)
		}
		r.succ, r.succS = from+1, readers
	case mailReader:
		r := t.record(id, turn)
		if !r.released {
			r.waiting = append(r.waiting, from)
			return nil
		}
		r.granted++
		return t.tell(from, mailGrant, 0, 0, id)
	case mailLeft:
		return t.left(t.record(id, turn))
	case mailHomed:
		h := t.homed(id)
		h.succ, h.succS = from+1, readers
		return t.readersLeft(h)
	case mailLeftHome:
		h := t.homed(id)
		h.left++
		return t.readersLeft(h)
	case mailEnd:
		if t.ended++; t.ended == t.clients {
			t.ended = 0
			for r := range t.c.Size() {
				if err := t.tell(r, mailStop, 0, 0, 0); err != nil {
					return err
				}
			}
		}
	case mailStop:
		t.stopped = true
	}
	return nil
}

// left is a writer's part when a reader that it let in has left.
func (t *NCoSED) left(r *record) error {
	r.returned++
	switch {
	case r.succ > 0:
		if r.returned < r.succS {
			return nil
		}
		to, id := r.succ-1, r.id
		t.retire(r)
		return t.tell(to, mailGrant, 0, 0, id)
	case r.returned == r.granted:
		return t.clear(r)
	}
	return nil
}

// clear makes the word 0 if no rank has come after the readers that have left.
func (t *NCoSED) clear(r *record) error {
	last := ncosed.shared.With(t.wordOf(r.turn), int64(r.returned))
	found, err := t.cas(t.at(r.id), last, 0)
	if err == nil && found == last {
		t.retire(r)
	}
	return err
}

// homed finds what a server knows of a lock's readers.
func (t *NCoSED) homed(id int) *homed {
	for i := range t.homes {
		if t.homes[i].id == id {
			return &t.homes[i]
		}
	}
	t.homes = append(t.homes, homed{id: id})
	return &t.homes[len(t.homes)-1]
}

// home1 is a server's part when a reader has left, or a writer asks.
func (t *NCoSED) readersLeft(h *homed) error {
	id := h.id
	if h.succ > 0 {
		if h.left < h.succS {
			return nil
		}
		to := h.succ - 1
		t.forget(h)
		return t.tell(to, mailGrant, 0, 0, id)
	}
	last := ncosed.shared.With(0, int64(h.left))
	found, err := t.cas(t.at(id), last, 0)
	if err == nil && found == last {
		t.forget(h)
	}
	return err
}

func (t *NCoSED) forget(h *homed) {
	for i := range t.homes {
		if &t.homes[i] == h {
			t.homes = append(t.homes[:i], t.homes[i+1:]...)
			return
		}
	}
}

// Unlock lets lock id go.
func (t *NCoSED) Unlock(id int, mode lock.Mode) error {
	k := t.held.claimed(id, mode)
	t.held.unclaim(k)
	var err error
	if mode == lock.Shared {
		if as := t.readAs[k]; as.rank < 0 {
			err = t.tell(t.server(id), mailLeftHome, 0, 0, id)
		} else {
			err = t.tell(as.rank, mailLeft, as.turn, 0, id)
		}
		t.readAs[k] = writerTurn{}
	} else {
		err = t.release(t.record(id, t.turns[k]))
		t.turns[k] = 0
	}
	if err != nil {
		return err
	}
	return t.attend(func() bool { return true })
}

// release is a writer's.
func (t *NCoSED) release(r *record) error {
	switch {
	case r.succ > 0 && r.succS == 0:
		to, id := r.succ-1, r.id
		t.retire(r)
		return t.tell(to, mailGrant, 0, 0, id)
	case len(r.waiting) > 0:
		r.released, r.granted = true, len(r.waiting)
		id, waiting := r.id, r.waiting
		r.waiting = nil
		for _, to := range waiting {
			if err := t.tell(to, mailGrant, 0, 0, id); err != nil {
				return err
			}
		}
		return nil
	case r.succ == 0:
		r.released = true
		return t.clear(r)
	}
	r.released = true
	return nil
}

// try takes a lock if its word is free of writers, and for a writer of readers. A lock may not
// be seen to be free until others have taken the messages that say so.
func (t *NCoSED) try(k, id int, at place, mode lock.Mode) (bool, int64, error) {
	if mode == lock.Exclusive {
		mine := t.begin(k, id)
		found, err := t.cas(at, 0, mine)
		if err != nil || found != 0 {
			t.retire(t.record(id, t.turns[k]))
		}
		return err == nil && found == 0, found, err
	}
	v, err := t.get(at)
	for err == nil && ncosed.rank.Get(v) == 0 {
		var found int64
		if found, err = t.cas(at, v, v+ncosed.shared.One()); err == nil && found == v {
			t.readAs[k] = writerTurn{rank: -1}
			return true, v, nil
		}
		v = found
	}
	return false, v, err
}

// poll tries until it gets the lock, or is to try no more: a request cannot be taken back.
func (t *NCoSED) poll(ctx context.Context, k, id int, at place, mode lock.Mode) error {
	for try := 0; ; try++ {
		got, v, err := t.try(k, id, at, mode)
		if err == nil && !got {
			if err = t.attend(func() bool { return true }); err == nil {
				err = t.pause(ctx, id, blocker{at.target, at.disp, v}, try)
			}
		}
		if got || err != nil {
			return err
		}
	}
}

// TryLock takes lock id if its word says that it is free.
func (t *NCoSED) TryLock(id int, mode lock.Mode) (bool, error) {
	at := t.at(id)
	k, err := t.claim(id, mode)
	if err != nil {
		return false, err
	}
	got, _, err := t.try(k, id, at, mode)
	if err == nil && !got {
		err = t.attend(func() bool { return true })
	}
	return t.taken(k, got, err)
}

// Serve is of lock.Server: a rank that takes locks answers others until all want no more.
func (t *NCoSED) Serve() (more bool, err error) {
	if !t.Serves() && !t.ending {
		t.ending = true
		if err := t.tell(t.clients, mailEnd, 0, 0, 0); err != nil {
			return false, err
		}
	}
	if err := t.attend(func() bool { return t.stopped }); err != nil {
		return false, err
	}
	// What was sent before a rank ended is there by now, but may not have been looked at.
	if err := t.attend(func() bool { return true }); err != nil {
		return false, err
	}
	t.ending, t.stopped = false, false
	return false, nil
}

// Mutex is a handle on lock id, a lock.RWMutex.
func (t *NCoSED) Mutex(id int) lock.Mutex {
	t.word(id)
	return &handle{t, id}
}

// Free closes the windows. Collective; see [lock.Server].
func (t *NCoSED) Free() error {
	if err := t.mail.w.Free(); err != nil {
		return err
	}
	return t.table.Free()
}
