package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/rmatest"
	"github.com/rmalock/rmalock/rmarw"
)

// recorder is a Table that says what was asked of it, and notices two at once.
type recorder struct {
	mu     sync.Mutex
	log    []string
	rw     bool
	refuse error
}

func (r *recorder) note(format string, args ...any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, fmt.Sprintf(format, args...))
	return r.refuse
}

func (r *recorder) asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.log)
}

func (r *recorder) Len() int     { return 4 }
func (r *recorder) Home(int) int { return 0 }
func (r *recorder) Free() error  { return r.note("free") }
func (r *recorder) Mutex(int) lock.Mutex {
	if r.rw {
		return struct{ lock.RWMutex }{}
	}
	return struct{ lock.Mutex }{}
}
func (r *recorder) Lock(ctx context.Context, id int, mode lock.Mode) error {
	return r.note("lock %d %v", id, mode)
}
func (r *recorder) TryLock(id int, mode lock.Mode) (bool, error) {
	err := r.note("try %d %v", id, mode)
	return err == nil, err
}
func (r *recorder) Unlock(id int, mode lock.Mode) error { return r.note("unlock %d %v", id, mode) }

// A caller is a goroutine that asks for a lock, and keeps it until it is told.
type caller struct {
	id   int
	mode lock.Mode
}

// line has callers come one after the other while the first holds its lock; each lets it
// go when all are in line or in. It returns what the table was asked for, and in which
// order callers came in.
func line(t *testing.T, rw bool, tl int, callers ...caller) (log []string, order []int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{rw: rw}
		l, err := lock.NewLocal(r, tl)
		if err != nil {
			t.Fatal(err)
		}
		start := make(chan struct{})
		var mu sync.Mutex
		for i, c := range callers {
			go func() {
				if err := l.Lock(t.Context(), c.id, c.mode); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				<-start
				time.Sleep(time.Duration(i+1) * time.Second) // one after the other
				if err := l.Unlock(c.id, c.mode); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		close(start)
		time.Sleep(time.Hour)
		log = r.asked()
	})
	return log, order
}

func TestLocalPasses(t *testing.T) {
	x := func(id int) caller { return caller{id, lock.Exclusive} }
	s := func(id int) caller { return caller{id, lock.Shared} }
	for _, c := range []struct {
		name    string
		rw      bool
		tl      int
		callers []caller
		log     []string
	}{
		{"T_L 2: three in a row", false, 2, []caller{x(1), x(1), x(1), x(1), x(1)},
			[]string{"lock 1 exclusive", "unlock 1 exclusive", "lock 1 exclusive", "unlock 1 exclusive"}},
		{"T_L 0: each by itself", false, 0, []caller{x(1), x(1)},
			[]string{"lock 1 exclusive", "unlock 1 exclusive", "lock 1 exclusive", "unlock 1 exclusive"}},
		{"first come, first served, whatever the lock", false, 9, []caller{x(1), x(2), x(1)},
			[]string{"lock 1 exclusive", "unlock 1 exclusive", "lock 2 exclusive", "unlock 2 exclusive", "lock 1 exclusive", "unlock 1 exclusive"}},
		{"readers together", true, 9, []caller{s(1), s(1), s(1), x(1), s(1), s(1)},
			[]string{"lock 1 shared", "unlock 1 shared", "lock 1 exclusive", "unlock 1 exclusive", "lock 1 shared", "unlock 1 shared"}},
		{"not more than T_L after the first", true, 1, []caller{s(1), s(1), s(1)},
			[]string{"lock 1 shared", "unlock 1 shared", "lock 1 shared", "unlock 1 shared"}},
		{"no shared mode: one at a time", false, 9, []caller{s(1), s(1), x(1)},
			[]string{"lock 1 exclusive", "unlock 1 exclusive"}},
		{"a writer is not passed to a reader", true, 9, []caller{x(1), s(1)},
			[]string{"lock 1 exclusive", "unlock 1 exclusive", "lock 1 shared", "unlock 1 shared"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			log, order := line(t, c.rw, c.tl, c.callers...)
			if !slices.Equal(log, c.log) {
				t.Errorf("the table was asked for %q, want %q", log, c.log)
			}
			if !slices.IsSorted(order) || len(order) != len(c.callers) {
				t.Errorf("they came in in the order %v", order)
			}
		})
	}
}

// TestLocalGivesUp: a goroutine that gives up is out of the line, and delays no other.
func TestLocalGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{rw: true}
		l, _ := lock.NewLocal(r, 9)
		if err := l.Lock(t.Context(), 0, lock.Shared); err != nil {
			t.Fatal(err)
		}
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		gaveUp := make(chan error, 1)
		var in atomic.Int64
		go func() { gaveUp <- l.Lock(short, 0, lock.Exclusive) }()
		synctest.Wait()
		for range 2 { // behind the writer, though they could share
			go func() {
				if l.Lock(t.Context(), 0, lock.Shared) == nil {
					in.Add(1)
				}
			}()
			synctest.Wait()
		}
		if in.Load() != 0 {
			t.Error("a reader passed a writer that was in the line")
		}
		time.Sleep(2 * time.Second)
		if err := <-gaveUp; !errors.Is(err, lock.ErrDeadline) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the writer got %v", err)
		}
		if n := in.Load(); n != 2 {
			t.Errorf("%d of 2 readers are in after the writer before them has left", n)
		}
		for range 3 {
			if err := l.Unlock(0, lock.Shared); err != nil {
				t.Error(err)
			}
		}
		if want := []string{"lock 0 shared", "unlock 0 shared"}; !slices.Equal(r.asked(), want) {
			t.Errorf("the table was asked for %q, want %q", r.asked(), want)
		}
		if err := l.Free(); err != nil {
			t.Error(err)
		}
	})
}

func TestLocalTries(t *testing.T) {
	r := &recorder{rw: true}
	l, _ := lock.NewLocal(r, 1)
	m := l.Mutex(1).(lock.RWMutex)
	other := l.Mutex(2)
	try := func(what string, f func() (bool, error), want bool) {
		t.Helper()
		if got, err := f(); got != want || err != nil {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
	try("a free lock", m.TryRLock, true)
	try("a lock that may be shared", m.TryRLock, true)
	try("one that T_L have shared", m.TryRLock, false)
	try("another lock", other.TryLock, false)
	if err := errors.Join(m.RUnlock(), m.RUnlock()); err != nil {
		t.Error(err)
	}
	try("the other lock, now", other.TryLock, true)
	try("a lock that is held", other.TryLock, false)
	if err := other.Unlock(); err != nil {
		t.Error(err)
	}
	r.refuse = errors.New("no")
	if _, err := m.TryLock(); err != r.refuse {
		t.Errorf("the table's error is %v", err)
	}
	if err := m.Lock(t.Context()); err != r.refuse {
		t.Errorf("the table's error is %v", err)
	}
	r.refuse = nil
	try("after errors", m.TryLock, true)
}

// TestLocalDo: f has the table to itself, and hands on when it panics too.
func TestLocalDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		l, _ := lock.NewLocal(r, 9)
		if err := l.Lock(t.Context(), 0, lock.Exclusive); err != nil {
			t.Fatal(err)
		}
		go func() {
			defer func() { recover() }()
			l.Do(t.Context(), func(table lock.Table) error {
				r.note("do")
				time.Sleep(time.Second)
				panic("done")
			})
		}()
		synctest.Wait()
		go func() {
			l.Lock(t.Context(), 0, lock.Exclusive)
			l.Unlock(0, lock.Exclusive)
		}()
		synctest.Wait()
		if err := l.Unlock(0, lock.Exclusive); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		want := []string{"lock 0 exclusive", "unlock 0 exclusive", "do", "lock 0 exclusive", "unlock 0 exclusive"}
		if !slices.Equal(r.asked(), want) {
			t.Errorf("the table was asked for %q, want %q", r.asked(), want)
		}
	})
}

func TestLocalMisuse(t *testing.T) {
	r := &recorder{rw: true}
	if _, err := lock.NewLocal(r, -1); !errors.Is(err, lock.ErrConfig) {
		t.Errorf("T_L -1: %v", err)
	}
	l, _ := lock.NewLocal(r, 1)
	panics := func(what string, f func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s does not panic", what)
			}
		}()
		f()
	}
	panics("a lock that is not there", func() { l.Lock(t.Context(), 4, lock.Exclusive) })
	panics("a handle on it", func() { l.Mutex(-1) })
	panics("Unlock of a free lock", func() { l.Unlock(0, lock.Exclusive) })
	l.Lock(t.Context(), 0, lock.Shared)
	panics("Unlock of another lock", func() { l.Unlock(1, lock.Shared) })
	panics("Unlock in another mode", func() { l.Unlock(0, lock.Exclusive) })
	panics("Free of a held lock", func() { l.Free() })
}

// TestLocalCounts: many goroutines of several ranks add to two words that the lock guards
// and that are nowhere equal but under it.
func TestLocalCounts(t *testing.T) {
	goroutines, each := 1000, 20
	if testing.Short() {
		goroutines = 100
	}
	for _, name := range []string{"dmcs", "rmarw"} {
		t.Run(name, func(t *testing.T) {
			const ranks, readers = 3, 4
			err := inproc.Run(ranks, func(c rma.Comm) error {
				table, err := tableOf(c, name)
				if err != nil {
					return err
				}
				l, err := lock.NewLocal(table, 16)
				if err != nil {
					return err
				}
				data, err := c.Allocate(rma.DataSpec("two words", 2))
				if err != nil {
					return err
				}
				var own []*rma.Window // of readers
				for range readers {
					w, err := c.Allocate(rma.DataSpec("unused", 1))
					if err != nil {
						return err
					}
					own = append(own, w)
				}
				inside := make([]int, 1) // the race detector watches
				var all sync.WaitGroup
				errs := make(chan error, goroutines+readers)
				add := func() error {
					if err := l.Lock(t.Context(), 1, lock.Exclusive); err != nil {
						return err
					}
					inside[0]++
					a, b := data.Get(0, 0), data.Get(0, 1)
					if err := data.Flush(0); err != nil {
						return err
					}
					x, y := data.Value(a), data.Value(b)
					if x != y {
						return fmt.Errorf("the words are %d and %d", x, y)
					}
					data.Put(x+1, 0, 0)
					data.Put(y+1, 0, 1)
					if err := data.Flush(0); err != nil {
						return err
					}
					return l.Unlock(1, lock.Exclusive)
				}
				for range goroutines {
					all.Go(func() {
						for range each {
							if err := add(); err != nil {
								errs <- err
								return
							}
						}
					})
				}
				for k := range readers {
					all.Go(func() {
						for range each {
							if err := l.Lock(t.Context(), 1, lock.Shared); err != nil {
								errs <- err
								return
							}
							own[k].Put(int64(inside[0]), c.Rank(), 0)
							if err := errors.Join(own[k].Flush(c.Rank()), l.Unlock(1, lock.Shared)); err != nil {
								errs <- err
								return
							}
						}
					})
				}
				all.Wait()
				select {
				case err := <-errs:
					return err
				default:
				}
				if err := c.Barrier(); err != nil {
					return err
				}
				if got, want := data.Peek(0), int64(ranks*goroutines*each); c.Rank() == 0 && got != want {
					return fmt.Errorf("the words are %d, want %d", got, want)
				}
				if got, want := inside[0], goroutines*each; got != want {
					return fmt.Errorf("rank %d counted %d, want %d", c.Rank(), got, want)
				}
				return l.Free()
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// A hundred goroutines of each of two ranks count to four hundred.
func ExampleLocal() {
	err := inproc.Run(2, func(c rma.Comm) error {
		table, err := dmcs.New(c, dmcs.Config{})
		if err != nil {
			return err
		}
		count, err := c.Allocate(rma.DataSpec("count", 1))
		if err != nil {
			return err
		}
		locks, err := lock.NewLocal(table, 16)
		if err != nil {
			return err
		}
		m := lock.Locker(locks.Mutex(0))
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				for range 2 {
					m.Lock()
					n, err := count.GetFlush(0, 0)
					if err == nil {
						err = count.PutFlush(n+1, 0, 0)
					}
					if err != nil {
						panic(err)
					}
					m.Unlock()
				}
			})
		}
		all.Wait()
		if err := c.Barrier(); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(count.Peek(0))
		}
		return locks.Free()
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: 400
}

func tableOf(c rma.Comm, name string) (lock.Table, error) {
	if name == "rmarw" {
		return rmarw.New(c, rmarw.Config{Locks: 3})
	}
	return dmcs.New(c, dmcs.Config{Locks: 3})
}

// TestLocalNoAllocations: not without others, and not in line.
func TestLocalNoAllocations(t *testing.T) {
	if rmatest.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	err := inproc.Run(1, func(c rma.Comm) error {
		table, err := tableOf(c, "rmarw")
		if err != nil {
			return err
		}
		l, err := lock.NewLocal(table, 16)
		if err != nil {
			return err
		}
		ctx := context.Background()
		pair := func() { err = errors.Join(err, l.Lock(ctx, 0, lock.Exclusive), l.Unlock(0, lock.Exclusive)) }
		if n := testing.AllocsPerRun(1000, pair); n != 0 {
			t.Errorf("%v allocations for a pair without others", n)
		}
		stop := make(chan struct{})
		var others sync.WaitGroup
		for range 3 {
			others.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						l.Lock(ctx, 0, lock.Exclusive)
						l.Unlock(0, lock.Exclusive)
					}
				}
			})
		}
		if n := testing.AllocsPerRun(10000, pair); n != 0 {
			t.Errorf("%v allocations for a pair among others", n)
		}
		close(stop)
		others.Wait()
		return errors.Join(err, l.Free())
	})
	if err != nil {
		t.Error(err)
	}
}

func BenchmarkLocal(b *testing.B) {
	for _, goroutines := range []int{1, 2, 1000} {
		b.Run(fmt.Sprintf("goroutines=%d", goroutines), func(b *testing.B) {
			b.ReportAllocs()
			err := inproc.Run(1, func(c rma.Comm) error {
				table, err := tableOf(c, "dmcs")
				if err != nil {
					return err
				}
				l, err := lock.NewLocal(table, 64)
				if err != nil {
					return err
				}
				ctx := context.Background()
				var all sync.WaitGroup
				for range goroutines {
					all.Go(func() {
						for range (b.N + goroutines - 1) / goroutines {
							l.Lock(ctx, 0, lock.Exclusive)
							l.Unlock(0, lock.Exclusive)
						}
					})
				}
				all.Wait()
				return l.Free()
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}
