package remote

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/rmalock/rmalock/internal/handle"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// errBroken is what the searches look for.
var errBroken = errors.New("the heap is broken")

// A use is what clients do in a search: each letter of a script is an operation.
// w writes a new block and puts it into HEAD, in place of the one there, which it frees. r reads
// the block that HEAD leads to. k keeps a block, t takes a list from the pool, g gives one, and
// a advances the epoch.
type use struct {
	scripts []string
	search  sim.Search
	// naive gives a replaced block back as if no reader could see it.
	naive bool
	// change alters or drops operations.
	change func(h *Heap, o *rma.Operation) (keep bool)
	lease  int64
	hasty  bool // client 0 waits for half a lease
	lists  int  // in the pool at first, of one block each
}

// blocks is what the search knows of the blocks, outside the clients.
type blocks struct {
	used   []Ref // in the hands of clients, and in HEAD
	ever   []Ref
	reused int
}

func (b *blocks) Save(into any) any {
	s, ok := into.(*blocks)
	if !ok {
		s = &blocks{}
	}
	s.used, s.ever, s.reused = append(s.used[:0], b.used...), append(s.ever[:0], b.ever...), b.reused
	return s
}

func (b *blocks) Restore(from any) {
	s := from.(*blocks)
	b.used, b.ever, b.reused = append(b.used[:0], s.used...), append(b.ever[:0], s.ever...), s.reused
}

func (b *blocks) hash() uint64 {
	sum := uint64(b.reused)
	for _, r := range b.used {
		sum += uint64(r) * 0x9E3779B97F4A7C15
	}
	for _, r := range b.ever {
		sum += uint64(r) * 0xD6E8FEB86659FD93
	}
	return sum
}

// given notes that a client got a block.
func (b *blocks) given(s *sim.Comm, r Ref) {
	if slices.Contains(b.used, r) {
		s.Fail(fmt.Errorf("%w: block %d is given out twice", errBroken, r))
	}
	b.used = append(b.used, r)
	if slices.Contains(b.ever, r) {
		b.reused++
	} else {
		b.ever = append(b.ever, r)
	}
}

// back notes that a client frees a block.
func (b *blocks) back(r Ref) {
	if i := slices.Index(b.used, r); i >= 0 {
		b.used = slices.Delete(b.used, i, i+1)
	}
}

// run searches and reports how often a block was used again.
func (u *use) run(s sim.Scheduler) (stats sim.Stats, reused int, failure *sim.Failure) {
	b := &blocks{}
	total := 0
	opened := make([]*Heap, len(u.scripts))
	saved := make([]*handle.Snapshot, len(u.scripts))
	u.search.Node = make([]int, len(u.scripts))
	for i := range u.search.Node {
		u.search.Node[i] = i
	}
	u.search.MemoryNodes = 1
	u.search.Ascending = true
	stats, failure = u.search.Run(s, func(c rma.Comm) error {
		s, _ := sim.Of(c)
		rank, h := c.Rank(), opened[c.Rank()]
		first := rma.Generation(c) == 0
		if first && saved[rank] != nil {
			saved[rank].Restore()
		} else {
			var err error
			if h, err = u.open(c); err != nil {
				return err
			}
			if snapshot, ok := handle.TakeSnapshot(nil, h); ok && first {
				opened[rank], saved[rank] = h, snapshot
				s.Keep()
				s.Memoise(b)
			}
		}
		if rank == 0 {
			s.Start(func() { b.used, b.ever, b.reused = b.used[:0], b.ever[:0], 0 })
		}
		if err := s.Begin(); err != nil {
			return err
		}
		s.Extra(b.hash)
		for i, what := range []byte(u.scripts[rank]) {
			s.Home(func() uint64 { return handle.Fingerprint(h)*64 + uint64(i) })
			if err := u.operate(s, h, b, what, int64(rank*8+i+1)); err != nil {
				return err
			}
		}
		s.Home(func() uint64 { return 63 })
		if err := s.End(); err != nil {
			return err
		}
		if rank == 0 {
			total += b.reused
		}
		if held := h.Held(); held > h.cfg.Chunk+8 {
			return fmt.Errorf("%w: a client holds %d words, more than a chunk", errBroken, held)
		}
		return s.Barrier()
	})
	return stats, total, failure
}

// open opens a heap that deals with epochs at each Enter.
func (u *use) open(c rma.Comm) (*Heap, error) {
	h, err := New(c, Config{
		Name: "heap", Words: 256, Classes: []int{4}, Chunk: 32, Lease: u.lease,
		Regions: []rma.Region{{Count: 1, Words: []rma.Word{{Name: "HEAD", Class: rma.Far}}}},
	})
	if err != nil {
		return nil, err
	}
	if c.Rank() == 0 {
		if u.hasty {
			h.cfg.Lease /= 2
		}
		for range u.lists {
			if !h.cut(0) {
				_, err = h.takeMemory(&h.plain)
				h.cut(0)
			}
			if err := errors.Join(err, h.giveList(0)); err != nil {
				return nil, err
			}
		}
	}
	h.cfg.Chunk = 16 // thresholds of one block and half a block
	if u.change != nil {
		h.w = rma.Decorate(h.w, func(t rma.Transport) rma.Transport { return altered{t, u.change, h} })
	}
	return h, nil
}

// altered is a Transport with other operations.
type altered struct {
	rma.Transport
	change func(h *Heap, o *rma.Operation) (keep bool)
	h      *Heap
}

func (x altered) Issue(o rma.Operation) {
	if x.change(x.h, &o) {
		x.Transport.Issue(o)
	}
}

// operate does one operation.
func (u *use) operate(s *sim.Comm, h *Heap, b *blocks, what byte, stamp int64) error {
	switch what {
	case 'a':
		return h.advance(false)
	case 't':
		_, err := h.takeList(0)
		return err
	case 'g':
		if len(h.free[0]) == 0 {
			return nil
		}
		return h.giveList(0)
	case 'k':
		ref, err := h.Alloc(4)
		s.Effect(func() { b.given(s, ref) })
		return err
	}
	if err := h.Enter(); err != nil {
		return err
	}
	if what == 'w' {
		ref, err := h.Alloc(4)
		if err != nil {
			return err
		}
		s.Effect(func() { b.given(s, ref) })
		s.Effect(s.Visible)
		var data [4]int64
		for i := range data {
			data[i] = stamp
		}
		h.w.PutBulk(data[:], ref.Node(), ref.Disp())
		if err := h.w.Flush(ref.Node()); err != nil {
			return err
		}
		before, err := h.w.FetchAndOpFlush(stamp<<refBits|int64(ref), 0, 0, rma.Replace)
		if err != nil {
			return err
		}
		if old := Ref(before & (1<<refBits - 1)); old != 0 {
			s.Effect(func() { b.back(old) })
			s.Effect(s.Visible)
			if u.naive {
				h.Return(old, 4)
			} else {
				h.Free(old, 4)
			}
		}
		return ignoreExpired(h.Leave())
	}
	head, err := h.w.GetFlush(0, 0)
	if err != nil {
		return err
	}
	var data [4]int64
	ref := Ref(head & (1<<refBits - 1))
	if ref != 0 {
		h.w.GetBulk(data[:], ref.Node(), ref.Disp())
		if err := h.w.Flush(ref.Node()); err != nil {
			return err
		}
	}
	if err := h.Leave(); err != nil {
		return ignoreExpired(err)
	}
	for _, v := range data {
		if v != head>>refBits {
			return fmt.Errorf("%w: a reader found a block with stamp %d and read %v", errBroken, head>>refBits, data)
		}
	}
	return nil
}

func ignoreExpired(err error) error {
	if errors.Is(err, ErrExpired) {
		return nil
	}
	return err
}

// TestSearch: all schedules of a few clients; blocks are used again, no block is given out twice,
// and no reader sees one that is.
func TestSearch(t *testing.T) {
	for _, k := range []struct {
		name  string
		use   use
		bound int
		long  bool
		fresh bool // no block is used again
	}{
		{"a writer and a reader", use{scripts: []string{"wwww", "r"}, search: sim.Search{Ticks: 1}, lease: 5000}, sim.Unbounded, false, false},
		{"two writers", use{scripts: []string{"www", "ww"}, search: sim.Search{Ticks: 1}, lease: 5000}, sim.Unbounded, false, false},
		{"the pool", use{scripts: []string{"tktk", "ttkg"}, search: sim.Search{Ticks: 1}, lists: 2}, sim.Unbounded, false, true},
		{"time", use{scripts: []string{"wwww", "r"}, search: sim.Search{Ticks: 4, MaxDelay: 1}, lease: 2000}, sim.Unbounded, false, false},
		{"a death", use{scripts: []string{"wwww", "r"}, search: sim.Search{Ticks: 3, Crashes: 1, MaxDelay: 1}, lease: 1000}, 2, false, false},
		{"a death, any preemption", use{scripts: []string{"wwww", "r"}, search: sim.Search{Ticks: 4, Crashes: 1, MaxDelay: 1}, lease: 2000}, sim.Unbounded, true, false},
		{"three", use{scripts: []string{"www", "w", "r"}, search: sim.Search{Ticks: 1}, lease: 5000}, sim.Unbounded, true, false},
		{"a death of three", use{scripts: []string{"wwww", "w", "r"}, search: sim.Search{Ticks: 3, Crashes: 1, MaxDelay: 1}, lease: 1000}, 1, true, false},
	} {
		t.Run(k.name, func(t *testing.T) {
			if k.long && locktest.Quick() {
				t.Skip("takes some seconds; see test-all")
			}
			if k.name == "a death of three" && !locktest.Deep() {
				t.Skip("takes a minute; see check-deep")
			}
			t.Parallel()
			x := sim.Exhaustive(k.bound)
			stats, reused, f := k.use.run(x)
			if f != nil {
				t.Fatalf("%v; %s", f, f.Schedule)
			}
			if reused == 0 != k.fresh {
				t.Errorf("%d blocks were used again", reused)
			}
			t.Logf("%d states, %d executions, %d to their end, %d out of ticks, %d blocks used again", x.States(), stats.Executions+stats.Cut, stats.Executions, stats.OutOfTicks, reused)
		})
	}
}

// TestSearchRandom: random and PCT schedules of more clients, with time and deaths.
func TestSearchRandom(t *testing.T) {
	executions := int64(400)
	if locktest.Quick() {
		executions = 40
	}
	all := []string{"wwwwww", "rwrwrw", "wwwrrr", "rrrrrr", "wrwrwr", "wwwwww", "rwwwwr", "rrrwww"}
	for name, u := range map[string]use{
		"time":   {scripts: all, search: sim.Search{Ticks: 100, MaxDelay: 1}, lease: 3000},
		"deaths": {scripts: all, search: sim.Search{Ticks: 200, Crashes: 3, MaxDelay: 1}, lease: 3000},
		"heirs":  {scripts: all, search: sim.Search{Ticks: 200, Crashes: 3, Rejoins: 2, MaxDelay: 1}, lease: 3000},
	} {
		for _, s := range []sim.Scheduler{sim.Random(1, 0, executions), sim.PCT(1, 3, 0, executions)} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				u := u
				_, reused, f := u.run(s)
				if f != nil {
					t.Fatalf("%v; %s", f, f.Schedule)
				}
				if reused == 0 {
					t.Error("no block was used again")
				}
			})
		}
	}
}

// TestMutants: a search finds what is wrong with each change of the protocol.
func TestMutants(t *testing.T) {
	still := sim.Search{Ticks: 1}
	for name, u := range map[string]use{
		"no epochs": {scripts: []string{"www", "r"}, search: still, lease: 5000, naive: true},
		"no ENTRY": {scripts: []string{"wwww", "r"}, search: still, lease: 5000, change: func(h *Heap, o *rma.Operation) bool {
			return o.Kind != rma.KindPut || o.Disp != h.entryAt
		}},
		"one epoch": {scripts: []string{"wwww", "r"}, search: still, lease: 5000, change: func(h *Heap, o *rma.Operation) bool {
			if o.Kind == rma.KindCompareAndSwap && o.Disp == h.epochAt {
				o.Operand++
			}
			return true
		}},
		"no fence in advance": {scripts: []string{"a", "wwaw", "r"}, search: still, lease: 5000, change: func(h *Heap, o *rma.Operation) bool {
			if o.Kind == rma.KindGetBulk && o.Disp == h.clientsAt {
				o.Epoch = 0
			}
			return true
		}},
		"a short lease": {scripts: []string{"wwww", "r"}, search: sim.Search{Ticks: 3}, lease: 2000, hasty: true},
		"no number of changes": {scripts: []string{"tktk", "ttkg"}, search: still, lists: 2, change: func(h *Heap, o *rma.Operation) bool {
			if o.Kind == rma.KindCompareAndSwap && o.Disp == h.poolAt {
				o.Operand &= 1<<refBits - 1
				o.Compare &= 1<<refBits - 1
			}
			return true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := sim.Exhaustive(sim.Unbounded)
			x.Limit = 1_000_000
			_, _, f := u.run(x)
			if f == nil || !errors.Is(f, errBroken) {
				t.Fatalf("the search found %v", f)
			}
			t.Logf("%v, after %d executions", f, f.Execution)
		})
	}
}
