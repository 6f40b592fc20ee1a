package race

import (
	"errors"
	"testing"

	"github.com/rmalock/rmalock/cider"
	"github.com/rmalock/rmalock/internal/kvtest"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// naive is a Table with one mistake.
type naive struct {
	asMap
	blind   bool // an insert does not look again
	lowest  bool // an insert is there at once; of two the one in the lower slot stays, as in RACE
	trusts  bool // a search does not look at headers
	credits bool // what is moved stands for updates in the queue
}

func (m naive) Get(key int64) (int64, bool, error) {
	t := m.Table
	if !m.trusts {
		return m.asMap.Get(key)
	}
	if err := t.begin(); err != nil {
		return 0, false, err
	}
	t.aim(number(key))
	if err := t.read(&t.img, t.find(t.to.hash)); err != nil {
		return 0, false, err
	}
	_, b, err := t.same(&t.img, 0, committed)
	if b == nil || err != nil {
		return 0, false, err
	}
	return asNumber(value(b)), true, nil
}

func (m naive) Insert(key, value int64) (bool, error) {
	t := m.Table
	if m.credits {
		return m.Table.Insert(number(key), number(value))
	}
	if !m.blind && !m.lowest {
		return m.asMap.Insert(key, value)
	}
	if err := t.begin(); err != nil {
		return false, err
	}
	t.aim(number(key))
	t.write = write{t: t, value: number(value)}
	if err := t.write.put(); err != nil {
		return false, err
	}
	for {
		if err := t.settle(&t.img); err != nil {
			return false, err
		}
		if i, _, err := t.same(&t.img, 0, committed); i >= 0 || err != nil {
			return false, err
		}
		i := t.room(&t.img)
		host, _ := t.place(t.img.segment)
		at, was := t.disp(&t.img, i), t.img.w[i]
		w := t.pointer(t.write.ref, t.write.words, t.to.print) | was
		found, err := t.w.CompareAndSwapFlush(w, was, host, at)
		if err != nil {
			return false, err
		}
		if found != was {
			continue
		}
		if m.blind {
			return true, nil
		}
		return m.stays(host, at)
	}
}

// stays removes all but the lowest of the slots with the key, and reports whether that is at.
func (m naive) stays(host, at int) (bool, error) {
	t := m.Table
	if err := t.read(&t.img, t.img.segment); err != nil {
		return false, err
	}
	least := at
	for pass := range 2 {
		for from := 0; ; {
			i, _, err := t.same(&t.img, from, committed)
			if err != nil {
				return false, err
			}
			if i < 0 {
				break
			}
			from = i + 1
			if d := t.disp(&t.img, i); pass == 0 {
				least = min(least, d)
			} else if d != least {
				if _, err := t.w.CompareAndSwapFlush(gone(t.img.w[i]), t.img.w[i], host, d); err != nil {
					return false, err
				}
			}
		}
	}
	return least == at, nil
}

// Set splits segment 0, by a client that does not say that it moves keys.
func (m naive) Set(key, value int64) error {
	t := m.Table
	if !m.credits {
		return m.asMap.Set(key, value)
	}
	if err := t.begin(); err != nil {
		return err
	}
	host, at := t.directory(0)
	if _, err := t.w.CompareAndSwapFlush(splits.With(opened(0, 0), 1), 0, host, at); err != nil {
		return err
	}
	host, base := t.place(0)
	for b := range groupBuckets {
		if err := t.move(0, 0, b); err != nil {
			return err
		}
		for i := 1; i < t.width; i++ {
			w, err := t.w.GetFlush(host, base+b*t.width+i)
			if err != nil {
				return err
			}
			if !empty(w) && state.Get(w) == frozen {
				t.clear = write{t: t, p: w, host: host, deletes: true, clears: true}
				if _, err := t.sync.Change(t.slotAt(0, b, i), w, &t.clear, true); err != nil {
					return err
				}
			}
		}
	}
	if err := t.finish(0, 0); err != nil {
		return err
	}
	return m.asMap.Set(key, value)
}

// altered is a Transport with other operations, and other results of bulk reads.
type altered struct {
	rma.Transport
	issue func(o *rma.Operation)
	read  func(words []int64)
	reads *[][]int64
}

func (x altered) Issue(o rma.Operation) {
	if x.issue != nil {
		x.issue(&o)
	}
	if o.Kind == rma.KindGetBulk && x.read != nil && o.Disp < 4*groupBuckets*2 { // of buckets
		*x.reads = append(*x.reads, o.Data)
	}
	x.Transport.Issue(o)
}

func (x altered) Flush(target int, r *rma.Results) (int, error) {
	n, err := x.Transport.Flush(target, r)
	for _, words := range *x.reads {
		x.read(words)
	}
	*x.reads = (*x.reads)[:0]
	return n, err
}

// TestNaive: a search finds what is wrong with each mistake.
func TestNaive(t *testing.T) {
	goes, stays := pair(0, 1), pair(1000, 0)
	full := []int64{stays[0], goes[0], stays[1]}
	unfenced := altered{issue: func(o *rma.Operation) { o.Epoch = 0 }}
	for name, k := range map[string]struct {
		scheme  cider.Scheme
		naive   naive
		ways    altered // of client 1, or of both
		both    bool
		loaded  []int64
		scripts []string
		want    error
	}{
		"an insert does not look again": {naive: naive{blind: true}, loaded: goes[1:], scripts: []string{"i%a", "d%b i%a"}},
		"the lowest slot stays":         {naive: naive{lowest: true}, loaded: goes[1:], scripts: []string{"i%a", "d%b i%a"}},
		"an insert looks before it has put": {
			ways: unfenced, both: true, loaded: goes[1:], scripts: []string{"i%a", "d%b i%a"},
		},
		"a search with an old directory": {naive: naive{trusts: true}, loaded: full, scripts: []string{"i%b", "g%a"}},
		"no marks in slots": {
			ways: altered{read: func(words []int64) {
				for i := 0; i < len(words); i += 2 {
					words[i+1] = mark.With(words[i+1], min(mark.Get(words[i+1]), depth.Get(words[i])))
				}
			}},
			loaded: full, scripts: []string{"i%b", "g%a"},
		},
		"a split does not freeze": {
			ways: altered{issue: func(o *rma.Operation) {
				if o.Kind == rma.KindCompareAndSwap && length.Get(o.Operand) != 0 && state.Get(o.Operand) == frozen {
					o.Operand = o.Compare
				}
			}},
			both: true, loaded: full, scripts: []string{"i%b", "u%a g%a"},
		},
		"a move stands for updates": {scheme: cider.Combining, naive: naive{credits: true}, loaded: full, scripts: []string{"s%b", "u%a g%a"}},
		"no fence before the slot":  {ways: unfenced, both: true, loaded: []int64{goes[0]}, scripts: []string{"u%a", "g%a"}, want: ErrTorn},
	} {
		t.Run(name, func(t *testing.T) {
			if locktest.Quick() && name != "an insert does not look again" && name != "a search with an old directory" {
				t.Skip("takes some seconds; see test-all")
			}
			t.Parallel()
			if k.want == nil {
				k.want = kvtest.ErrHistory
			}
			if k.scheme == 0 {
				k.scheme = cider.Optimistic
			}
			p := plan(2, tiny(k.scheme), k.loaded...)
			p.Keys, p.Scripts, p.Search.Ticks = goes, named(k.scripts, goes...), 2
			whole := p.Open
			p.Open = func(c rma.Comm) (kvtest.Map, error) {
				m, err := whole(c)
				if err != nil {
					return nil, err
				}
				n := k.naive
				n.asMap = m.(asMap)
				if (k.ways.issue != nil || k.ways.read != nil) && (k.both || c.Rank() == 1) {
					ways := k.ways
					ways.reads = new([][]int64)
					n.w = rma.Decorate(n.w, func(t rma.Transport) rma.Transport { ways.Transport = t; return ways })
				}
				return n, nil
			}
			var f *sim.Failure
			for bound := 1; bound <= 3 && f == nil; bound++ {
				x := sim.Exhaustive(bound)
				x.Limit = 400_000
				f = p.Run(x).Failure
			}
			if f == nil || !errors.Is(f, k.want) {
				t.Fatalf("the search found %v, want %v", f, k.want)
			}
			t.Logf("%v, after %d executions", f, f.Execution)
		})
	}
}
