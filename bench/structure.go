package bench

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"

	"github.com/rmalock/rmalock/cider"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// A structured Workload has its clients work on a data structure that the locks guard, and not
// make visits of their own. Config.Readers is its share of reads, whatever the lock.
type structured interface {
	Workload
	// open opens and fills the structure on c, which may count operations, and its locks.
	// Collective.
	open(c rma.Comm, lck *Lock, cfg *Config) (structure, error)
	// own reports whether a name is of locks of the structure's own.
	own(lock string) bool
}

// A structure is one client's handle.
type structure interface {
	operate(rng *rand.Rand, read bool) error
	verify() error // collective
	free() error   // collective
}

// structured is the config's workload, if it has a structure.
func (c *Config) structured() (structured, bool) {
	if c.Mode != Clients {
		return nil, false
	}
	s, ok := c.Workload.(structured)
	return s, ok
}

// ownLocks reports whether the lock is of the workload's structure.
func (c *Config) ownLocks() bool {
	s, ok := c.structured()
	return ok && s.own(c.Lock)
}

// operator is one rank at a structure.
type operator struct {
	c       rma.Comm
	cfg     *Config
	s       structure
	rng     *rand.Rand
	readers uint64 // of 1<<63
	lost    int64  // operations whose lease ran out
	before  cider.Stats
}

// newOperator opens the structure. Collective.
func newOperator(c, counted rma.Comm, lck *Lock, w structured, cfg *Config) (*operator, error) {
	s, err := w.open(counted, lck, cfg)
	if err = agree(c, cfg, err); err != nil {
		return nil, err
	}
	return &operator{c: c, cfg: cfg, s: s, rng: choices(c, cfg), readers: share(cfg.Readers)}, c.Barrier()
}

func (o *operator) active() bool { return true }

// leave has the client stop working for a while: others may wait for it otherwise, as for blocks
// that it could still read.
func (o *operator) leave() error {
	if s, ok := o.s.(resting); ok {
		return s.rest()
	}
	return nil
}

// A resting structure's clients say so when they stop working for a while.
type resting interface{ rest() error }

func (o *operator) begin() {
	o.lost = 0
	if s, ok := o.s.(tallied); ok {
		o.before = s.counts()
	}
}

// A tallied structure counts what its clients do.
type tallied interface{ counts() cider.Stats }

// counts are what a run's clients have done since begin, together: at rank 0, nil where they are
// not counted. Collective.
func counts(c rma.Comm, w runner) (*cider.Stats, error) {
	o, ok := w.(*operator)
	if !ok {
		return nil, nil
	}
	s, ok := o.s.(tallied)
	if !ok {
		return nil, nil
	}
	now, sum := s.counts(), cider.Stats{}
	mine, before, total := statWords(&now), statWords(&o.before), statWords(&sum)
	send := make([]int64, len(mine))
	for i := range send {
		send[i] = *mine[i] - *before[i]
	}
	all, err := c.Allgather(send)
	for i, n := range all {
		*total[i%len(total)] += n
	}
	return &sum, err
}

// statWords are the fields of Stats.
func statWords(s *cider.Stats) (out []*int64) {
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		out = append(out, v.Field(i).Addr().Interface().(*int64))
	}
	return out
}

func (o *operator) verify() error { return o.s.verify() }
func (o *operator) free() error   { return o.s.free() }

func (o *operator) taken(runs int64) (acquires, aborts int64, byLock lockSamples) {
	return runs, o.lost, nil
}

func (o *operator) run(n int) error {
	for range n {
		err := o.s.operate(o.rng, o.readers > 0 && o.rng.Uint64()>>1 < o.readers)
		if errors.Is(err, lock.ErrLeaseLost) {
			o.lost++
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *operator) sample() (t timing, err error) {
	begin := o.c.Now()
	err = o.run(1)
	t.now = o.c.Now()
	t.ns = t.now - begin
	return t, err
}

// A stamp is a value that tells its writer and which of the writer's it is.
const stampBits = 40

// stamps are what a client knows of the values of objects: of each writer's it must not see an
// older one after a newer one.
type stamps struct {
	rank  int64
	ranks int
	count int64
	wrote map[int]int64    // by object: the last stamp
	seen  map[[2]int]int64 // by object and writer
}

func newStamps(c rma.Comm) stamps {
	return stamps{rank: int64(c.Rank()), ranks: c.Size(), wrote: map[int]int64{}, seen: map[[2]int]int64{}}
}

// next is a new stamp for an object.
func (s *stamps) next(id int) int64 {
	s.count++
	v := (s.rank+1)<<stampBits | s.count
	s.wrote[id] = v
	return v
}

// check looks at a stamp that was read. 0 is of an object that was never written.
func (s *stamps) check(id int, v int64) error {
	if v == 0 {
		return nil
	}
	writer := int(v >> stampBits)
	key := [2]int{id, writer}
	if writer < 1 || writer > s.ranks || v < s.seen[key] {
		return fmt.Errorf("object %d has value %#x after %#x of the same writer: %w", id, v, s.seen[key], ErrExclusion)
	}
	s.seen[key] = v
	return nil
}

// last is each rank's last stamps, by rank and object. Collective.
func (s *stamps) last(c rma.Comm) ([]map[int]int64, error) {
	b := make([]byte, 0, 16*len(s.wrote))
	for id, v := range s.wrote {
		b = appendWord(appendWord(b, int64(id)), v)
	}
	all, err := rma.AllgatherBytes(c, b)
	if err != nil || c.Rank() != 0 {
		return nil, err
	}
	out := make([]map[int]int64, len(all))
	for r, b := range all {
		out[r] = map[int]int64{}
		for ; len(b) >= 16; b = b[16:] {
			out[r][int(word(b))] = word(b[8:])
		}
	}
	return out, nil
}

// final looks at the value of an object when all have ended: no later one of the same writer
// may be lost.
func final(id int, v int64, last []map[int]int64) error {
	written := false
	for _, m := range last {
		_, ok := m[id]
		written = written || ok
	}
	if v == 0 && !written {
		return nil
	}
	writer := int(v>>stampBits) - 1
	if writer < 0 || writer >= len(last) || last[writer][id] != v {
		return fmt.Errorf("object %d ends with value %#x, which is not the last one of its writer: %w", id, v, ErrExclusion)
	}
	return nil
}
