package check

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// ErrInadmissible is wrapped where no reader-writer lock permits a history.
var ErrInadmissible = errors.New("the history is not one of a lock")

// A Script is what ranks do with a table of locks and with the words that each lock
// guards, drawn at random from a seed. Run does it on any backend and machine; whatever
// the lock, the backend and the machine, the history is admissible.
type Script struct {
	Seed    uint64
	Locks   int
	Words   int // guarded by each lock
	Visits  int // of each rank
	Writers int // of a hundred visits
}

// A Visit is one acquire of a history.
type Visit struct {
	Rank, Lock   int
	Mode         lock.Mode
	Enter, Leave int64   // tickets of the lock, drawn after Lock and before Unlock
	Read         []int64 // what the visitor found in the words
	Wrote        []int64 // what it left in each word, 0 if it did not write it
}

// A History is all visits, those of a rank in their order, and what the words held at
// the end.
type History struct {
	Visits []Visit
	Final  [][]int64 // by lock
}

func (s *Script) validate() error {
	if s.Locks < 1 || s.Words < 1 || s.Visits < 1 || s.Writers < 0 || s.Writers > 100 {
		return fmt.Errorf("check: a script of %d locks, %d words, %d visits and %d writers in a hundred; want 1 and more of each, and 0 to 100: %w",
			s.Locks, s.Words, s.Visits, s.Writers, lock.ErrConfig)
	}
	return nil
}

// Run does a script and returns its history, the same at all ranks. Collective.
func (s Script) Run(c rma.Comm, info lock.Info) (History, error) {
	if err := s.validate(); err != nil {
		return History{}, err
	}
	table, err := info.Open(c, s.Locks, 0)
	if err != nil {
		return History{}, err
	}
	data, err := c.Allocate(rma.DataSpec("guarded", s.Locks*s.Words))
	if err != nil {
		return History{}, err
	}
	tickets, err := c.Allocate(rma.CounterSpec("tickets", s.Locks))
	if err != nil {
		return History{}, err
	}
	a := &actor{s: s, rank: c.Rank(), size: c.Size(), table: table, data: data, tickets: tickets}
	err = a.act(info.Shared)
	if err := rma.Agree(c, err); err != nil {
		return History{}, err
	}
	h, err := a.history(c)
	if err != nil {
		return History{}, err
	}
	return h, errors.Join(tickets.Free(), data.Free(), table.Free())
}

// actor is one rank's part in a script.
type actor struct {
	s             Script
	rank, size    int
	table         lock.Table
	data, tickets *rma.Window
	did           []Visit
}

func (a *actor) act(shared bool) error {
	rng := rand.New(rand.NewPCG(a.s.Seed, uint64(a.rank)))
	for i := range a.s.Visits {
		v := Visit{Rank: a.rank, Lock: rng.IntN(a.s.Locks), Wrote: make([]int64, a.s.Words)}
		if rng.IntN(100) >= a.s.Writers && shared {
			v.Mode = lock.Shared
		}
		for w := range v.Wrote {
			if rng.IntN(3) > 0 && v.Mode == lock.Exclusive {
				v.Wrote[w] = int64(a.rank*a.s.Visits+i)*int64(a.s.Words) + int64(w) + 1 // unique
			}
		}
		if err := a.visit(&v); err != nil {
			return err
		}
		a.did = append(a.did, v)
	}
	return nil
}

// visit takes the lock, looks, writes and leaves. The words lie at another rank than
// the tickets, and neither at the lock's home if there are ranks enough.
func (a *actor) visit(v *Visit) error {
	host, counter, base := (v.Lock+1)%a.size, (v.Lock+2)%a.size, v.Lock*a.s.Words
	if err := a.table.Lock(context.Background(), v.Lock, v.Mode); err != nil {
		return err
	}
	var err error
	if v.Enter, err = a.tickets.FetchAndOpFlush(1, counter, v.Lock, rma.Sum); err != nil {
		return err
	}
	v.Read = make([]int64, a.s.Words)
	a.data.GetBulk(v.Read, host, base)
	if err := a.data.Flush(host); err != nil {
		return err
	}
	for w, x := range v.Wrote {
		if x != 0 {
			a.data.Put(x, host, base+w)
		}
	}
	if err := a.data.Flush(host); err != nil {
		return err
	}
	if v.Leave, err = a.tickets.FetchAndOpFlush(1, counter, v.Lock, rma.Sum); err != nil {
		return err
	}
	return a.table.Unlock(v.Lock, v.Mode)
}

// history puts together what all ranks did. Collective.
func (a *actor) history(c rma.Comm) (History, error) {
	each := 4 + 2*a.s.Words
	mine := make([]int64, 0, len(a.did)*each)
	for _, v := range a.did {
		mine = append(mine, int64(v.Lock), int64(v.Mode), v.Enter, v.Leave)
		mine = append(append(mine, v.Read...), v.Wrote...)
	}
	all, err := c.Allgather(mine)
	if err != nil {
		return History{}, err
	}
	var h History
	for i := 0; i < len(all); i += each {
		v := all[i : i+each]
		h.Visits = append(h.Visits, Visit{
			Rank: i / len(mine), Lock: int(v[0]), Mode: lock.Mode(v[1]), Enter: v[2], Leave: v[3],
			Read: v[4 : 4+a.s.Words], Wrote: v[4+a.s.Words:],
		})
	}
	for id := range a.s.Locks {
		final := make([]int64, a.s.Words)
		host := (id + 1) % a.size
		a.data.GetBulk(final, host, id*a.s.Words)
		if err := a.data.Flush(host); err != nil {
			return History{}, err
		}
		h.Final = append(h.Final, final)
	}
	return h, c.Barrier()
}

// Admissible reports what in a history no lock permits: tickets drawn twice or not at
// all, visitors who were in together and may not, a rank whose visits come in another
// order than its own, and words that are not what the last writer left.
func (h History) Admissible() error {
	last := map[int]map[int]int64{} // by rank and lock: the ticket that it left with
	locks := make([][]*Visit, len(h.Final))
	for i := range h.Visits {
		v := &h.Visits[i]
		if v.Lock < 0 || v.Lock >= len(locks) || len(v.Read) != len(h.Final[v.Lock]) || len(v.Wrote) != len(v.Read) {
			return fmt.Errorf("%w: %v is of no lock that there is", ErrInadmissible, *v)
		}
		locks[v.Lock] = append(locks[v.Lock], v)
		if last[v.Rank] == nil {
			last[v.Rank] = map[int]int64{}
		}
		if before, ok := last[v.Rank][v.Lock]; ok && v.Enter <= before {
			return fmt.Errorf("%w: rank %d left lock %d with ticket %d and entered again with %d", ErrInadmissible, v.Rank, v.Lock, before, v.Enter)
		}
		last[v.Rank][v.Lock] = v.Leave
	}
	for id, visits := range locks {
		if err := admissible(visits, h.Final[id]); err != nil {
			return fmt.Errorf("%w: lock %d: %w", ErrInadmissible, id, err)
		}
	}
	return nil
}

// admissible looks at the visits to one lock.
func admissible(visits []*Visit, final []int64) error {
	seen := make([]bool, 2*len(visits))
	for _, v := range visits {
		for _, n := range []int64{v.Enter, v.Leave} {
			if n < 0 || n >= int64(len(seen)) || seen[n] {
				return fmt.Errorf("rank %d drew ticket %d of %d, which is out of range or drawn twice", v.Rank, n, len(seen))
			}
			seen[n] = true
		}
		if v.Leave < v.Enter {
			return fmt.Errorf("rank %d left with ticket %d, before it entered with %d", v.Rank, v.Leave, v.Enter)
		}
	}
	slices.SortFunc(visits, func(a, b *Visit) int { return int(a.Enter - b.Enter) })
	holds := make([]int64, len(final))
	var writer, reader *Visit // of those who have come so far, the ones who left last
	for _, v := range visits {
		if writer != nil && writer.Leave > v.Enter {
			return fmt.Errorf("rank %d (%v) entered with ticket %d, while rank %d was in exclusively, from %d to %d", v.Rank, v.Mode, v.Enter, writer.Rank, writer.Enter, writer.Leave)
		}
		if v.Mode == lock.Exclusive && reader != nil && reader.Leave > v.Enter {
			return fmt.Errorf("rank %d entered exclusively with ticket %d, while rank %d was in, from %d to %d", v.Rank, v.Enter, reader.Rank, reader.Enter, reader.Leave)
		}
		if !slices.Equal(v.Read, holds) {
			return fmt.Errorf("rank %d (%v, tickets %d to %d) read %v, the last writers left %v", v.Rank, v.Mode, v.Enter, v.Leave, v.Read, holds)
		}
		if v.Mode == lock.Shared {
			if reader == nil || v.Leave > reader.Leave {
				reader = v
			}
			continue
		}
		writer = v
		for w, x := range v.Wrote {
			if x != 0 {
				holds[w] = x
			}
		}
	}
	if !slices.Equal(final, holds) {
		return fmt.Errorf("the words hold %v at the end, the last writers left %v", final, holds)
	}
	return nil
}
