package btree

import (
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/remote"
	"github.com/rmalock/rmalock/rma"
)

var (
	// ErrTorn is wrapped when a node is half written while its lock is held: a client died in a
	// write, or wrote after it had lost its lease, or the lock does not exclude.
	ErrTorn = errors.New("the node is half written")
	// ErrConfig is wrapped by errors about a Config.
	ErrConfig = errors.New("bad configuration")
)

// A Config describes a tree. All clients pass the same, with their own handle on Locks.
type Config struct {
	// Locks guards nodes by hashes of their names; nil for locks of the tree's own. The tree does
	// not free it. A client must not hold one of its locks when it calls the tree.
	Locks lock.Table
	// Open, if not nil, opens Locks whose words, those of Regions, lie in the tree's window, from a
	// displacement on: then a node's write and the release of its lock are one doorbell. Lock 0 is at
	// host 0, and the table has at least as many locks as there are hosts.
	Open    func(w *rma.Window, at int) (lock.Table, error)
	Regions []rma.Region
	// Own says which locks of the tree's own: Vanilla, the default, or NH.
	Own string
	// NodeLocks is the number of the tree's own locks at each host; 0 means 4,096.
	NodeLocks int
	// Node is the number of words of a node; 0 means 128, which is 1 KB.
	Node int
	// Nodes is the room for nodes at each host, beside what clients keep.
	Nodes int
	// Cache is for copies of inner nodes; nil for one of 256 nodes of the client's own.
	Cache *Cache
}

const (
	minNode   = headerWords + 3*slotWords
	tornReads = 8 // of a node, before a reader takes its lock
)

func (c *Config) validate() error {
	if c.Own == "" {
		c.Own = Vanilla
	}
	if c.NodeLocks == 0 {
		c.NodeLocks = 4096
	}
	if c.Node == 0 {
		c.Node = 128
	}
	if c.Cache == nil {
		c.Cache = NewCache(256)
	}
	switch {
	case c.Own != Vanilla && c.Own != NH:
		return fmt.Errorf("btree: Config.Own is %q, want %q or %q; other locks go into Config.Locks: %w", c.Own, Vanilla, NH, ErrConfig)
	case c.Node < minNode:
		return fmt.Errorf("btree: Config.Node is %d words, want at least %d: %w", c.Node, minNode, ErrConfig)
	case c.NodeLocks < 1:
		return fmt.Errorf("btree: Config.NodeLocks is %d, want at least 1: %w", c.NodeLocks, ErrConfig)
	case c.Nodes < 1:
		return fmt.Errorf("btree: Config.Nodes is %d, want room for at least 1: %w", c.Nodes, ErrConfig)
	}
	return nil
}

// A Tree is one client's handle. It belongs to one goroutine at a time.
type Tree struct {
	cfg   Config
	w     *rma.Window
	heap  *remote.Heap
	locks locker
	root  remote.Ref // as this client has read it last
	tries int        // torn reads of a node before a reader takes its lock

	buf    node // the node read last
	other  node // a new node
	sorted []pair
	batch  []node       // of a scan
	refs   []remote.Ref // of batch

	// Torn counts reads that found a node half written, and Hops steps to a sibling.
	Torn, Hops int64
}

// rootDisp is the displacement of ROOT.
const rootDisp = 0

// New opens a tree. Collective. Its only collective calls are Allocate.
func New(c rma.Comm, cfg Config) (*Tree, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	hosts := max(1, c.MemoryNodes())
	if c.MemoryNodes() == 0 {
		hosts = c.Size()
	}
	size := (cfg.Node + 3) / 4 * 4
	heap, err := remote.New(c, remote.Config{
		Name: "btree", Words: size * (cfg.Nodes + 8*(c.Size()/hosts+1)), Classes: []int{size}, Chunk: 16 * size,
		Regions: append([]rma.Region{
			{Count: 1, Words: []rma.Word{{Name: "ROOT", Class: rma.Far}}},
			{Count: cfg.NodeLocks, Words: []rma.Word{{Name: "NODELOCK", Class: rma.Far}}},
		}, cfg.Regions...),
	})
	if err != nil {
		return nil, fmt.Errorf("btree: %w", err)
	}
	t := &Tree{cfg: cfg, heap: heap, w: heap.Window(), tries: tornReads, buf: make(node, cfg.Node), other: make(node, cfg.Node)}
	return t, t.newLocker(c, rootDisp+1)
}

// Free closes the tree's windows. Collective. It leaves Config.Locks open.
func (t *Tree) Free() error { return errors.Join(t.locks.free(), t.w.Free()) }

// Get finds the value of a key. It takes no lock and one remote operation, where the inner nodes are in
// the Cache. An error wraps ErrTorn, an error of the locks, or one of the transport.
func (t *Tree) Get(key int64) (value int64, there bool, err error) {
	ref, err := t.descend(key, 0)
	if err != nil {
		return 0, false, err
	}
	n, _, err := t.readTo(ref, key)
	if err != nil {
		return 0, false, err
	}
	if i := n.find(key); i >= 0 {
		return n.slot(i)[valueWord], true, nil
	}
	return 0, false, nil
}

// Set gives a key a value, there or not. It takes the lock of a leaf and three round trips without
// competition, where the inner nodes are in the Cache; a node that is full is split. It is complete
// when Set returns: a Get that begins later, of any client, finds the value. An error wraps ErrTorn,
// remote.ErrFull where a split finds no room for a node, an error of the locks, or one of the
// transport. With lock.ErrLeaseLost the value may be there or not.
func (t *Tree) Set(key, value int64) error {
	ref, err := t.descend(checked(key), 0)
	if err != nil {
		return err
	}
	return t.insert(ref, 0, pair{key, value})
}

// Delete takes a key away and reports whether it was there. Cost and errors are those of a Set that
// splits no node.
func (t *Tree) Delete(key int64) (there bool, err error) {
	ref, err := t.descend(key, 0)
	if err != nil {
		return false, err
	}
	if ref, err = t.lockTo(ref, key); err != nil {
		return false, err
	}
	i := t.buf.find(key)
	if i >= 0 {
		t.buf.set(i, 0, 0, false)
		t.putSlot(ref, i)
	}
	return i >= 0, t.locks.unlock(ref, lock.Exclusive)
}

// checked refuses the one key that is none.
func checked(key int64) int64 {
	if key == endKey {
		panic("btree: the largest number is no key")
	}
	return key
}

// findRoot reads ROOT. The first client to find none makes it: a leaf for all keys.
func (t *Tree) findRoot() error {
	v, err := t.w.GetFlush(0, rootDisp)
	if err != nil || v != 0 {
		t.root = remote.Ref(v)
		return err
	}
	t.other.fill(0, 0, firstKey, endKey, 0, 0, nil)
	_, err = t.grow(0)
	return err
}

// grow makes t.other the root in place of another one, and reports whether that was still the
// root. Then t.root is the root.
func (t *Tree) grow(from remote.Ref) (bool, error) {
	ref, err := t.heap.Alloc(t.cfg.Node)
	if err != nil {
		return false, err
	}
	t.w.PutBulk(t.other, ref.Node(), ref.Disp())
	if err := t.w.Flush(ref.Node()); err != nil {
		return false, err
	}
	before, err := t.w.CompareAndSwapFlush(int64(ref), int64(from), 0, rootDisp)
	if err != nil {
		return false, err
	}
	if remote.Ref(before) != from {
		t.heap.Return(ref, t.cfg.Node)
		t.root = remote.Ref(before)
		return false, nil
	}
	t.root = ref
	return true, nil
}

// descend is a node of a level that covers a key, or one to the left of it; 0 if the root is
// lower than the level. Inner nodes may be copies.
func (t *Tree) descend(key int64, level int) (remote.Ref, error) {
	if t.root == 0 {
		if err := t.findRoot(); err != nil {
			return 0, err
		}
	}
	ref := t.root
	for fresh := false; ; {
		n, at, err := t.inner(ref, key)
		if err != nil {
			return 0, err
		}
		if at != ref && ref == t.root && !fresh { // the root has a sibling: there is a new root, or there will be
			fresh = true
			if err := t.findRoot(); err != nil {
				return 0, err
			}
			if t.root != ref {
				ref = t.root
				continue
			}
		}
		switch l := n.level(); {
		case l == level:
			return at, nil
		case l < level:
			if fresh {
				return 0, nil
			}
			fresh = true
			if err := t.findRoot(); err != nil {
				return 0, err
			}
			ref = t.root
			continue
		case l == 1 && level == 0:
			return n.child(key), nil // which the caller reads
		default:
			ref = n.child(key)
		}
	}
}

// inner finds, at a node and its siblings, the one that covers a key: a copy where there is one.
func (t *Tree) inner(ref remote.Ref, key int64) (node, remote.Ref, error) {
	if t.cfg.Cache.get(ref, t.buf) && t.buf.covers(key) {
		return t.buf, ref, nil
	}
	n, at, err := t.readTo(ref, key)
	if err == nil && n.level() > 0 {
		t.cfg.Cache.put(at, n)
		if at != ref {
			t.cfg.Cache.drop(ref)
		}
	}
	return n, at, err
}

// readTo reads a node, and those to the right of it as far as the one that covers a key.
func (t *Tree) readTo(ref remote.Ref, key int64) (node, remote.Ref, error) {
	for {
		if err := t.read(ref, t.buf); err != nil {
			return nil, 0, err
		}
		if t.buf.covers(key) {
			return t.buf, ref, nil
		}
		if ref = t.right(key); ref == 0 {
			return nil, 0, fmt.Errorf("btree: no node covers key %d: %w", key, ErrTorn)
		}
	}
}

// right is the sibling of the node in t.buf, for a key beyond it.
func (t *Tree) right(key int64) remote.Ref {
	if key < t.buf.low() {
		return 0
	}
	t.Hops++
	t.forget(key)
	return t.buf.sibling()
}

// forget drops the copy of the lowest inner node that led to a leaf that no longer has a key.
func (t *Tree) forget(key int64) {
	ref := t.root
	for range 64 {
		if !t.cfg.Cache.get(ref, t.other) || !t.other.covers(key) || t.other.level() == 0 {
			return
		}
		if t.other.level() == 1 {
			t.cfg.Cache.drop(ref)
			return
		}
		ref = t.other.child(key)
	}
}

// read reads a node without a lock. Where it finds one half written again and again it takes
// the lock, so that it ends.
func (t *Tree) read(ref remote.Ref, into node) error {
	for range t.tries {
		t.w.GetBulk(into, ref.Node(), ref.Disp())
		if err := t.w.Flush(ref.Node()); err != nil {
			return err
		}
		if into.whole() {
			return nil
		}
		t.Torn++
	}
	if err := t.locks.lock(ref, lock.Shared); err != nil {
		return err
	}
	err := t.readLocked(ref, into)
	return errors.Join(err, t.locks.unlock(ref, lock.Shared))
}

// readLocked reads a node whose lock the client holds.
func (t *Tree) readLocked(ref remote.Ref, into node) error {
	t.w.GetBulk(into, ref.Node(), ref.Disp())
	if err := t.w.Flush(ref.Node()); err != nil {
		return err
	}
	if !into.whole() {
		return fmt.Errorf("btree: node at host %d, displacement %d: %w", ref.Node(), ref.Disp(), ErrTorn)
	}
	return nil
}
