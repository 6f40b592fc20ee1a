package inproc

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/rmalock/rmalock/rma"
)

// segment is the memory of a window: one part per host, those of ranks node after node.
type segment struct {
	g         *ranks
	order     []int32 // rank -> position of its part; nil for memory nodes
	mem       []int64 // keeps first alive
	first     unsafe.Pointer
	stride    uintptr
	waitLists [64]waitList
}

func newSegment(g *ranks, spec *rma.Spec, hosts int) *segment {
	const align = rma.PartAlign
	stride := (rma.HeaderBytes + spec.Words()*8 + align - 1) / align * align
	s := &segment{g: g, stride: uintptr(stride), mem: make([]int64, (stride*hosts+2*align)/8)}
	if spec.Hosts == rma.Ranks {
		s.order = g.order
	}
	start := unsafe.Pointer(unsafe.SliceData(s.mem))
	// Words begin on an aligned address with the header before them.
	s.first = unsafe.Add(start, 2*align-int(uintptr(start)%align))
	return s
}

// part is the address of a host's first word.
func (s *segment) part(host int) unsafe.Pointer {
	if s.order != nil {
		host = int(s.order[host])
	}
	return unsafe.Add(s.first, uintptr(host)*s.stride)
}

// base is the part of the first rank of a rank's node; nil for memory nodes.
func (s *segment) base(c *comm) unsafe.Pointer {
	if s.order == nil {
		return nil
	}
	return s.part(c.Node().Ranks[0])
}

func (s *segment) word(host, disp int) *int64 {
	return (*int64)(unsafe.Add(s.part(host), disp*8))
}

// parked counts the sleepers on a word, and on some others, in the header of its part.
func (s *segment) parked(rank, disp int) *uint32 { return rma.SleeperCount(s.part(rank), disp) }

// A waitList has the ranks that sleep on words of certain parts.
type waitList struct {
	mu   sync.Mutex
	head *sleeper
	_    [64]byte
}

// sleeper is a rank's entry in a waitList.
type sleeper struct {
	part   int
	disp   int
	wake   chan struct{}
	next   *sleeper
	listed bool // in the list; under the list's mutex
	woken  bool // the wake-up has been taken from the channel
}

func (s *segment) waitList(rank int) *waitList { return &s.waitLists[rank%len(s.waitLists)] }

// enter puts the sleeper on the list of a word.
func (s *segment) enter(z *sleeper, rank, disp int) {
	b := s.waitList(rank)
	b.mu.Lock()
	z.part, z.disp, z.next, z.listed = rank, disp, b.head, true
	b.head = z
	atomic.AddUint32(s.parked(rank, disp), 1)
	b.mu.Unlock()
}

// leave takes the sleeper off its list. It consumes a wake-up that has come meanwhile.
func (s *segment) leave(z *sleeper) {
	b := s.waitList(z.part)
	b.mu.Lock()
	was := z.listed
	if was {
		at := &b.head
		for *at != z {
			at = &(*at).next
		}
		*at = z.next
		z.listed = false
		atomic.AddUint32(s.parked(z.part, z.disp), ^uint32(0))
	}
	b.mu.Unlock()
	if !was && !z.woken {
		<-z.wake
	}
	z.woken = false
}

// wake wakes all ranks that sleep on words of a part.
func (s *segment) wake(rank int) {
	b := s.waitList(rank)
	b.mu.Lock()
	for at := &b.head; *at != nil; {
		z := *at
		if z.part != rank {
			at = &z.next
			continue
		}
		*at = z.next
		z.listed = false
		atomic.AddUint32(s.parked(rank, z.disp), ^uint32(0))
		z.wake <- struct{}{} // has room for one, and z is woken once per enter
	}
	b.mu.Unlock()
}

// transport is one rank's access to words of other nodes, and its way to wait.
type transport struct {
	c       *comm
	s       *segment
	pending []rma.Operation // issued, not flushed
	z       [2]sleeper      // by word of an Await
	timer   *time.Timer     // of the limit of an Await
}

func (t *transport) Issue(o rma.Operation) { t.pending = append(t.pending, o) }

func (t *transport) Flush(target int, r *rma.Results) (int, error) {
	kept := t.pending[:0]
	for i := range t.pending {
		o := &t.pending[i]
		if target >= 0 && o.Target != target {
			kept = append(kept, *o)
			continue
		}
		o.Apply(t.s.word(o.Target, o.Disp), r)
		if o.Kind.Writes() && o.ParkedOn(t.s.part(o.Target)) {
			t.s.wake(o.Target)
		}
	}
	clear(t.pending[len(kept):])
	t.pending = kept
	return len(kept), nil
}

// SpinBriefly yields to other goroutines a few times.
func (t *transport) SpinBriefly(disp int, seen int64) {
	p := t.s.word(t.c.rank, disp)
	for i := 0; i < briefYields && atomic.LoadInt64(p) == seen; i++ {
		runtime.Gosched()
	}
}

// SyncInboundStores has nothing to do: stores take effect at once.
func (t *transport) SyncInboundStores() error { return nil }

// HandedOver yields to other goroutines.
func (t *transport) HandedOver(int) { runtime.Gosched() }

func (t *transport) Wake(target int) { t.s.wake(target) }

const (
	spins  = 30  // reads of the word before the first yield
	yields = 100 // yields before sleep

	briefYields = 4 // yields of a SpinBriefly
)

func (t *transport) Await(q rma.Waiting) (int, int64, error) {
	for range spins {
		if i, v := t.found(&q); i >= 0 {
			return i, v, nil
		}
	}
	for range yields {
		runtime.Gosched()
		if i, v := t.found(&q); i >= 0 || t.late(&q) {
			return i, v, nil
		}
	}
	limit, stop := t.limit(&q)
	defer stop()
	for i := range q.N {
		if t.z[i].wake == nil {
			t.z[i].wake = make(chan struct{}, 1)
		}
	}
	for {
		for i := range q.N {
			t.s.enter(&t.z[i], q.Words[i].Target, q.Words[i].Disp)
		}
		var err error
		late := false
		i, v := t.found(&q)
		if i < 0 {
			select {
			case <-t.z[0].wake:
				t.z[0].woken = true
			case <-t.z[1].wake: // of a nil channel: never
				t.z[1].woken = true
			case <-limit:
				late = true
			case <-t.c.g.world.failed:
				err = t.c.g.world.peer()
			}
		}
		for i := range q.N {
			t.s.leave(&t.z[i])
		}
		if i < 0 {
			i, v = t.found(&q)
		}
		if i >= 0 || late || err != nil {
			return i, v, err
		}
	}
}

// found is the index of the first word whose condition holds, or -1, and its value.
func (t *transport) found(q *rma.Waiting) (int, int64) {
	for i := range q.N {
		a := &q.Words[i]
		if v := atomic.LoadInt64(t.s.word(a.Target, a.Disp)); a.Cond.Holds(v) {
			return i, v
		}
	}
	return -1, 0
}

// late reports whether the limit of a wait has passed.
func (t *transport) late(q *rma.Waiting) bool {
	return q.Until != rma.Forever && t.c.Now() >= q.Until
}

// limit is a channel on which the limit of a wait comes, and a function that ends it.
func (t *transport) limit(q *rma.Waiting) (<-chan time.Time, func() bool) {
	if q.Until == rma.Forever {
		return nil, never
	}
	d := time.Duration(q.Until - t.c.Now())
	if t.timer == nil {
		t.timer = time.NewTimer(d)
	} else {
		t.timer.Reset(d)
	}
	return t.timer.C, t.timer.Stop
}

func never() bool { return false }

// Backoff yields. From the thousandth try in a row on it sleeps 20 us instead, so that ranks
// do not burn the processors while the holder of a lock sleeps.
func (t *transport) Backoff(_, _ int, _ int64, try int) error {
	if try >= 1000 {
		time.Sleep(20 * time.Microsecond)
	} else {
		runtime.Gosched()
	}
	select {
	case <-t.c.g.world.failed:
		return t.c.g.world.peer()
	default:
		return nil
	}
}

func (t *transport) Free() error { return t.c.Barrier() }
