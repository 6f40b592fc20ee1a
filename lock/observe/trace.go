package observe

import (
	"context"
	"errors"
	"time"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/clocksync"
)

// Sampling says which acquires a Trace records. The zero value is right for most jobs.
type Sampling struct {
	Period time.Duration // from the beginning of a slice to that of the next; 0: 50 ms
	Slice  time.Duration // of each period; 0: 1 ms. As long as Period: all the time
	Most   int           // acquires of a rank in a slice; 0: 500
	Keep   int           // acquires that a rank keeps, the last ones; 0: 16,384, and 262,144 / Size in jobs of more than 16 ranks
}

func (s Sampling) filled(ranks int) Sampling {
	if s.Period <= 0 {
		s.Period = 50 * time.Millisecond
	}
	if s.Slice <= 0 {
		s.Slice = min(time.Millisecond, s.Period)
	}
	if s.Most <= 0 {
		s.Most = 500
	}
	if s.Keep <= 0 {
		s.Keep = max(64, min(1<<14, 1<<18/ranks))
	}
	return s
}

const (
	// seldom is the time from acquire to acquire, in nanoseconds, from which on a rank
	// records all: what recording costs is then below 1 %.
	seldom = 20_000
	// mostSkipped bounds the acquires between two looks at the clock, lest a rank whose
	// acquires become slow misses the next slice.
	mostSkipped = 1000
)

// A Trace records acquires of one rank. It belongs to the goroutine of the tables that
// it traces.
type Trace struct {
	c      rma.Comm
	off    int64 // to rank 0's clock
	names  []string
	kept   []span // a ring
	n      int64  // spans so far
	period int64
	slice  int64
	most   int

	skip    int   // acquires until the next look at the clock
	skipped int   // acquires since the last one
	looked  int64 // the last look
	number  int64 // of the slice that used counts in
	used    int
}

// span is an acquire; times are of the rank's own clock.
type span struct {
	table                int
	id                   int
	mode                 lock.Mode
	want, got, let, done int64
}

// NewTrace begins a timeline. Collective.
func NewTrace(c rma.Comm, s Sampling) (*Trace, error) {
	s = s.filled(c.Size())
	clock, err := clocksync.Sync(c)
	if err != nil {
		return nil, err
	}
	return &Trace{
		c: c, off: clock.Offset(), kept: make([]span, s.Keep), looked: c.Now(), number: -1,
		period: int64(s.Period), slice: int64(s.Slice), most: s.Most,
	}, nil
}

// Table wraps a table whose acquires are recorded, under a name. All ranks wrap the
// same tables in the same order.
func (tr *Trace) Table(t lock.Table, name string) lock.Table {
	tr.names = append(tr.names, name)
	return &traced{Table: t, tr: tr, number: len(tr.names) - 1, open: make([]span, 0, 8)}
}

// passes says that the acquire that begins is not to be recorded, without a look at the
// clock.
func (tr *Trace) passes() bool {
	if tr.skip > 0 {
		tr.skip--
		return true
	}
	return false
}

// due says whether the acquire that begins is to be recorded, and when it begins.
func (tr *Trace) due() (now int64, ok bool) {
	now = tr.c.Now()
	each := (now - tr.looked) / int64(tr.skipped+1)
	tr.looked, tr.skipped = now, 0
	number := (now + tr.off) / tr.period
	if number != tr.number {
		tr.number, tr.used = number, 0
	}
	in := now + tr.off - number*tr.period
	if in < tr.slice && tr.used < tr.most || each >= seldom {
		tr.used++
		return now, true
	}
	// Half of the time that is left to the next slice, or an eighth of one, lest it is
	// passed over.
	left := max((tr.period-in)/2, tr.slice/8)
	tr.skip = int(min(left/max(each, 1), mostSkipped))
	tr.skipped = tr.skip
	return 0, false
}

func (tr *Trace) keep(s span) {
	tr.kept[tr.n%int64(len(tr.kept))] = s
	tr.n++
}

// traced is a table that is recorded.
type traced struct {
	lock.Table
	tr     *Trace
	number int
	open   []span // of locks that the rank holds
}

// Unwrap returns the table that is traced.
func (t *traced) Unwrap() lock.Table { return t.Table }

func (t *traced) Lock(ctx context.Context, id int, mode lock.Mode) error {
	if t.tr.passes() {
		return t.Table.Lock(ctx, id, mode)
	}
	return t.lock(ctx, id, mode)
}

func (t *traced) lock(ctx context.Context, id int, mode lock.Mode) error {
	want, ok := t.tr.due()
	err := t.Table.Lock(ctx, id, mode)
	if ok && err == nil {
		t.open = append(t.open, span{table: t.number, id: id, mode: mode, want: want, got: t.tr.c.Now()})
	}
	return err
}

func (t *traced) TryLock(id int, mode lock.Mode) (bool, error) {
	if t.tr.passes() {
		return t.Table.TryLock(id, mode)
	}
	want, ok := t.tr.due()
	took, err := t.Table.TryLock(id, mode)
	if ok && took && err == nil {
		t.open = append(t.open, span{table: t.number, id: id, mode: mode, want: want, got: t.tr.c.Now()})
	}
	return took, err
}

func (t *traced) Unlock(id int, mode lock.Mode) error {
	if len(t.open) == 0 {
		return t.Table.Unlock(id, mode)
	}
	return t.unlock(id, mode)
}

func (t *traced) unlock(id int, mode lock.Mode) error {
	for i := len(t.open) - 1; i >= 0; i-- {
		if s := t.open[i]; s.id == id && s.mode == mode {
			last := len(t.open) - 1
			t.open[i] = t.open[last]
			t.open = t.open[:last]
			s.let = t.tr.c.Now()
			err := t.Table.Unlock(id, mode)
			s.done = t.tr.c.Now()
			t.tr.keep(s)
			return err
		}
	}
	return t.Table.Unlock(id, mode)
}

// Mutex is a handle whose acquires are recorded; the others go to the inner table's.
func (t *traced) Mutex(id int) lock.Mutex {
	m := tracedMutex{t, id, t.Table.Mutex(id)}
	if rw, ok := m.m.(lock.RWMutex); ok {
		return &tracedRW{m, rw}
	}
	return &m
}

type tracedMutex struct {
	t  *traced
	id int
	m  lock.Mutex
}

func (m *tracedMutex) Lock(ctx context.Context) error {
	if m.t.tr.passes() {
		return m.m.Lock(ctx)
	}
	return m.t.lock(ctx, m.id, lock.Exclusive)
}

func (m *tracedMutex) Unlock() error {
	if len(m.t.open) == 0 {
		return m.m.Unlock()
	}
	return m.t.unlock(m.id, lock.Exclusive)
}

func (m *tracedMutex) TryLock() (bool, error) { return m.t.TryLock(m.id, lock.Exclusive) }

type tracedRW struct {
	tracedMutex
	rw lock.RWMutex
}

func (m *tracedRW) RLock(ctx context.Context) error {
	if m.t.tr.passes() {
		return m.rw.RLock(ctx)
	}
	return m.t.lock(ctx, m.id, lock.Shared)
}

func (m *tracedRW) RUnlock() error {
	if len(m.t.open) == 0 {
		return m.rw.RUnlock()
	}
	return m.t.unlock(m.id, lock.Shared)
}

func (m *tracedRW) TryRLock() (bool, error) { return m.t.TryLock(m.id, lock.Shared) }

// words is the length of a span in a window.
const words = 6

// collect brings the spans of all ranks to rank 0, in the time of its clock.
// Collective.
func (tr *Trace) collect() (byRank [][]span, err error) {
	c := tr.c
	mine := min(tr.n, int64(len(tr.kept)))
	lens, err := c.Allgather([]int64{mine})
	if err != nil {
		return nil, err
	}
	longest := int64(1)
	for _, n := range lens {
		longest = max(longest, n)
	}
	w, err := c.Allocate(rma.DataSpec("trace", int(longest)*words))
	if err != nil {
		return nil, err
	}
	buf := make([]int64, longest*words)
	for i, s := range tr.kept[:mine] {
		copy(buf[i*words:], []int64{
			int64(s.table)<<1 | int64(s.mode), int64(s.id),
			s.want + tr.off, s.got + tr.off, s.let + tr.off, s.done + tr.off,
		})
	}
	if mine > 0 {
		w.PutBulk(buf[:mine*words], c.Rank(), 0)
		if err := w.Flush(c.Rank()); err != nil {
			return nil, err
		}
	}
	if err := c.Barrier(); err != nil {
		return nil, err
	}
	for r := 0; r < len(lens) && c.Rank() == 0 && err == nil; r++ {
		part := buf[:lens[r]*words]
		if len(part) > 0 {
			w.GetBulk(part, r, 0)
			err = w.Flush(r)
		}
		spans := make([]span, 0, lens[r])
		for ; len(part) > 0; part = part[words:] {
			spans = append(spans, span{
				table: int(part[0] >> 1), id: int(part[1]), mode: lock.Mode(part[0] & 1),
				want: part[2], got: part[3], let: part[4], done: part[5],
			})
		}
		byRank = append(byRank, spans)
	}
	return byRank, errors.Join(rma.Agree(c, err), w.Free())
}
