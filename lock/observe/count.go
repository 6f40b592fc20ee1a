package observe

import (
	"context"
	"expvar"
	"fmt"
	"io"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// MaxEach is the number of locks up to which the counters of a table are kept for each
// of them; a larger table has their sum.
const MaxEach = 256

// Counts are those of a mode of a lock, or of all locks of a table.
type Counts struct {
	Acquires    int64 `json:"acquires"`     // by Lock, and by TryLock
	TriesFailed int64 `json:"tries_failed"` // TryLock found the lock taken
	Errors      int64 `json:"errors"`       // Lock, TryLock or Unlock returned one; ErrDeadline too
	WaitNs      int64 `json:"wait_ns"`      // in Lock and TryLock, of those that acquired
	HoldNs      int64 `json:"hold_ns"`      // of those that were released
}

func (a *Counts) add(b Counts) {
	a.Acquires += b.Acquires
	a.TriesFailed += b.TriesFailed
	a.Errors += b.Errors
	a.WaitNs += b.WaitNs
	a.HoldNs += b.HoldNs
}

// A Snapshot is what a process has counted under a name.
type Snapshot struct {
	Name      string `json:"name"`           // as given to Count
	Locks     int    `json:"locks"`          // of the largest table of that name
	Exclusive Counts `json:"exclusive"`      // of all locks, in exclusive mode
	Shared    Counts `json:"shared"`         // of all locks, in shared mode
	Each      []Lock `json:"each,omitempty"` // by id; of tables of 2 to MaxEach locks
}

// A Lock is a lock of a Snapshot.
type Lock struct {
	Exclusive Counts `json:"exclusive"` // in exclusive mode
	Shared    Counts `json:"shared"`    // in shared mode
}

// cell is Counts in the making: one goroutine adds, others read.
type cell struct{ acquires, triesFailed, errors, waitNs, holdNs atomic.Int64 }

func (c *cell) counts() Counts {
	return Counts{c.acquires.Load(), c.triesFailed.Load(), c.errors.Load(), c.waitNs.Load(), c.holdNs.Load()}
}

// counters are those of a wrapped table, two for each lock, or two for all.
type counters []([2]cell)

// published are the counters of this process by name.
var published struct {
	sync.Mutex
	once   sync.Once
	byName map[string]*group
}

// group is what has one name: the tables of the ranks of this process, and those that
// came after one another.
type group struct {
	locks int
	live  []counters
	gone  []Lock // of tables that were freed
}

// Count wraps a table with counters, which this process publishes under a name, as a
// part of the variable "rmalock" of package expvar. Tables of one name are summed. What
// was counted stays when the table is freed. c is for its clock.
func Count(c rma.Comm, t lock.Table, name string) lock.Table {
	p := &published
	p.once.Do(func() { expvar.Publish("rmalock", expvar.Func(func() any { return Snapshots() })) })
	p.Lock()
	defer p.Unlock()
	g := p.byName[name]
	if g == nil {
		if p.byName == nil {
			p.byName = map[string]*group{}
		}
		g = &group{}
		p.byName[name] = g
	}
	g.locks = max(g.locks, t.Len())
	k := &counted{Table: t, c: c, g: g, n: make(counters, 1), held: make([]held, 0, 8)}
	if t.Len() <= MaxEach {
		k.n = make(counters, t.Len())
	}
	g.live = append(g.live, k.n)
	return k
}

// Snapshots reads the counters of this process, by name.
func Snapshots() []Snapshot {
	p := &published
	p.Lock()
	defer p.Unlock()
	out := make([]Snapshot, 0, len(p.byName))
	for name, g := range p.byName {
		each := append([]Lock(nil), g.gone...)
		for _, n := range g.live {
			each = sum(each, n)
		}
		s := Snapshot{Name: name, Locks: g.locks}
		for _, l := range each {
			s.Exclusive.add(l.Exclusive)
			s.Shared.add(l.Shared)
		}
		if 1 < g.locks && g.locks <= MaxEach {
			s.Each = each
		}
		out = append(out, s)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// sum adds counters to what is there.
func sum(each []Lock, n counters) []Lock {
	for len(each) < len(n) {
		each = append(each, Lock{})
	}
	for i := range n {
		each[i].Exclusive.add(n[i][lock.Exclusive].counts())
		each[i].Shared.add(n[i][lock.Shared].counts())
	}
	return each
}

// WritePrometheus writes the counters of this process in the text format of Prometheus,
// times in seconds.
func WritePrometheus(w io.Writer) error {
	all := Snapshots()
	for _, m := range []struct {
		name, help string
		of         func(Counts) float64
	}{
		{"acquires_total", "Acquires.", func(c Counts) float64 { return float64(c.Acquires) }},
		{"tries_failed_total", "TryLock that found the lock taken.", func(c Counts) float64 { return float64(c.TriesFailed) }},
		{"errors_total", "Calls that returned an error.", func(c Counts) float64 { return float64(c.Errors) }},
		{"wait_seconds_total", "Time in Lock.", func(c Counts) float64 { return float64(c.WaitNs) / 1e9 }},
		{"hold_seconds_total", "Time between Lock and Unlock.", func(c Counts) float64 { return float64(c.HoldNs) / 1e9 }},
	} {
		if _, err := fmt.Fprintf(w, "# HELP rmalock_%s %s\n# TYPE rmalock_%s counter\n", m.name, m.help, m.name); err != nil {
			return err
		}
		for _, s := range all {
			each, label := s.Each, `,lock="%d"`
			if each == nil {
				each, label = []Lock{{s.Exclusive, s.Shared}}, ""
			}
			for id, l := range each {
				at := label
				if at != "" {
					at = fmt.Sprintf(label, id)
				}
				for mode, c := range []Counts{l.Exclusive, l.Shared} {
					if _, err := fmt.Fprintf(w, "rmalock_%s{table=%q,mode=%q%s} %g\n", m.name, s.Name, lock.Mode(mode), at, m.of(c)); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// held is a lock in the hands of the rank.
type held struct {
	id   int
	mode lock.Mode
	got  int64
}

// counted is a table with counters.
type counted struct {
	lock.Table
	c    rma.Comm
	g    *group
	n    counters
	held []held
}

// Unwrap returns the table that is counted.
func (t *counted) Unwrap() lock.Table { return t.Table }

func (t *counted) cell(id int, mode lock.Mode) *cell {
	if len(t.n) == 1 {
		id = 0
	}
	return &t.n[id][mode]
}

func (t *counted) Lock(ctx context.Context, id int, mode lock.Mode) error {
	want := t.c.Now()
	err := t.Table.Lock(ctx, id, mode)
	t.took(id, mode, want, err == nil, err)
	return err
}

func (t *counted) TryLock(id int, mode lock.Mode) (bool, error) {
	want := t.c.Now()
	ok, err := t.Table.TryLock(id, mode)
	t.took(id, mode, want, ok, err)
	return ok, err
}

// took counts what Lock and TryLock came to.
func (t *counted) took(id int, mode lock.Mode, want int64, ok bool, err error) {
	n := t.cell(id, mode)
	switch {
	case err != nil:
		n.errors.Add(1)
	case !ok:
		n.triesFailed.Add(1)
	default:
		got := t.c.Now()
		n.acquires.Add(1)
		n.waitNs.Add(got - want)
		t.held = append(t.held, held{id, mode, got})
	}
}

func (t *counted) Unlock(id int, mode lock.Mode) error {
	let := t.c.Now()
	err := t.Table.Unlock(id, mode)
	n := t.cell(id, mode)
	if err != nil {
		n.errors.Add(1)
	}
	for i := len(t.held) - 1; i >= 0; i-- {
		if h := &t.held[i]; h.id == id && h.mode == mode {
			n.holdNs.Add(let - h.got)
			last := len(t.held) - 1
			*h = t.held[last]
			t.held = t.held[:last]
			break
		}
	}
	return err
}

// Mutex is a handle whose calls are counted.
func (t *counted) Mutex(id int) lock.Mutex {
	h := handle{t, id}
	if _, ok := t.Table.Mutex(id).(lock.RWMutex); ok {
		return rwHandle{h}
	}
	return h
}

// handle is a lock of a counted table.
type handle struct {
	t  *counted
	id int
}

func (h handle) Lock(ctx context.Context) error { return h.t.Lock(ctx, h.id, lock.Exclusive) }
func (h handle) Unlock() error                  { return h.t.Unlock(h.id, lock.Exclusive) }
func (h handle) TryLock() (bool, error)         { return h.t.TryLock(h.id, lock.Exclusive) }

// rwHandle is one of a table with a shared mode.
type rwHandle struct{ handle }

func (h rwHandle) RLock(ctx context.Context) error { return h.t.Lock(ctx, h.id, lock.Shared) }
func (h rwHandle) RUnlock() error                  { return h.t.Unlock(h.id, lock.Shared) }
func (h rwHandle) TryRLock() (bool, error)         { return h.t.TryLock(h.id, lock.Shared) }

// Free frees the table; its counts stay.
func (t *counted) Free() error {
	p := &published
	p.Lock()
	for i, n := range t.g.live {
		if &n[0] == &t.n[0] {
			t.g.live = append(t.g.live[:i], t.g.live[i+1:]...)
			t.g.gone = sum(t.g.gone, n)
			break
		}
	}
	p.Unlock()
	return t.Table.Free()
}
