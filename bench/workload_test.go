package bench

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rmalock/rmalock/lock"
)

// site is that of a rank with a third of the locks at home on its node.
func site(locks int, seed uint64) Site {
	return Site{Ranks: 3, Locks: locks, Readers: 0.3, Rand: rand.New(rand.NewPCG(seed, 2)), Local: func(id int) bool { return id%3 == 1 }}
}

// TestVisits: the locks of a visit are different and in the order of their ids; shares of
// readers and of local locks are those that were asked for; nothing allocates.
func TestVisits(t *testing.T) {
	const visits = 20_000
	for _, m := range []Mix{
		{}, {Local: 0.85}, {Local: 1, Together: 3}, {Together: 5, Keys: Keys{Theta: 0.99}}, {Together: 4, Local: 0.5, Keys: Keys{HotSet: 0.3, HotShare: 0.8}},
		{Local: 0.9, Keys: Keys{Theta: 0.99, Scrambled: true}},
	} {
		c, err := m.Client(site(30, 1))
		if err != nil {
			t.Fatal(err)
		}
		var v Visit
		local, shared, all := 0.0, 0.0, 0.0
		for range visits {
			v.Locks = v.Locks[:0]
			c.Next(&v)
			if len(v.Locks) != max(1, m.Together) {
				t.Fatalf("%v: a visit to %v", m, v.Locks)
			}
			for i, a := range v.Locks {
				if a.Lock < 0 || a.Lock >= 30 || i > 0 && a.Lock <= v.Locks[i-1].Lock {
					t.Fatalf("%v: a visit to %v", m, v.Locks)
				}
				all++
				if a.Lock%3 == 1 {
					local++
				}
				if a.Mode == lock.Shared {
					shared++
				}
			}
		}
		if math.Abs(shared/all-0.3) > 0.02 {
			t.Errorf("%v: %.3f of the acquires are shared, want 0.3", m, shared/all)
		}
		if m.Local > 0 && m.Together <= 1 && math.Abs(local/all-m.Local) > 0.02 {
			t.Errorf("%v: %.3f of the acquires are local, want %v", m, local/all, m.Local)
		}
		if n := testing.AllocsPerRun(100, func() { v.Locks = v.Locks[:0]; c.Next(&v) }); n != 0 {
			t.Errorf("%v: a visit makes %v allocations", m, n)
		}
	}
}

// TestLocalKeys: inside the node and outside of it locks are drawn as the keys say.
func TestLocalKeys(t *testing.T) {
	const locks = 60
	for _, k := range []Keys{{}, {Theta: 0.99}} {
		c, err := Mix{Keys: k, Local: 0.6}.Client(site(locks, 3))
		if err != nil {
			t.Fatal(err)
		}
		near, far := generated(locks/3, k.Theta), generated(locks-locks/3, k.Theta)
		fits(t, k.String(), c.(*mixClient).keys, locks, func(id int) float64 {
			if id%3 == 1 {
				return 0.6 * near(id/3)
			}
			return 0.4 * far(id-(id+1)/3)
		})
	}
}

// TestMixInJSON: what a Result says of a Mix is all of it.
func TestMixInJSON(t *testing.T) {
	for _, m := range []Mix{{}, {Keys: Keys{HotSet: 0.1, HotShare: 0.9}, Local: 0.5, Together: 2, Accesses: 3, Inside: 4, Think: 5}, {Keys: Keys{Theta: 1, Scrambled: true}}} {
		b, err := json.Marshal(m)
		var again Mix
		if err = errors.Join(err, json.Unmarshal(b, &again)); err != nil || again != m {
			t.Errorf("%+v is %s, which is %+v, error %v", m, b, again, err)
		}
	}
	if err := json.Unmarshal([]byte(`{"keys":"zipf"}`), &Mix{}); !errors.Is(err, ErrConfig) {
		t.Errorf("wrong keys: error %v", err)
	}
}

// TestMixInText: mixes that differ have texts that differ.
func TestMixInText(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range []Mix{{}, {Keys: Keys{Theta: 1}}, {Local: 0.5}, {Together: 2}, {Accesses: 1}, {Inside: 1}, {Think: 1}} {
		if seen[m.String()] {
			t.Errorf("two mixes are %q", m)
		}
		seen[m.String()] = true
	}
	if got, want := (Mix{Keys: Keys{Theta: 0.99}, Local: 0.9, Together: 2, Accesses: 4, Inside: 1500, Think: 2000}).String(),
		"keys zipf:0.99, local 90 %, together 2, accesses 4, inside 1.5µs, think 2µs"; got != want {
		t.Errorf("text is %q, want %q", got, want)
	}
}
