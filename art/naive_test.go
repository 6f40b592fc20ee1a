package art

import (
	"bytes"
	"errors"
	"testing"

	"github.com/rmalock/rmalock/internal/kvtest"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// naive is a Tree whose searches believe a copy of the root.
type naive struct {
	asMap
	absent bool // a key that the copy does not have is not there
	leaf   bool // a leaf that the copy leads to is one of the tree, if it has the key
}

func (m naive) Get(number int64) (int64, bool, error) {
	t, key := m.Tree, []byte(names[number])
	if err := t.begin(key); err != nil {
		return 0, false, err
	}
	s, _, there := t.cfg.Cache.step(t.root, key)
	if there && m.absent && s.word == unused {
		return 0, false, nil
	}
	if there && m.leaf && kindOf(s.word) == leaf && s.id != 0 {
		if err := t.readLeaf(blockOf(s.word), words(len(key))); err != nil {
			return 0, false, err
		}
		if f := &t.found; !f.dead() && bytes.Equal(f.key(), key) {
			return m.read(f)
		}
	}
	return m.asMap.Get(number)
}

// read is the value of a leaf.
func (m naive) read(f *found) (int64, bool, error) {
	ref, n := valueBlock(f.p)
	b := m.block[:n]
	m.w.GetBulk(b, ref.Node(), ref.Disp())
	if err := m.w.Flush(ref.Node()); err != nil {
		return 0, false, err
	}
	v, err := value(b, f.id)
	if err != nil {
		return 0, false, err
	}
	return number(v), true, nil
}

// altered is a Transport with other operations.
type altered struct {
	rma.Transport
	change func(o *rma.Operation)
}

func (x altered) Issue(o rma.Operation) {
	x.change(&o)
	x.Transport.Issue(o)
}

// TestNaive: a search finds what is wrong with each mistake, and nothing without.
func TestNaive(t *testing.T) {
	transport := func(change func(m naive, o *rma.Operation)) func(m naive) naive {
		return func(m naive) naive {
			w := rma.Decorate(m.w, func(t rma.Transport) rma.Transport {
				return altered{t, func(o *rma.Operation) { change(m, o) }}
			})
			m.w = w
			return m
		}
	}
	for name, k := range map[string]struct {
		scripts []string
		loaded  []int
		change  func(m naive) naive
		want    []error // nil: it passes
	}{
		"none": {[]string{"g1 g1 r0", "i1 d1 g9 g9 i1"}, nil, func(m naive) naive { return m }, nil},
		"a copy says that a key is absent": {[]string{"g2 g1", "i1 g1"}, nil, func(m naive) naive {
			m.absent = true
			return m
		}, []error{kvtest.ErrHistory}},
		"a copy leads to a leaf without a look at its ID": {[]string{"g1 g1 r0", "i1 d1 g9 g9 i1"}, nil, func(m naive) naive {
			m.leaf = true
			return m
		}, []error{ErrTorn, kvtest.ErrHistory}},
		"a leaf is freed with its ID": {[]string{"g1 g1 g1", "i1 d1 g9 g9 i9"}, nil, transport(func(_ naive, o *rma.Operation) {
			if o.Kind == rma.KindCompareAndSwap && o.Operand == retired(o.Compare) && o.Compare != 0 && creator.Get(o.Compare) != 0 && o.Disp > nodeWords+2 {
				o.Kind = rma.KindGet
			}
		}), []error{ErrTorn, kvtest.ErrHistory}},
		"slots are not used in order": {[]string{"i1", "i1"}, nil, transport(func(m naive, o *rma.Operation) {
			if o.Kind == rma.KindCompareAndSwap && o.Compare == unused && o.Disp == nodeWords && m.c.Rank() == 1 {
				o.Disp++
			}
		}), []error{ErrTorn, kvtest.ErrHistory}},
		"an extent replaces another": {[]string{"i9 g9", "i10 g10"}, []int{0, 1}, transport(func(_ naive, o *rma.Operation) {
			if o.Kind == rma.KindCompareAndSwap && o.Disp == firstExtent {
				o.Kind, o.Op = rma.KindFetchAndOp, rma.Replace
			}
		}), []error{kvtest.ErrHistory, ErrTorn, rma.ErrDisp}},
		"a node replaces what is there": {[]string{"i2 g2", "d1 i2", "g2"}, []int{1}, transport(func(_ naive, o *rma.Operation) {
			if o.Kind == rma.KindCompareAndSwap && kindOf(o.Operand) == inner && kindOf(o.Compare) == leaf {
				o.Kind, o.Op = rma.KindFetchAndOp, rma.Replace
			}
		}), []error{kvtest.ErrHistory, ErrTorn}},
		"no fence before the slot": {[]string{"i1", "g1"}, nil, transport(func(_ naive, o *rma.Operation) { o.Epoch = 0 }), []error{ErrTorn, kvtest.ErrHistory}},
	} {
		t.Run(name, func(t *testing.T) {
			if k.want != nil && locktest.Quick() && (len(k.scripts[0]) > 6 || k.loaded != nil) {
				t.Skip("takes some seconds; see test-all")
			}
			t.Parallel()
			p := plan(k.scripts, k.loaded, nil, optimistic)
			p.Search.Ticks, p.Search.MaxDelay, p.Pace = 4, 1, 1
			whole := p.Open
			p.Open = func(c rma.Comm) (kvtest.Map, error) {
				m, err := whole(c)
				if err != nil {
					return nil, err
				}
				m.(asMap).sections = m.(asMap).heap.Sections(1)
				return k.change(naive{asMap: m.(asMap)}), nil
			}
			var f *sim.Failure
			if len(k.scripts[0]) > 6 {
				p.Search.Ticks, p.Search.Ascending = 100, false
				draws := int64(20_000)
				if k.want == nil {
					draws = locktest.Draws(600)
				}
				f = p.Run(sim.PCT(1, 4, 0, draws)).Failure
			}
			for bound := 0; bound <= 2 && f == nil && len(k.scripts[0]) <= 6; bound++ {
				x := sim.Exhaustive(bound)
				x.Limit = 400_000
				f = p.Run(x).Failure
			}
			found := false
			for _, e := range k.want {
				found = found || f != nil && errors.Is(f, e)
			}
			switch {
			case k.want == nil && f != nil:
				t.Errorf("it fails: %v", f)
			case k.want != nil && !found:
				t.Errorf("the search found %v, want %v", f, k.want)
			case f != nil:
				t.Logf("%v, after %d executions", f, f.Execution)
			}
		})
	}
}
