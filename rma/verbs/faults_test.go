//go:build cgo && verbs

package verbs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rmalock/rmalock/dslr"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/rmatest"
	"github.com/rmalock/rmalock/rma/verbs"
	"github.com/stretchr/testify/require"
)

// far is a window of n words of each class on the memory nodes.
func far(name string, n int) rma.Spec {
	return rma.Spec{Name: name, Hosts: rma.MemoryNodes, Regions: []rma.Region{
		{Count: n, Words: []rma.Word{{Name: "FAR", Class: rma.Far}}},
		{Count: n, Words: []rma.Word{{Name: "PLAIN", Class: rma.Plain}}},
	}}
}

// one runs f as the one rank of a job with memory nodes.
func one(t *testing.T, names []string, f func(c rma.Comm)) {
	t.Helper()
	require.NoError(t, verbs.Config{MemoryNodes: names}.Run(1, func(c rma.Comm) error { f(c); return nil }))
}

// TestMemoryNodeDies: its operations are an error that names it, within a second or two, and
// those on the other memory node go on.
func TestMemoryNodeDies(t *testing.T) {
	needDevice(t)
	s, err := verbs.Listen(verbs.NodeConfig{Listen: "127.0.0.1:0", Words: 1 << 10})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	names := append([]string{s.Addr()}, memoryNodes(t, 1, 1<<10)...)
	one(t, names, func(c rma.Comm) {
		w, err := c.Allocate(far("w", 1))
		require.NoError(t, err)
		go func() {
			time.Sleep(100 * time.Millisecond)
			stop()
		}()
		for err == nil {
			err = w.AccumulateFlush(1, 0, 0, rma.Sum)
		}
		<-ended
		t.Log(err)
		for range 3 {
			began := time.Now()
			err := w.AccumulateFlush(1, 0, 0, rma.Sum)
			require.ErrorIs(t, err, rma.ErrPeer)
			require.ErrorContains(t, err, "memory node 0 ")
			require.Less(t, time.Since(began), 20*time.Second)
			_, err = w.FetchAndOpFlush(1, 1, 0, rma.Sum)
			require.NoError(t, err)
			w.Accumulate(1, 0, 0, rma.Sum) // both at once
			r := w.FetchAndOp(1, 1, 0, rma.Sum)
			require.ErrorIs(t, w.FlushAll(), rma.ErrPeer)
			require.NotZero(t, w.Value(r))
		}
		_, _, err = w.AwaitUntil(0, 0, rma.Equal(-1), c.Now()+1e9)
		require.ErrorIs(t, err, rma.ErrPeer)
		require.Error(t, w.Free())
	})
}

// TestKeyRevoked: the error says so, and other windows of the memory node go on.
func TestKeyRevoked(t *testing.T) {
	needDevice(t)
	s, err := verbs.Listen(verbs.NodeConfig{Listen: "127.0.0.1:0", Words: 1 << 10})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	one(t, []string{s.Addr()}, func(c rma.Comm) {
		good, err := c.Allocate(far("good", 1))
		require.NoError(t, err)
		bad, err := c.Allocate(far("bad", 2))
		require.NoError(t, err)
		require.NoError(t, bad.PutFlush(5, 0, 2))
		require.NoError(t, verbs.Revoke(c, s, 4))
		for range 3 {
			for _, f := range []func() error{
				func() error { return bad.PutFlush(5, 0, 2) },
				func() error { _, err := bad.GetFlush(0, 0); return err },
				func() error { return bad.AccumulateFlush(1, 0, 0, rma.Sum) },
			} {
				err := f()
				require.ErrorIs(t, err, rma.ErrTransport)
				require.ErrorContains(t, err, "memory node 0 ")
				require.ErrorContains(t, err, "revoked")
			}
			_, err := good.FetchAndOpFlush(1, 0, 0, rma.Sum)
			require.NoError(t, err)
		}
		v, err := good.GetFlush(0, 0)
		require.NoError(t, err)
		require.EqualValues(t, 3, v)
		require.NoError(t, bad.Free())
		require.NoError(t, good.Free())
	})
	stop()
	require.NoError(t, <-ended)
}

// TestQueueIsShared: ranks that together issue more than the queue has room for lose nothing.
func TestQueueIsShared(t *testing.T) {
	needDevice(t)
	const ranks, rounds = 4, 10
	cfg := verbs.Config{MemoryNodes: memoryNodes(t, 1, 1<<10)}
	require.NoError(t, cfg.Run(ranks, func(c rma.Comm) error {
		w, err := c.Allocate(far("w", 1))
		if err != nil {
			return err
		}
		for range rounds {
			for range rma.MaxPending {
				w.Accumulate(1, 0, 0, rma.Sum)
			}
			if err := w.Flush(0); err != nil {
				return err
			}
			for i := range rma.MaxPending {
				w.Put(int64(i), 0, 1)
			}
			if err := w.Flush(0); err != nil {
				return err
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if v, err := w.GetFlush(0, 0); err != nil || v != ranks*rounds*rma.MaxPending {
			return fmt.Errorf("the count is %d, want %d; %w", v, ranks*rounds*rma.MaxPending, err)
		}
		return w.Free()
	}))
}

// TestOneDoorbell: a step is one list and one completion, whatever it has. On Soft-RoCE, which
// gets no fence, what must wait for a READ is a list of its own.
func TestOneDoorbell(t *testing.T) {
	needDevice(t)
	one(t, memoryNodes(t, 1, 1<<14), func(c rma.Comm) {
		w, err := c.Allocate(far("w", 500))
		require.NoError(t, err)
		data := make([]int64, 300)
		step := func(read bool) {
			w.Put(1, 0, 500)
			w.Fence(0)
			w.FetchAndOp(1, 0, 0, rma.Sum)
			if read {
				w.Get(0, 501)
			}
			w.Fence(0)
			w.PutBulk(data, 0, 600)
			w.CompareAndSwap(1, 2, 0, 3)
			w.Fence(0)
			w.Get(0, 502)
			require.NoError(t, w.Flush(0))
		}
		const steps = 20
		for _, read := range []bool{false, true} {
			before, lists, operations := verbs.CountsOf(c, false), steps, 5*steps
			if read {
				operations += steps
			}
			if read && verbs.Soft(c) {
				lists *= 2
			}
			for range steps {
				step(read)
			}
			after := verbs.CountsOf(c, false)
			require.EqualValues(t, lists, after.Doorbells-before.Doorbells)
			require.EqualValues(t, lists, after.Completions-before.Completions)
			require.EqualValues(t, operations, after.Operations-before.Operations)
		}
		require.NoError(t, w.Free())
	})
}

// TestFarWordsAreTheCards: all updates of Far words go through the device, those of one's own words
// too, and none is lost.
func TestFarWordsAreTheCards(t *testing.T) {
	needDevice(t)
	const rounds = 500
	require.NoError(t, verbs.Config{Nodes: 2}.Run(4, func(c rma.Comm) error {
		w, err := c.Allocate(rma.CounterSpec("w", 1))
		if err != nil {
			return err
		}
		before := verbs.CountsOf(c, true)
		if err := c.Barrier(); err != nil {
			return err
		}
		for i := range rounds {
			if err := w.AccumulateFlush(1, (c.Rank()+i)%4, 0, rma.Sum); err != nil {
				return err
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if v, err := w.GetFlush(c.Rank(), 0); err != nil || v != rounds {
			return fmt.Errorf("the count at rank %d is %d, want %d; %w", c.Rank(), v, rounds, err)
		}
		// Two ranks of the node, half of their updates at the node itself.
		if n := verbs.CountsOf(c, true).Operations - before.Operations; n != rounds {
			return fmt.Errorf("%d operations of the node on its own words, want %d", n, rounds)
		}
		return w.Free()
	}))
}

// TestNothingIsLeft: windows, jobs and clients in numbers leave no memory, pair, file, or
// goroutine.
func TestNothingIsLeft(t *testing.T) {
	needDevice(t)
	windows, jobs, clients := 2000, 500, 2000
	if testing.Short() {
		windows, jobs, clients = 100, 5, 20
	}
	files := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(list)
	}
	empty := verbs.InUse()
	for name, n := range empty {
		require.Zero(t, n, name)
	}
	before, running := files(), runtime.NumGoroutine()
	t.Run("cycles", func(t *testing.T) {
		names := memoryNodes(t, 1, 1<<12)
		served := verbs.InUse()
		one(t, names, func(c rma.Comm) {
			for range windows {
				w, err := c.Allocate(far("w", 10))
				require.NoError(t, err)
				require.NoError(t, w.AccumulateFlush(1, 0, 0, rma.Sum))
				require.NoError(t, w.Free())
			}
		})
		for range jobs {
			one(t, names, func(c rma.Comm) {
				w, err := c.Allocate(far("w", 10))
				require.NoError(t, err)
				require.NoError(t, w.PutFlush(1, 0, 10)) // and no Free
			})
		}
		for i := range clients {
			p, err := verbs.Config{MemoryNodes: names}.Dial()
			require.NoError(t, err)
			c, err := p.Join()
			require.NoError(t, err)
			w, err := c.Allocate(far("kept", 10))
			require.NoError(t, err)
			v, err := w.FetchAndOpFlush(1, 0, 0, rma.Sum)
			require.NoError(t, err)
			require.EqualValues(t, i, v)
			if i%2 == 0 { // the others only close
				require.NoError(t, w.Free())
				require.NoError(t, c.Leave())
			}
			require.NoError(t, p.Close())
		}
		for name, n := range served {
			most := n
			if name == "regions" {
				most++ // the window that is kept
			}
			require.Eventually(t, func() bool { return name == "bytes" || verbs.InUse()[name] <= most }, time.Minute, time.Millisecond, name)
		}
		t.Logf("%d windows, %d jobs, %d clients: %v before, %v after", windows, jobs, clients, served, verbs.InUse())
	})
	require.Equal(t, empty, verbs.InUse())
	require.Eventually(t, func() bool { return files() == before }, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= running }, time.Minute, time.Millisecond)
}

// TestMemoryNodeRestarts: a memory node is killed and another one listens in its place, with the
// same windows. A client that held a lock of the first, and one that waited for it, get errors
// that name it, however often they try. New clients attach and lock.
func TestMemoryNodeRestarts(t *testing.T) {
	needDevice(t)
	serve := func(listen string) (string, *exec.Cmd) {
		child := exec.Command(os.Args[0], "-test.run=^TestChildMemoryNode$")
		child.Env = append(os.Environ(), "RMALOCK_CHILD=memory node", "RMALOCK_LISTEN="+listen)
		out := new(lockedBuffer)
		child.Stdout, child.Stderr = out, out
		require.NoError(t, child.Start())
		at := ""
		require.Eventually(t, func() bool {
			n, _ := fmt.Sscanf(out.String(), "listens at %s .", &at)
			return n == 1 && strings.Contains(out.String(), ".\n")
		}, time.Minute, time.Millisecond, "%s", out)
		return at, child
	}
	client := func(at string) (*verbs.Process, *verbs.Client, *dslr.Table, *rma.Window) {
		p, err := verbs.Config{MemoryNodes: []string{at}}.Dial()
		require.NoError(t, err)
		c, err := p.Join()
		require.NoError(t, err)
		l, err := dslr.New(c, dslr.Config{Lease: int64(time.Minute)})
		require.NoError(t, err)
		w, err := c.Allocate(far("data", 1))
		require.NoError(t, err)
		return p, c, l, w
	}
	at, first := serve("127.0.0.1:0")
	p, c, l, w := client(at)
	require.NoError(t, l.Lock(context.Background(), 0, lock.Exclusive))
	require.NoError(t, w.PutFlush(7, 0, 1))
	p2, _, l2, _ := client(at)
	waited := make(chan error)
	go func() { waited <- l2.Lock(context.Background(), 0, lock.Exclusive) }()
	time.Sleep(100 * time.Millisecond)

	require.NoError(t, first.Process.Kill())
	_ = first.Wait()
	named := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, rma.ErrPeer)
		require.ErrorContains(t, err, "memory node 0 ("+at+")")
	}
	began := time.Now()
	err := <-waited
	t.Logf("the waiter learns of it after %v: %v", time.Since(began), err)
	named(err)
	again, second := serve(at)
	require.Equal(t, at, again)
	p3, _, l3, w3 := client(at)
	require.NoError(t, l3.Lock(context.Background(), 0, lock.Exclusive))
	v, err := w3.GetFlush(0, 1)
	require.NoError(t, err)
	require.Zero(t, v, "its memory is new")
	for range 3 { // the new node has a window of the same name, and the old clients never reach it
		named(w.PutFlush(8, 0, 1))
		_, err := w.GetFlush(0, 1)
		named(err)
		named(l2.Lock(context.Background(), 0, lock.Exclusive))
	}
	named(l.Unlock(0, lock.Exclusive))
	named(l.Lock(context.Background(), 0, lock.Exclusive))
	_, err = p.Join()
	require.ErrorIs(t, err, rma.ErrPeer)
	require.ErrorContains(t, err, at)
	require.Error(t, c.Leave())
	v, err = w3.GetFlush(0, 1)
	require.NoError(t, err)
	require.Zero(t, v)
	require.NoError(t, l3.Unlock(0, lock.Exclusive))
	for _, p := range []*verbs.Process{p, p2, p3} {
		require.NoError(t, p.Close())
	}
	require.NoError(t, second.Process.Kill())
	_ = second.Wait()
}

// TestChildMemoryNode is a memory node that TestMemoryNodeRestarts kills.
func TestChildMemoryNode(t *testing.T) {
	if os.Getenv("RMALOCK_CHILD") != "memory node" {
		t.Skip("a part of TestMemoryNodeRestarts")
	}
	s, err := verbs.Listen(verbs.NodeConfig{Listen: os.Getenv("RMALOCK_LISTEN"), Words: 1 << 12})
	require.NoError(t, err)
	fmt.Printf("listens at %s .\n", s.Addr())
	require.NoError(t, s.Run(context.Background()))
}

// TestClients: clients of several processes come and go, and one is killed while its operations
// are under way: what it had flushed is there, and its slot is free.
func TestClients(t *testing.T) {
	needDevice(t)
	names := memoryNodes(t, 1, 1<<12)
	p, err := verbs.Config{MemoryNodes: names}.Dial()
	require.NoError(t, err)
	c, err := p.Join()
	require.NoError(t, err)
	w, err := c.Allocate(far("table", 4))
	require.NoError(t, err)
	require.Equal(t, 0, c.Rank())
	require.NoError(t, w.PutFlush(1, 0, 4))
	_, err = c.Allocate(far("table", 5))
	require.ErrorIs(t, err, rma.ErrMismatch)
	child := exec.Command(os.Args[0], "-test.run=^TestChildClient$")
	child.Env = append(os.Environ(), "RMALOCK_CHILD=client", "RMALOCK_MN="+names[0])
	out := new(lockedBuffer)
	child.Stdout = out
	require.NoError(t, child.Start())
	_, err = w.Await(0, 0, rma.AtLeast(100))
	require.NoError(t, err)
	require.NoError(t, child.Process.Kill())
	_ = child.Wait()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var flushed, slot int64
	for _, line := range lines { // the last may be cut
		if n, _ := fmt.Sscanf(line, "flushed %d at slot %d.", &flushed, &slot); n < 2 {
			break
		}
	}
	v, err := w.GetFlush(0, 0)
	require.NoError(t, err)
	require.GreaterOrEqual(t, v, flushed)
	require.EqualValues(t, 1, slot)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		next, err := p.Join()
		require.NoError(t, err)
		if next.Rank() == 1 {
			require.Equal(t, 1, rma.Generation(next))
			break
		}
		require.NoError(t, next.Leave())
		require.True(t, time.Now().Before(end), "the slot of the dead client is not free")
	}
	require.NoError(t, w.Free())
	require.NoError(t, c.Leave())
	require.NoError(t, p.Close())
}

type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestChildClient is the client that TestClients kills.
func TestChildClient(t *testing.T) {
	if os.Getenv("RMALOCK_CHILD") != "client" {
		t.Skip("a part of TestClients")
	}
	cfg, err := verbs.FromEnvironment()
	require.NoError(t, err)
	p, err := cfg.Dial()
	require.NoError(t, err)
	c, err := p.Join()
	require.NoError(t, err)
	w, err := c.Allocate(far("table", 4))
	require.NoError(t, err)
	for n := 1; ; n++ {
		require.NoError(t, w.AccumulateFlush(1, 0, 0, rma.Sum))
		fmt.Printf("flushed %d at slot %d.\n", n, c.Rank())
	}
}

// TestProcesses: the conformance suite with ranks in two processes that meet at a memory node.
func TestProcesses(t *testing.T) {
	needDevice(t)
	names := memoryNodes(t, 1, 1<<20)
	var children [2]*exec.Cmd
	var out [2]lockedBuffer
	for i := range children {
		k := exec.Command(os.Args[0], "-test.run=^TestChildJob$", "-test.v")
		k.Env = append(os.Environ(), "RMALOCK_CHILD=job", "RMALOCK_MN="+names[0], fmt.Sprintf("RMALOCK_PROCESS=%d/2", i))
		k.Stdout, k.Stderr = &out[i], &out[i]
		require.NoError(t, k.Start())
		children[i] = k
	}
	for i, k := range children {
		if err := k.Wait(); err != nil || !strings.Contains(out[i].String(), "--- PASS: TestChildJob") {
			t.Errorf("process %d: %v\n%s", i, err, out[i].String())
		}
	}
}

// TestChildJob is one process of TestProcesses.
func TestChildJob(t *testing.T) {
	if os.Getenv("RMALOCK_CHILD") != "job" {
		t.Skip("a part of TestProcesses")
	}
	require.NoError(t, verbs.Run(2, func(c rma.Comm) error {
		for _, k := range rmatest.Checks() {
			if strings.HasPrefix(k.Name, "Bulk") && testing.Short() {
				continue
			}
			if err := k.Run(c); err != nil {
				return fmt.Errorf("%s: %w", k.Name, err)
			}
		}
		return nil
	}))
}

// TestHugePages: a memory node has huge pages where the machine has them free, and others
// elsewhere; its status says which.
func TestHugePages(t *testing.T) {
	needDevice(t)
	const file = "/proc/sys/vm/nr_hugepages"
	if os.Getenv("GUEST_ADDRESS") == "" {
		t.Skip("it reserves huge pages, and this is no guest of scripts/guest")
	}
	for _, reserved := range []string{"0", "4"} {
		require.NoError(t, os.WriteFile(file, []byte(reserved), 0))
		s, err := verbs.Listen(verbs.NodeConfig{Listen: "127.0.0.1:0", Words: 1 << 20})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		require.Equal(t, reserved != "0", s.Status().Huge)
		one(t, []string{s.Addr()}, func(c rma.Comm) {
			w, err := c.Allocate(far("w", 400_000))
			require.NoError(t, err)
			require.NoError(t, w.AccumulateFlush(7, 0, 399_999, rma.Sum))
			v, err := w.GetFlush(0, 399_999)
			require.NoError(t, err)
			require.EqualValues(t, 7, v)
			require.NoError(t, w.Free())
		})
		stop()
		require.NoError(t, <-ended)
	}
	require.NoError(t, os.WriteFile(file, []byte("0"), 0))
}

// TestOneKindOfAtomics: all that changes a word by an atomic, or a Far word at all, is of the card
// where the card reaches the word, and of the CPU where it does not. So no word has both.
func TestOneKindOfAtomics(t *testing.T) {
	needDevice(t)
	classes := []rma.Class{rma.Near, rma.Far, rma.Flag, rma.Plain}
	spec := rma.Spec{Name: "w", Regions: []rma.Region{{Count: 1, Words: []rma.Word{
		{Name: "NEAR", Class: rma.Near}, {Name: "FAR", Class: rma.Far}, {Name: "FLAG", Class: rma.Flag}, {Name: "PLAIN", Class: rma.Plain},
	}}}}
	atMemoryNodes := spec
	atMemoryNodes.Name, atMemoryNodes.Hosts = "m", rma.MemoryNodes
	atMemoryNodes.Regions = []rma.Region{{Count: 2, Words: []rma.Word{{Name: "FAR", Class: rma.Far}, {Name: "PLAIN", Class: rma.Plain}}}}
	updates := map[string]func(w *rma.Window, target, disp int) error{
		"Accumulate": func(w *rma.Window, target, disp int) error { return w.AccumulateFlush(1, target, disp, rma.Sum) },
		"FetchAndOp": func(w *rma.Window, target, disp int) error {
			_, err := w.FetchAndOpFlush(1, target, disp, rma.Sum)
			return err
		},
		"swap": func(w *rma.Window, target, disp int) error {
			_, err := w.FetchAndOpFlush(1, target, disp, rma.Replace)
			return err
		},
		"CompareAndSwap": func(w *rma.Window, target, disp int) error {
			_, err := w.CompareAndSwapFlush(1, 2, target, disp)
			return err
		},
		"in a list": func(w *rma.Window, target, disp int) error {
			w.Get(target, disp)
			w.FetchAndOp(1, target, disp, rma.Sum)
			return w.FlushAll()
		},
	}
	put := func(w *rma.Window, target, disp int) error { return w.PutFlush(3, target, disp) }
	require.NoError(t, verbs.Config{Nodes: 2, MemoryNodes: memoryNodes(t, 1, 1<<10)}.Run(4, func(c rma.Comm) error {
		w, err := c.Allocate(spec)
		if err != nil {
			return err
		}
		m, err := c.Allocate(atMemoryNodes)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			byCard := func(f func(*rma.Window, int, int) error, w *rma.Window, target, disp int) (bool, error) {
				before := verbs.CountsOf(c, false).Operations
				err := f(w, target, disp)
				return verbs.CountsOf(c, false).Operations > before, err
			}
			for target := range 4 {
				for disp, class := range classes {
					for name, f := range updates {
						card, err := byCard(f, w, target, disp)
						what := fmt.Sprintf("%s of a %v word of rank %d", name, class, target)
						switch {
						case class == rma.Far:
							require.NoError(t, err, what)
							require.True(t, card, what)
						case class == rma.Near && target < 2:
							require.NoError(t, err, what)
							if name != "in a list" {
								require.False(t, card, what)
							}
						default:
							require.ErrorIs(t, err, rma.ErrClass, what)
						}
					}
					if class == rma.Near && target >= 2 {
						continue
					}
					card, err := byCard(put, w, target, disp)
					require.NoError(t, err)
					require.Equal(t, class == rma.Far || target >= 2, card, "a Put of a %v word of rank %d", class, target)
				}
			}
			for disp, class := range []rma.Class{rma.Far, rma.Plain} {
				for name, f := range updates {
					card, err := byCard(f, m, 0, disp)
					if class == rma.Far {
						require.NoError(t, err, name)
						require.True(t, card, name)
					} else {
						require.ErrorIs(t, err, rma.ErrClass, name)
					}
				}
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		return errors.Join(w.Free(), m.Free())
	}))
}

// TestBuffersAreNotCopied: from and to a window's buffer the card moves data itself, in one
// operation, and the package registers no memory for a copy.
func TestBuffersAreNotCopied(t *testing.T) {
	needDevice(t)
	const n = 200_000
	one(t, memoryNodes(t, 1, 1<<19), func(c rma.Comm) {
		w, err := c.Allocate(far("w", n))
		require.NoError(t, err)
		b, err := w.Buffer(2 * n)
		require.NoError(t, err)
		out, in := b[:n], b[n:]
		for i := range out {
			out[i] = int64(i) * 3
		}
		bytes, before := verbs.InUse()["bytes"], verbs.CountsOf(c, false)
		w.PutBulk(out, 0, n)
		w.Fence(0)
		w.GetBulk(in, 0, n)
		require.NoError(t, w.Flush(0))
		after := verbs.CountsOf(c, false)
		require.True(t, slices.Equal(in, out))
		require.Equal(t, bytes, verbs.InUse()["bytes"])
		require.EqualValues(t, 2, after.Operations-before.Operations)
		require.EqualValues(t, 1, after.Doorbells-before.Doorbells)
		require.Zero(t, testing.AllocsPerRun(10, func() {
			w.GetBulk(in, 0, n)
			_ = w.Flush(0)
		}))
		require.NoError(t, w.Free())
	})
}

// TestClientsMail: clients have windows of ranks, whose words lie on the memory nodes. What a client
// wrote into its own stays when it has left.
func TestClientsMail(t *testing.T) {
	needDevice(t)
	cfg := verbs.Config{MemoryNodes: memoryNodes(t, 2, 1<<12)}
	spec := rma.Spec{Name: "mail", Regions: []rma.Region{{Count: 3, Words: []rma.Word{
		{Name: "FLAG", Class: rma.Flag}, {Name: "NEAR", Class: rma.Near}, {Name: "FAR", Class: rma.Far}, {Name: "PLAIN", Class: rma.Plain},
	}}}}
	const flag, near, distant, plain = 0, 1, 2, 3
	type client struct {
		p *verbs.Process
		c *verbs.Client
		w *rma.Window
	}
	join := func(p *verbs.Process) client {
		c, err := p.Join()
		require.NoError(t, err)
		w, err := c.Allocate(spec)
		require.NoError(t, err)
		return client{p, c, w}
	}
	var all []client
	for range 2 { // processes
		p, err := cfg.Dial()
		require.NoError(t, err)
		all = append(all, join(p), join(p))
	}
	for i, a := range all {
		require.Equal(t, i, a.c.Rank())
		require.Equal(t, a.c.Size(), a.w.Size())
		require.NoError(t, a.w.PutFlush(int64(100+i), i, near))
		v, err := a.w.FetchAndOpFlush(5, i, near, rma.Replace)
		require.NoError(t, err)
		require.EqualValues(t, 100+i, v)
		require.NoError(t, a.w.AccumulateFlush(6, i, near, rma.Replace))
		require.NoError(t, a.w.AccumulateFlush(-1, i, near, rma.Sum))
		for to := range all {
			require.NoError(t, a.w.AccumulateFlush(1, to, 4+distant, rma.Sum))
			require.NoError(t, a.w.PutFlush(int64(i+1), to, 4*(i%3)+plain))
		}
		if i > 0 {
			require.ErrorIs(t, a.w.AccumulateFlush(1, 0, near, rma.Sum), rma.ErrClass)
		}
	}
	for i, a := range all {
		v, err := a.w.GetFlush(i, 4+distant)
		require.NoError(t, err)
		require.EqualValues(t, len(all), v)
	}
	woken := make(chan error)
	for i, a := range all[1:] {
		go func() {
			_, err := a.w.Await(i+1, flag, rma.Equal(int64(i+1)))
			woken <- err
		}()
	}
	for i := range all[1:] {
		require.NoError(t, all[0].w.PutFlush(int64(i+1), i+1, flag))
		require.NoError(t, <-woken)
	}

	require.NoError(t, all[1].c.Leave())
	require.NoError(t, all[0].w.PutFlush(77, 1, plain)) // to a client that has left: no error
	next := join(all[2].p)
	require.Equal(t, []int{1, 1}, []int{next.c.Rank(), next.c.Generation()})
	for disp, want := range []int64{1, 5, 0, 77} {
		v, err := next.w.GetFlush(1, disp)
		require.NoError(t, err)
		require.Equal(t, want, v, "word %d", disp)
	}
	other, err := verbs.Config{MemoryNodes: cfg.MemoryNodes, Job: "other"}.Dial()
	require.NoError(t, err)
	v, err := join(other).w.GetFlush(1, plain)
	require.NoError(t, err)
	require.Zero(t, v, "a window of another job")
	for _, p := range []*verbs.Process{all[0].p, all[2].p, other} {
		require.NoError(t, p.Close())
	}
}
