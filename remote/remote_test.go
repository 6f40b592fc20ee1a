package remote_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/remote"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// config is a heap with room for some thousand blocks.
func config() remote.Config {
	return remote.Config{
		Name: "heap", Words: 1 << 14, Classes: []int{4, 8, 32},
		Regions: []rma.Region{{Count: 16, Words: []rma.Word{{Name: "SLOT", Class: rma.Far}}}},
	}
}

// TestLiveWords: after many changes by several clients all words are in use, in the pool, or in a
// client's hand; and after Close in use or in the pool.
func TestLiveWords(t *testing.T) {
	changes := 3000
	if testing.Short() {
		changes = 500
	}
	for _, job := range []inproc.Job{{Nodes: 1, PerNode: 4}, {Nodes: 2, PerNode: 2, MemoryNodes: 2}} {
		err := job.Run(func(c rma.Comm) error {
			h, err := remote.New(c, config())
			if err != nil {
				return err
			}
			if err := change(c, h, changes); err != nil {
				return err
			}
			held, err := c.Allgather([]int64{int64(h.Held())})
			if err != nil {
				return err
			}
			live := int64(0)
			for slot := range 16 {
				v, err := h.Window().GetFlush(0, slot)
				if err != nil {
					return err
				}
				if _, words := unpack(v); words > 0 {
					live += int64(h.Size(words))
				}
			}
			if err := accounts(h, live, held); err != nil {
				return err
			}
			return errors.Join(c.Barrier(), h.Close(), c.Barrier(), accounts(h, live, nil), h.Unmap())
		})
		if err != nil {
			t.Errorf("%+v: %v", job, err)
		}
	}
}

func pack(r remote.Ref, words int) int64 { return int64(words)<<48 | int64(r) }
func unpack(v int64) (remote.Ref, int)   { return remote.Ref(v & (1<<48 - 1)), int(v >> 48) }

// change has a client put blocks into random slots, in place of those there, and read others.
func change(c rma.Comm, h *remote.Heap, n int) error {
	rng := rand.New(rand.NewPCG(1, uint64(c.Rank())))
	w := h.Window()
	buf := make([]int64, 32)
	for range n {
		if err := h.Enter(); err != nil {
			return err
		}
		slot := rng.IntN(16)
		words := 1 + rng.IntN(32)
		switch v, err := w.GetFlush(0, slot); {
		case err != nil:
			return err
		case rng.IntN(2) == 0 && v != 0:
			ref, words := unpack(v)
			w.GetBulk(buf[:words], ref.Node(), ref.Disp())
			if err := w.Flush(ref.Node()); err != nil {
				return err
			}
			for _, x := range buf[:words] {
				if x != buf[0] {
					return fmt.Errorf("a block of %d words holds %v", words, buf[:words])
				}
			}
		default:
			ref, err := h.Alloc(words)
			if err != nil {
				return err
			}
			for i := range buf[:words] {
				buf[i] = rng.Int64()
				buf[i] = buf[0]
			}
			w.PutBulk(buf[:words], ref.Node(), ref.Disp())
			if err := w.Flush(ref.Node()); err != nil {
				return err
			}
			before, err := w.CompareAndSwapFlush(pack(ref, words), v, 0, slot)
			if err != nil {
				return err
			}
			if before != v {
				h.Return(ref, words)
			} else if old, words := unpack(v); words > 0 {
				h.Free(old, words)
			}
		}
		if err := h.Leave(); err != nil {
			return err
		}
		if n, most := h.Held(), 16*32+32; n > most {
			return fmt.Errorf("a client holds %d words, want at most %d, a chunk and the block freed last", n, most)
		}
	}
	return c.Barrier()
}

// accounts compares the words given out with those in use, in the pool, and held.
func accounts(h *remote.Heap, live int64, held []int64) error {
	u, err := h.Usage()
	if err != nil {
		return err
	}
	sum := live + u.Pooled
	for _, n := range held {
		sum += n
	}
	if sum != u.Taken {
		return fmt.Errorf("%d words were given out; %d in use, %d in the pool, %v held", u.Taken, live, u.Pooled, held)
	}
	return nil
}

// TestCrashLeaksAChunk: clients die one after the other, in sections with blocks in their hands.
// Others go on, and each death has lost at most a chunk and a block.
func TestCrashLeaksAChunk(t *testing.T) {
	t.Parallel() // it mostly waits
	const deaths = 3
	cfg := config()
	cfg.Lease = 1e9
	err := inproc.Job{Nodes: 1, PerNode: deaths + 2, MayDie: true}.Run(func(c rma.Comm) error {
		h, err := remote.New(c, cfg)
		if err != nil {
			return err
		}
		if err := change(c, h, 200); err != nil {
			return err
		}
		if c.Rank() < deaths {
			if err := h.Enter(); err != nil {
				return err
			}
			_, err := h.Alloc(32)
			return errors.Join(err, c.Barrier(), rma.ErrDied)
		}
		if err := errors.Join(c.Barrier(), change(c, h, 500), c.Barrier(), h.Close(), c.Barrier()); err != nil {
			return err
		}
		live := int64(0)
		for slot := range 16 {
			if v, _ := h.Window().GetFlush(0, slot); v != 0 {
				_, words := unpack(v)
				live += int64(h.Size(words))
			}
		}
		u, err := h.Usage()
		if lost := u.Taken - u.Pooled - live; lost > deaths*(16*32+32) || lost < deaths*32 {
			return fmt.Errorf("%d deaths lost %d words", deaths, lost)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestFull: a heap without memory says so, and goes on when a block comes back.
func TestFull(t *testing.T) {
	err := inproc.Run(1, func(c rma.Comm) error {
		h, err := remote.New(c, remote.Config{Name: "small", Words: 100, Classes: []int{4, 8}, Chunk: 64})
		if err != nil {
			return err
		}
		var refs []remote.Ref
		for {
			ref, err := h.Alloc(5)
			if errors.Is(err, remote.ErrFull) {
				if !strings.Contains(err.Error(), "100 words of 1 hosts") {
					return err
				}
				break
			} else if err != nil {
				return err
			}
			if slices.Contains(refs, ref) {
				return fmt.Errorf("block %d twice", ref)
			}
			refs = append(refs, ref)
		}
		if len(refs) != 12 {
			return fmt.Errorf("%d blocks of 8 in 100 words, want 12", len(refs))
		}
		h.Free(refs[0], 5)
		for range 4 { // each advances the epoch at most once
			if err := errors.Join(h.Enter(), h.Leave()); err != nil {
				return err
			}
			for range 8 {
				h.Free(refs[len(refs)-1], 5)
				refs = refs[:len(refs)-1]
				if len(refs) < 2 {
					break
				}
			}
			if len(refs) < 2 {
				break
			}
		}
		for range 3 {
			if err := errors.Join(h.Enter(), h.Leave()); err != nil {
				return err
			}
		}
		_, err = h.Alloc(8)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestConfig: what cannot be is refused, with the name of the field.
func TestConfig(t *testing.T) {
	for want, change := range map[string]func(c *remote.Config){
		"Classes are []":              func(c *remote.Config) { c.Classes = nil },
		"Classes begin with 2":        func(c *remote.Config) { c.Classes = []int{2, 4} },
		"different multiples of 4":    func(c *remote.Config) { c.Classes = []int{4, 6} },
		"want a multiple of 8":        func(c *remote.Config) { c.Chunk = 516 },
		"eight blocks of the largest": func(c *remote.Config) { c.Chunk = 64 },
		"half a chunk":                func(c *remote.Config) { c.Words = 255 },
		"no negative time":            func(c *remote.Config) { c.Lease = -1 },
	} {
		cfg := config()
		change(&cfg)
		err := cfg.Validate()
		if !errors.Is(err, remote.ErrConfig) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"heap"`) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	err := inproc.Run(1, func(c rma.Comm) error {
		h, err := remote.New(c, config())
		if err == nil {
			_, err = h.Alloc(33)
		}
		return err
	})
	if !errors.Is(err, remote.ErrConfig) || !strings.Contains(err.Error(), "want 1 to 32") {
		t.Errorf("Alloc of a block beyond the classes: %v", err)
	}
}

// TestSizes: classes reach the largest size, ascend by a quarter at most, and waste no more.
func TestSizes(t *testing.T) {
	for _, most := range []int{4, 5, 60, 1152} {
		sizes := remote.Sizes(4, most)
		if last := sizes[len(sizes)-1]; last < most || !slices.IsSorted(sizes) {
			t.Errorf("to %d: %v", most, sizes)
		}
		for i := 1; i < len(sizes); i++ {
			if d := sizes[i] - sizes[i-1]; d > 4 && d > sizes[i-1]/4 {
				t.Errorf("to %d: %d behind %d", most, sizes[i], sizes[i-1])
			}
		}
	}
}

// TestExpired: a section that lasts longer than its lease says so, and the next one is good.
func TestExpired(t *testing.T) {
	cfg := config()
	cfg.Lease = 1
	err := inproc.Run(1, func(c rma.Comm) error {
		h, err := remote.New(c, cfg)
		if err := errors.Join(err, h.Enter()); err != nil {
			return err
		}
		c.Sleep(1000)
		if err := h.Leave(); !errors.Is(err, remote.ErrExpired) {
			return fmt.Errorf("Leave after the lease: %w", err)
		}
		return h.Enter()
	})
	if err != nil {
		t.Error(err)
	}
}

// TestFar: blocks of far words are changed by atomics, come back to their own class, and are
// accounted for beside those of plain words.
func TestFar(t *testing.T) {
	err := inproc.Job{Nodes: 1, PerNode: 1, MemoryNodes: 2}.Run(func(c rma.Comm) error {
		cfg := config()
		cfg.FarWords, cfg.FarClasses = 1<<10, []int{4, 12}
		h, err := remote.New(c, cfg)
		if err != nil {
			return err
		}
		w := h.Window()
		var far, plain []remote.Ref
		for i := range 60 { // more than a half chunk of either
			ref, err := h.AllocFar(5)
			if err != nil {
				return err
			}
			w.PutBulk(make([]int64, 12), ref.Node(), ref.Disp())
			if v, err := w.CompareAndSwapFlush(int64(i), 0, ref.Node(), ref.Disp()+11); v != 0 || err != nil {
				return fmt.Errorf("CompareAndSwap finds %d; %w", v, err)
			}
			far = append(far, ref)
			if ref, err = h.Alloc(4); err != nil {
				return err
			}
			plain = append(plain, ref)
		}
		if _, err := w.CompareAndSwapFlush(1, 0, plain[0].Node(), plain[0].Disp()); !errors.Is(err, rma.ErrClass) {
			return fmt.Errorf("CompareAndSwap of a plain word: %w", err)
		}
		if err := accounts(h, 60*(12+4), []int64{int64(h.Held())}); err != nil {
			return err
		}
		for _, ref := range far[:30] {
			h.Free(ref, 5)
		}
		if err := h.Close(); err != nil {
			return err
		}
		for range 20 {
			ref, err := h.AllocFar(12)
			if err != nil || !slices.Contains(far[:30], ref) {
				return fmt.Errorf("block %v is not one that was freed; %w", ref, err)
			}
		}
		if _, err := h.AllocFar(13); !errors.Is(err, remote.ErrConfig) {
			return fmt.Errorf("a block beyond the classes: %w", err)
		}
		return h.Unmap()
	})
	if err != nil {
		t.Error(err)
	}
}
