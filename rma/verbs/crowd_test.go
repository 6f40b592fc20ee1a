//go:build cgo && verbs

package verbs_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rmalock/rmalock/art"
	"github.com/rmalock/rmalock/btree"
	"github.com/rmalock/rmalock/cider"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/race"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/verbs"
	"github.com/rmalock/rmalock/store"
	"github.com/stretchr/testify/require"
)

// A crowd is several processes of clients that come and go, at work on one thing on the memory
// nodes. Some crowds have a process killed in the middle.
type crowd struct {
	MemoryNodes []string
	Token       []byte
	Job         string // of the windows
	Work        string // "lock", "store", "btree", "cider", "race" or "art"
	Lock        string // by name
	Keys, Ops   int    // Ops are those of each client
	First, Per  int    // number of the process's first client, from 1 on; clients of a process
}

const crowdPer = 2 // clients of a process

// crowdNodes are the memory nodes of the environment, which may be on another machine, or one of
// the test's own.
func crowdNodes(t *testing.T) verbs.Config {
	t.Helper()
	needDevice(t)
	cfg, err := verbs.FromEnvironment()
	require.NoError(t, err)
	if len(cfg.MemoryNodes) == 0 {
		cfg.MemoryNodes = memoryNodes(t, 1, 1<<23)
	}
	return cfg
}

// crowdLease is long where a guest may stand still for what else its machine does.
func crowdLease() time.Duration {
	if os.Getenv("GUEST_CLOCK") == "instructions" {
		return 200 * time.Millisecond
	}
	return 3 * time.Second
}

// table opens a lock with leases that a guest keeps.
func (k *crowd) table(c rma.Comm, n int) (lock.Table, error) {
	info, err := lock.Lookup(k.Lock)
	if err != nil {
		return nil, err
	}
	s := lock.Setting{Locks: n, Params: map[string]string{}}
	for _, p := range info.Params {
		switch {
		case p.Name == "LEASE" && info.Name == "drtm": // a writer waits for the leases of readers
			s.Params["LEASE"] = "50ms"
		case p.Name == "LEASE":
			s.Params["LEASE"] = crowdLease().String()
		}
	}
	return info.With(c, s)
}

// A keyed thing has a word for each key.
type keyed interface {
	get(key int) (int64, bool, error)
	set(key int, v int64) error
}

type inStore struct{ *store.Store }

func (s inStore) get(key int) (int64, bool, error) {
	b, _, there, err := s.Get(context.Background(), key, nil)
	if err != nil || !there || len(b) != 8 {
		return 0, there, err
	}
	return int64(binary.LittleEndian.Uint64(b)), true, nil
}

func (s inStore) set(key int, v int64) error {
	_, err := s.Set(context.Background(), key, binary.LittleEndian.AppendUint64(nil, uint64(v)))
	return err
}

type inTree struct{ *btree.Tree }

func (t inTree) get(key int) (int64, bool, error) { return t.Get(int64(key)) }
func (t inTree) set(key int, v int64) error       { return t.Set(int64(key), v) }

type inRace struct{ *race.Table }

func (t inRace) get(key int) (int64, bool, error) {
	b, there, err := t.Search(binary.BigEndian.AppendUint64(nil, uint64(key)), nil)
	if err != nil || !there || len(b) != 8 {
		return 0, there, err
	}
	return int64(binary.LittleEndian.Uint64(b)), true, nil
}

func (t inRace) set(key int, v int64) error {
	return t.Put(binary.BigEndian.AppendUint64(nil, uint64(key)), binary.LittleEndian.AppendUint64(nil, uint64(v)))
}

type inART struct{ *art.Tree }

func (t inART) get(key int) (int64, bool, error) {
	b, there, err := t.Search(binary.BigEndian.AppendUint64(nil, uint64(key)), nil)
	if err != nil || !there || len(b) != 8 {
		return 0, there, err
	}
	return int64(binary.LittleEndian.Uint64(b)), true, nil
}

func (t inART) set(key int, v int64) error {
	return t.Put(binary.BigEndian.AppendUint64(nil, uint64(key)), binary.LittleEndian.AppendUint64(nil, uint64(v)))
}

type inCider struct{ *cider.Store }

func (s inCider) get(key int) (int64, bool, error) {
	b, there, err := s.Search(key, nil)
	if err != nil || !there || len(b) != 8 {
		return 0, there, err
	}
	return int64(binary.LittleEndian.Uint64(b)), true, nil
}

func (s inCider) set(key int, v int64) error {
	return s.Put(key, binary.LittleEndian.AppendUint64(nil, uint64(v)))
}

// open opens the thing of keys.
func (k *crowd) open(c rma.Comm) (keyed, error) {
	policy := cider.Policy{Lease: int64(crowdLease())}
	switch k.Work {
	case "cider":
		s, err := cider.New(c, cider.Config{Keys: k.Keys, Policy: policy})
		return inCider{s}, err
	case "race":
		t, err := race.New(c, race.Config{Keys: k.Keys, Policy: policy})
		return inRace{t}, err
	case "art":
		t, err := art.New(c, art.Config{Keys: k.Keys, Policy: policy})
		return inART{t}, err
	}
	l, err := k.table(c, 1000)
	if err != nil {
		return nil, err
	}
	if k.Work == "store" {
		s, err := store.New(c, store.Config{Objects: k.Keys, Locks: l, Most: 64})
		return inStore{s}, err
	}
	t, err := btree.New(c, btree.Config{Locks: l, Nodes: k.Keys/16 + 100})
	return inTree{t}, err
}

// A value says which client wrote it, and in which of its operations; client 0 loads.
func crowdValue(client, op int) int64 { return int64(client)<<32 | int64(op) }
func crowdWrote(v int64) (client, op int) {
	return int(v >> 32), int(v & (1<<32 - 1))
}

// drawn is operation op of a client: half are writes, and some keys are far more used than others.
func (k *crowd) drawn(client, op int) (key int, write bool) {
	rng := rand.New(rand.NewPCG(uint64(client), uint64(op)))
	u := rng.Float64()
	return int(float64(k.Keys) * u * u * u), rng.IntN(2) == 0
}

// A visitor checks what one client finds: no value that was never written there, and none of a
// client's that is older than what it has found there before.
type visitor struct {
	k    *crowd
	m    keyed
	seen map[[2]int]int // op by key and client
}

func (v *visitor) look(key int) (client, op int, err error) {
	value, there, err := v.m.get(key)
	if err != nil {
		return 0, 0, err
	}
	client, op = crowdWrote(value)
	at, write := key, true
	if client > 0 {
		at, write = v.k.drawn(client, op)
	}
	switch {
	case !there:
		return 0, 0, fmt.Errorf("key %d is lost", key)
	case at != key || !write:
		return 0, 0, fmt.Errorf("key %d has %#x, which no client has written there", key, value)
	case op < v.seen[[2]int{key, client}]:
		return 0, 0, fmt.Errorf("key %d has operation %d of client %d, after operation %d of it", key, op, client, v.seen[[2]int{key, client}])
	}
	v.seen[[2]int{key, client}] = op
	return client, op, nil
}

// unsure reports whether an operation may have had its effect or not: the client's lease ran out in it.
func unsure(err error) bool { return errors.Is(err, lock.ErrLeaseLost) }

// client does the operations of one client, and tells of each when it is over.
func (k *crowd) client(c rma.Comm, client int, tell func(string)) error {
	if k.Work == "lock" {
		return k.count(c, client, tell)
	}
	m, err := k.open(c)
	if err != nil {
		return err
	}
	v := &visitor{k: k, m: m, seen: map[[2]int]int{}}
	tell(fmt.Sprintf("client %d did 0", client))
	for op := 1; op <= k.Ops; op++ {
		key, write := k.drawn(client, op)
		if write {
			err = m.set(key, crowdValue(client, op))
		} else {
			_, _, err = v.look(key)
		}
		switch {
		case unsure(err):
			tell(fmt.Sprintf("client %d unsure %d", client, op))
		case err != nil:
			return fmt.Errorf("operation %d of client %d: %w", op, client, err)
		}
		tell(fmt.Sprintf("client %d did %d", client, op))
	}
	return rest(m)
}

// rest ends a section that a client is in between operations.
func rest(m keyed) error {
	if s, ok := m.(interface{ Rest() error }); ok {
		return s.Rest()
	}
	return nil
}

const crowdLocks = 2

// counters are two words for each lock: both count the acquires.
func (k *crowd) counters(c rma.Comm) (*rma.Window, error) {
	spec := rma.DataSpec("counters", 2*crowdLocks)
	spec.Hosts = rma.MemoryNodes
	return c.Allocate(spec)
}

// count counts acquires of a lock in words that it guards.
func (k *crowd) count(c rma.Comm, client int, tell func(string)) error {
	w, err := k.counters(c)
	if err != nil {
		return err
	}
	l, err := k.table(c, crowdLocks)
	if err != nil {
		return err
	}
	tell(fmt.Sprintf("client %d did 0", client))
	for op := 1; op <= k.Ops; op++ {
		id := (client + op) % crowdLocks
		err := l.Lock(context.Background(), id, lock.Exclusive)
		if err != nil && !errors.Is(err, lock.ErrOwnerDied) {
			return fmt.Errorf("acquire %d of client %d: %w", op, client, err)
		}
		a, err := w.GetFlush(0, 2*id)
		if err != nil {
			return err
		}
		w.Put(a+1, 0, 2*id)
		w.Put(a+1, 0, 2*id+1)
		if err := w.Flush(0); err != nil {
			return err
		}
		switch err := l.Unlock(id, lock.Exclusive); {
		case unsure(err):
			tell(fmt.Sprintf("client %d unsure %d", client, op))
		case err != nil:
			return fmt.Errorf("release %d of client %d: %w", op, client, err)
		}
		tell(fmt.Sprintf("client %d did %d", client, op))
	}
	return nil
}

// TestChildCrowd is one process of a crowd.
func TestChildCrowd(t *testing.T) {
	if os.Getenv("RMALOCK_CHILD") != "crowd" {
		t.Skip("a part of TestCrowd")
	}
	var k crowd
	require.NoError(t, json.Unmarshal([]byte(os.Getenv("RMALOCK_CROWD")), &k))
	p, err := verbs.Config{MemoryNodes: k.MemoryNodes, Token: k.Token, Job: k.Job, Patience: 20 * time.Second}.Dial()
	require.NoError(t, err)
	var mu sync.Mutex
	errs := make([]error, k.Per)
	var all sync.WaitGroup
	for i := range k.Per {
		all.Go(func() {
			c, err := p.Join()
			if err == nil {
				err = k.client(c, k.First+i, func(line string) {
					mu.Lock()
					defer mu.Unlock()
					fmt.Println(line)
				})
			}
			errs[i] = err
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		fmt.Println("failed:", strings.ReplaceAll(err.Error(), "\n", "; "))
		t.FailNow()
	}
	require.NoError(t, p.Close())
}

// A crowdChild is a process, and what it has told.
type crowdChild struct {
	cmd  *exec.Cmd
	over chan error

	mu     sync.Mutex
	did    map[int]int
	unsure map[int]map[int]bool
	other  []string
}

func (h *crowdChild) sum() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, did := range h.did {
		n += did
	}
	return n
}

func (h *crowdChild) hear(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var client, op int
	if n, _ := fmt.Sscanf(line, "client %d did %d", &client, &op); n == 2 {
		h.did[client] = op
	} else if n, _ := fmt.Sscanf(line, "client %d unsure %d", &client, &op); n == 2 {
		if h.unsure[client] == nil {
			h.unsure[client] = map[int]bool{}
		}
		h.unsure[client][op] = true
	} else {
		h.other = append(h.other, line)
	}
}

func (k crowd) start(t *testing.T, number int) *crowdChild {
	t.Helper()
	k.First, k.Per = 1+number*crowdPer, crowdPer
	body, err := json.Marshal(k)
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0], "-test.run=^TestChildCrowd$")
	cmd.Env = append(os.Environ(), "RMALOCK_CHILD=crowd", "RMALOCK_CROWD="+string(body))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = cmd.Stdout
	h := &crowdChild{cmd: cmd, over: make(chan error, 1), did: map[int]int{}, unsure: map[int]map[int]bool{}}
	require.NoError(t, cmd.Start())
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			h.hear(s.Text())
		}
		h.over <- cmd.Wait()
	}()
	return h
}

// run starts so many processes, kills the first of them when it has done a third of its
// operations if it is to die, and returns when the others are through.
func (k crowd) run(t *testing.T, processes int, dies bool) []*crowdChild {
	t.Helper()
	var children []*crowdChild
	for i := range processes {
		children = append(children, k.start(t, i))
	}
	if dies {
		h := children[0]
		for h.sum() < crowdPer*k.Ops/3 {
			select {
			case err := <-h.over:
				t.Fatalf("the process that is to be killed has ended: %v\n%s", err, strings.Join(h.other, "\n"))
			case <-time.After(time.Millisecond):
			}
		}
		require.NoError(t, h.cmd.Process.Kill())
		<-h.over
		t.Logf("killed after %d of %d operations", h.sum(), crowdPer*k.Ops)
		require.Less(t, h.sum(), crowdPer*k.Ops)
	}
	for i, h := range children {
		if i == 0 && dies {
			continue
		}
		if err := <-h.over; err != nil {
			t.Errorf("process %d: %v\n%s", i, err, strings.Join(h.other, "\n"))
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return children
}

// TestCrowdOfLocks: every lock that clients may open, between processes, with words that it
// guards. Where the lock recovers one of the processes is killed: the others go on, and no
// count is lost.
func TestCrowdOfLocks(t *testing.T) {
	cfg := crowdNodes(t)
	ops := 200
	if testing.Short() {
		ops = 40
	}
	for _, info := range lock.All() {
		t.Run(info.Name, func(t *testing.T) {
			if info.Serves {
				t.Skip("its servers are ranks that start with the others")
			}
			k := crowd{MemoryNodes: cfg.MemoryNodes, Token: cfg.Token, Job: "crowd " + info.Name, Work: "lock", Lock: info.Name, Ops: ops}
			p, err := verbs.Config{MemoryNodes: k.MemoryNodes, Token: k.Token, Job: k.Job, Patience: 20 * time.Second}.Dial()
			require.NoError(t, err)
			c, err := p.Join()
			require.NoError(t, err)
			l, err := k.table(c, crowdLocks)
			if errors.Is(err, errors.ErrUnsupported) {
				require.NoError(t, p.Close())
				t.Skip(err)
			}
			require.NoError(t, err)
			w, err := k.counters(c)
			require.NoError(t, err)
			children := k.run(t, 2, info.Recovers)

			least, most, slow := 0, 0, 0
			for i, h := range children {
				least += h.sum()
				most += h.sum()
				if i == 0 && info.Recovers {
					most += crowdPer // what was not told yet
				}
				for _, ops := range h.unsure {
					slow += len(ops)
				}
			}
			got := 0
			for id := range crowdLocks {
				err := l.Lock(context.Background(), id, lock.Exclusive)
				require.True(t, err == nil || errors.Is(err, lock.ErrOwnerDied), "%v", err)
				n, err := w.GetFlush(0, 2*id)
				require.NoError(t, err)
				got += int(n)
				require.NoError(t, l.Unlock(id, lock.Exclusive))
			}
			t.Logf("the counters say %d, the clients %d to %d; %d leases lost", got, least, most, slow)
			require.LessOrEqual(t, got, most)
			if slow == 0 {
				require.GreaterOrEqual(t, got, least)
			}
			require.NoError(t, errors.Join(l.Free(), p.Close()))
		})
	}
}

// TestCrowdOfKeys: the object store and the tree under locks that recover, and the key-value
// stores of cider, race and art, used by several processes of which one is killed. Each key has at the end
// the last write of some client, and none that was never written there.
func TestCrowdOfKeys(t *testing.T) {
	cfg := crowdNodes(t)
	keys, ops := 100_000, 1000
	if testing.Short() {
		keys, ops = 500, 150
	}
	for _, k := range []crowd{
		{Work: "cider"}, {Work: "race"}, {Work: "art"},
		{Work: "store", Lock: "dslr"}, {Work: "store", Lock: "declock"}, {Work: "store", Lock: "shiftlock"},
		{Work: "btree", Lock: "dslr"}, {Work: "btree", Lock: "declock"}, {Work: "btree", Lock: "shiftlock"},
	} {
		t.Run(strings.TrimSuffix(k.Work+"/"+k.Lock, "/"), func(t *testing.T) {
			k.MemoryNodes, k.Token, k.Job = cfg.MemoryNodes, cfg.Token, fmt.Sprintf("crowd %s %s %d", k.Work, k.Lock, keys)
			k.Keys, k.Ops = keys, ops
			if k.Lock != "" {
				k.Keys = min(keys, 10_000)
			}
			p, err := verbs.Config{MemoryNodes: k.MemoryNodes, Token: k.Token, Job: k.Job, Patience: 20 * time.Second}.Dial()
			require.NoError(t, err)
			began := time.Now()
			k.load(t, p)
			t.Logf("%d keys loaded in %v", k.Keys, time.Since(began))
			began = time.Now()
			children := k.run(t, 3, true)
			t.Logf("operations took %v", time.Since(began))
			k.verify(t, p, children)
			require.NoError(t, p.Close())
		})
	}
}

// each does something with all keys, by several clients: between two guests one of them waits for
// answers most of the time.
func (k *crowd) each(t *testing.T, p *verbs.Process, do func(v *visitor, key int) error) {
	t.Helper()
	const clients = 16
	var all sync.WaitGroup
	errs := make([]error, clients)
	for i := range clients {
		all.Go(func() {
			errs[i] = func() error {
				c, err := p.Join()
				if err != nil {
					return err
				}
				m, err := k.open(c)
				if err != nil {
					return err
				}
				v := &visitor{k: k, m: m, seen: map[[2]int]int{}}
				for key := i; key < k.Keys; key += clients {
					if err := do(v, key); err != nil {
						return fmt.Errorf("key %d: %w", key, err)
					}
				}
				return errors.Join(rest(m), c.Leave())
			}()
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
}

// load gives all keys a value.
func (k *crowd) load(t *testing.T, p *verbs.Process) {
	t.Helper()
	k.each(t, p, func(v *visitor, key int) error { return v.m.set(key, 0) })
}

// verify reads all keys.
func (k *crowd) verify(t *testing.T, p *verbs.Process, children []*crowdChild) {
	t.Helper()
	last := map[[2]int]int{} // the last write by client and key that is known to have ended
	wrote := map[int]bool{}
	slow := 0
	for _, h := range children {
		for client, did := range h.did {
			for op := 1; op <= did; op++ {
				if h.unsure[client][op] {
					slow++
					continue
				}
				if key, write := k.drawn(client, op); write {
					last[[2]int{client, key}] = op
					wrote[key] = true
				}
			}
		}
	}
	began := time.Now()
	k.each(t, p, func(v *visitor, key int) error {
		client, op, err := v.look(key)
		switch {
		case err != nil:
			return err
		case client == 0 && wrote[key]:
			return errors.New("it has the value that it was loaded with")
		case op < last[[2]int{client, key}]:
			return fmt.Errorf("it has a value of client %d that it has replaced itself", client)
		}
		return nil
	})
	t.Logf("%d keys verified in %v, %d of them written; %d leases lost", k.Keys, time.Since(began), len(wrote), slow)
	c, err := p.Join()
	require.NoError(t, err)
	m, err := k.open(c)
	require.NoError(t, err)
	if tree, ok := m.(inTree); ok {
		n := 0
		require.NoError(t, tree.Check(func(int64, int64) { n++ }))
		require.Equal(t, k.Keys, n)
	}
	require.NoError(t, errors.Join(rest(m), c.Leave()))
}
