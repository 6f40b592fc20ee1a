package nearmem_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/internal/nearmem"
)

var errEnded = errors.New("ended")

// waiter is a way to wait on m, with a clock of its own.
func waiter(m *nearmem.Memory, ended chan struct{}) *nearmem.Waiter {
	start := time.Now()
	return &nearmem.Waiter{
		Memory: m, Ended: ended, Why: func() error { return errEnded },
		Now: func() int64 { return int64(time.Since(start)) },
	}
}

func wait(host, disp int, v int64) rma.Wait {
	return rma.Wait{Target: host, Disp: disp, Cond: rma.Equal(v)}
}

// asleep waits until a goroutine sleeps on a word.
func asleep(m *nearmem.Memory, host, disp int) {
	for atomic.LoadUint32(rma.SleeperCount(m.Part(host), disp)) == 0 {
		time.Sleep(50 * time.Microsecond)
	}
}

// TestParts: words are zero, aligned, apart from each other, and where the order puts them.
func TestParts(t *testing.T) {
	m := nearmem.New(3, 4, []int32{2, 0, 3, 1})
	for host := range 4 {
		if a := uintptr(m.Part(host)); a%rma.PartAlign != 0 {
			t.Errorf("the part of host %d begins at %#x", host, a)
		}
		for disp := range 3 {
			if p := m.Word(host, disp); *p != 0 {
				t.Errorf("word %d of host %d is %d at first", disp, host, *p)
			} else {
				*p = int64(10*host + disp)
			}
		}
	}
	for host := range 4 {
		for disp := range 3 {
			if v := *m.Word(host, disp); v != int64(10*host+disp) {
				t.Errorf("word %d of host %d is %d", disp, host, v)
			}
		}
	}
	if got := uintptr(m.Part(0)) - uintptr(m.Part(1)); got != 2*m.Stride() {
		t.Errorf("hosts 0 and 1 are %d bytes apart, want two strides of %d", got, m.Stride())
	}
}

// TestSleeperWakes: a goroutine asleep on two words wakes by a write to either, and leaves no
// sleeper behind, round after round.
func TestSleeperWakes(t *testing.T) {
	m := nearmem.New(2, 2, nil)
	z := waiter(m, nil)
	for i := range int64(40) {
		host, disp := int(i%2), int(i/2%2)
		go func() {
			asleep(m, host, disp)
			atomic.StoreInt64(m.Word(host, disp), i+1)
			m.Wake(host)
		}()
		q := rma.Waiting{Words: [2]rma.Wait{wait(host, disp, i+1), wait(1-host, disp, -1)}, N: 2, Until: rma.Forever}
		if i%4 > 1 {
			q.Words[0], q.Words[1] = q.Words[1], q.Words[0]
		}
		which, v, err := z.Await(q)
		if err != nil || v != i+1 || q.Words[which].Target != host {
			t.Fatalf("round %d: word %d, %d, %v", i, which, v, err)
		}
		for h := range 2 {
			for d := range 2 {
				if n := atomic.LoadUint32(rma.SleeperCount(m.Part(h), d)); n != 0 {
					t.Fatalf("round %d: %d sleepers are left on word %d of host %d", i, n, d, h)
				}
			}
		}
	}
}

// TestWaitEnds: by its limit, whatever else is written meanwhile, or with all waits.
func TestWaitEnds(t *testing.T) {
	m := nearmem.New(2, 1, nil)
	ended := make(chan struct{})
	z := waiter(m, ended)
	go func() {
		asleep(m, 0, 0)
		m.Wake(0) // for nothing
	}()
	until := z.Now() + 5_000_000
	which, _, err := z.Await(rma.Waiting{Words: [2]rma.Wait{wait(0, 0, 1)}, N: 1, Until: until})
	if which != -1 || err != nil || z.Now() < until {
		t.Errorf("a wait with a limit ended with word %d, %v, %d ns before it", which, err, until-z.Now())
	}
	go func() {
		asleep(m, 0, 0)
		close(ended)
	}()
	if _, _, err := z.Await(rma.Waiting{Words: [2]rma.Wait{wait(0, 0, 1)}, N: 1, Until: rma.Forever}); !errors.Is(err, errEnded) {
		t.Errorf("a wait that was ended: %v", err)
	}
	if n := atomic.LoadUint32(rma.SleeperCount(m.Part(0), 0)); n != 0 {
		t.Errorf("%d sleepers are left", n)
	}
}
