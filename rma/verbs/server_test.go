package verbs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rmalock/rmalock/rma"
	"github.com/stretchr/testify/require"
)

// cardOfPaper is a device without a network: these tests are of control alone.
type cardOfPaper struct{ regions, pairs atomic.Int64 }

type paper struct {
	open *atomic.Int64
	at   place
}

func (c *cardOfPaper) register(memory []byte) (region, error) {
	return &paper{&c.regions, place{uint64(len(memory)), uint32(c.regions.Add(1))}}, nil
}

func (c *cardOfPaper) pair(to *address) (end, *address, error) {
	if to.QPN == 0 {
		return nil, nil, fmt.Errorf("no way there: %w", rma.ErrTransport)
	}
	c.pairs.Add(1)
	return &paper{open: &c.pairs}, &address{QPN: to.QPN + 1}, nil
}

func (c *cardOfPaper) describe() string { return "paper" }
func (c *cardOfPaper) close() error     { return nil }
func (p *paper) place() place           { return p.at }
func (p *paper) close() error           { p.open.Add(-1); return nil }

// memoryNode serves control until the test ends, and checks that nothing is left then.
func memoryNode(t *testing.T, cfg NodeConfig) *Server {
	t.Helper()
	card, before := new(cardOfPaper), runtime.NumGoroutine()
	cfg.Listen = "127.0.0.1:0"
	s, err := serve(cfg, card)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
		require.Zero(t, card.regions.Load(), "registered regions")
		require.Zero(t, card.pairs.Load(), "queue pairs")
		for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
			require.True(t, time.Now().Before(end), "goroutines are left")
		}
	})
	return s
}

func connect(t *testing.T, s *Server) *control {
	t.Helper()
	k, err := dial(s.Addr(), s.cfg.Token, 0, nil, nil)
	require.NoError(t, err)
	t.Cleanup(k.close)
	return k
}

func attach(k *control, name string, words int, keep bool) (place, error) {
	r, err := k.call(request{Call: callWindow, Name: name, Words: words, Fingerprint: int64(words), Keep: keep}, time.Minute)
	if err != nil {
		return place{}, err
	}
	return r.Place, nil
}

func TestWindowsAttachAndEnd(t *testing.T) {
	s := memoryNode(t, NodeConfig{Words: 100 * pieceAlign / 8})
	a, b := connect(t, s), connect(t, s)
	first, err := attach(a, "w", 5, false)
	require.NoError(t, err)
	again, err := attach(b, "w", 5, false)
	require.NoError(t, err)
	require.Equal(t, first, again)
	_, err = attach(b, "w", 6, false)
	require.ErrorIs(t, err, rma.ErrMismatch)
	_, err = attach(b, "large", 1<<20, false)
	require.ErrorIs(t, err, rma.ErrMemory)
	_, err = attach(b, "none", 0, false)
	require.ErrorIs(t, err, rma.ErrMemory)
	_, err = attach(a, "kept", 7, true)
	require.NoError(t, err)
	require.Equal(t, 2, s.Status().Windows)

	a.close() // "w" was a's
	require.Eventually(t, func() bool { return s.Status().Windows == 1 }, time.Minute, time.Millisecond)
	_, err = b.call(request{Call: callFree, Name: "kept"}, time.Minute)
	require.NoError(t, err)
	_, err = attach(b, "all", s.cfg.Words, false)
	require.NoError(t, err, "all memory is free again")
	_, err = attach(b, "one more", 1, false)
	require.ErrorIs(t, err, rma.ErrMemory)
}

func TestPairEndsWithConnection(t *testing.T) {
	s := memoryNode(t, NodeConfig{Words: 1})
	k := connect(t, s)
	for range 3 { // each instead of the one before
		r, err := k.call(request{Call: callPair, Address: &address{QPN: 4}}, time.Minute)
		require.NoError(t, err)
		require.EqualValues(t, 5, r.Address.QPN)
		require.EqualValues(t, 1, s.card.(*cardOfPaper).pairs.Load())
	}
	_, err := k.call(request{Call: callPair}, time.Minute)
	require.ErrorIs(t, err, rma.ErrRefused)
	_, err = k.call(request{Call: callPair, Address: &address{}}, time.Minute)
	require.ErrorIs(t, err, rma.ErrTransport)
	_, err = k.call(request{Call: "dance"}, time.Minute)
	require.ErrorIs(t, err, rma.ErrRefused)
}

func TestToken(t *testing.T) {
	s := memoryNode(t, NodeConfig{Words: 1, Token: []byte("right")})
	for _, token := range []string{"", "wrong", "right ", "righ"} {
		_, err := dial(s.Addr(), []byte(token), 0, nil, nil)
		require.ErrorIs(t, err, rma.ErrRefused)
		require.ErrorContains(t, err, "token")
	}
	connect(t, s)
	require.Eventually(t, func() bool { return s.Status().Refused == 4 }, time.Minute, time.Millisecond)
	_, err := dial("127.0.0.1:1", nil, 0, nil, nil)
	require.ErrorIs(t, err, rma.ErrPeer)
}

// TestNoMemoryNode: a port at which something else listens is an error, and soon.
func TestNoMemoryNode(t *testing.T) {
	for _, says := range []string{"", "HTTP/1.1 400 Bad Request\r\n\r\n", "\x00\x00\x00\x02{}", frame(`{"Greeting":"rmalock memory node","Protocol":77}`)} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		go func() {
			c, err := l.Accept()
			if err == nil {
				_, _ = c.Write([]byte(says))
				_ = c.Close()
			}
		}()
		_, err = dial(l.Addr().String(), nil, 0, nil, nil)
		require.ErrorIs(t, err, rma.ErrRefused, "%q", says)
		require.NoError(t, l.Close())
	}
}

func frame(body string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(body)))) + body
}

func TestSlots(t *testing.T) {
	s := memoryNode(t, NodeConfig{Words: 1, Slots: 2})
	a, b := connect(t, s), connect(t, s)
	lease := func(k *control) [3]int {
		r, err := k.call(request{Call: callSlot}, time.Minute)
		require.NoError(t, err)
		return [3]int{r.Slots, r.Slot, r.Generation}
	}
	require.Equal(t, [3]int{2, 0, 0}, lease(a))
	require.Equal(t, [3]int{2, 1, 0}, lease(b))
	_, err := a.call(request{Call: callSlot}, time.Minute)
	require.ErrorIs(t, err, ErrFull)
	_, err = b.call(request{Call: callLeave, Index: 0}, time.Minute) // not b's
	require.NoError(t, err)
	_, err = a.call(request{Call: callSlot}, time.Minute)
	require.ErrorIs(t, err, ErrFull)
	a.close() // a client that dies leaves its slot
	require.Eventually(t, func() bool { return s.Status().Clients == 1 }, time.Minute, time.Millisecond)
	require.Equal(t, [3]int{2, 0, 1}, lease(b))
}

// TestGather: processes of a job meet, in several groups at once; one that dies is an error of
// the others, and no other job's.
func TestGather(t *testing.T) {
	s := memoryNode(t, NodeConfig{Words: 1})
	const n = 4
	var k [n]*control
	var events atomic.Int64
	for i := range k {
		var err error
		k[i], err = dial(s.Addr(), nil, 0, func(process int) {
			if process == n-1 {
				events.Add(1)
			}
		}, nil)
		require.NoError(t, err)
		defer k[i].close()
		_, err = k[i].call(request{Call: callJob, Name: "j", Index: i, Count: n}, time.Minute)
		require.NoError(t, err)
	}
	stranger := connect(t, s)
	_, err := stranger.call(request{Call: callGather, Name: "g", Count: 1}, time.Minute)
	require.ErrorIs(t, err, rma.ErrRefused)
	_, err = stranger.call(request{Call: callJob, Name: "j", Index: 1, Count: n}, time.Minute)
	require.ErrorIs(t, err, rma.ErrMismatch)
	_, err = stranger.call(request{Call: callJob, Name: "j", Index: 1, Count: n + 1}, time.Minute)
	require.ErrorIs(t, err, rma.ErrMismatch)

	var all sync.WaitGroup
	for i := range k {
		for _, group := range []string{"a", "b"} {
			all.Go(func() {
				for round := range 50 {
					r, err := k[i].call(request{Call: callGather, Name: fmt.Sprint(group, round), Index: i, Count: n, Data: []byte{byte(i), byte(round)}}, time.Minute)
					if err != nil || len(r.All) != n || !bytes.Equal(r.All[n-1], []byte{n - 1, byte(round)}) {
						t.Errorf("gather %s%d: %v, %v", group, round, r, err)
					}
				}
			})
		}
	}
	all.Wait()

	failed := make(chan error)
	go func() {
		_, err := k[0].call(request{Call: callGather, Name: "last", Index: 0, Count: n}, 0)
		failed <- err
	}()
	time.Sleep(10 * time.Millisecond)
	k[3].close()
	require.Eventually(t, func() bool { return events.Load() == n-1 }, time.Minute, time.Millisecond, "all others learn of it")
	_, err = k[1].call(request{Call: callGather, Name: "last", Index: 1, Count: n}, time.Minute)
	require.ErrorIs(t, err, rma.ErrPeer)
	k[0].close()
	require.Error(t, <-failed)
	_, err = stranger.call(request{Call: callJob, Name: "other", Index: 0, Count: 1}, time.Minute)
	require.NoError(t, err)
}

// come connects strangers in numbers, who say nothing, garbage, half of it, a lie about a length,
// or what a peer says with a wrong proof of the token. Some wait for an answer, and some speak
// slowly.
func come(address string, strangers int) {
	garbage := make([]byte, 2000)
	for i := range garbage {
		garbage[i] = byte(rand.Uint32())
	}
	says := []string{
		"", "\x00", "GET / HTTP/1.1\r\n\r\n", string(garbage), "\xff\xff\xff\xff", "\x00\x00\x03\xffabc", frame("{}"), frame("null"), frame("[1,2"),
		frame(`{"Protocol":2,"Proof":""}`), frame(`{"Protocol":2,"Proof":"`+strings.Repeat("A", 44)+`"}`) + frame(`{"ID":1,"Call":"window","Name":"x","Words":1}`),
		frame(`{"ID":1,"Call":"free","Name":"w"}`), frame(strings.Repeat("[", 1000)),
	}
	var all sync.WaitGroup
	gate := make(chan struct{}, 200)
	for i := range strangers {
		gate <- struct{}{}
		all.Go(func() {
			defer func() { <-gate }()
			c, err := net.DialTimeout("tcp", address, 20*time.Second)
			if err != nil {
				return // the machine's own limits
			}
			defer func() { _ = c.Close() }()
			said := says[i%len(says)]
			if i%101 == 0 { // byte after byte
				for k := 0; k < len(said) && k < 20; k++ {
					_, _ = c.Write([]byte(said[k : k+1]))
					time.Sleep(20 * time.Millisecond)
				}
				return
			}
			_, _ = c.Write([]byte(said))
			if i%7 == 0 { // one that waits for an answer
				_ = c.SetDeadline(time.Now().Add(100 * time.Millisecond))
				_, _ = io.Copy(io.Discard, c)
			}
		})
	}
	all.Wait()
}

// TestHostile: strangers in thousands, who say nothing, garbage, half of it, or lies about a
// length, let a peer that works go on, and nobody in.
func TestHostile(t *testing.T) {
	strangers := 10_000
	if testing.Short() {
		strangers = 1_000
	}
	s := memoryNode(t, NodeConfig{Words: 1 << 10, Token: []byte("secret")})
	worker := connect(t, s)
	stop := make(chan struct{})
	worked := make(chan int, 1)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				worked <- n
				return
			default:
			}
			if _, err := attach(worker, "w", 10, false); err != nil {
				t.Errorf("a peer is disturbed: %v", err)
				worked <- n
				return
			}
		}
	}()

	come(s.Addr(), strangers)
	close(stop)
	require.NotZero(t, <-worked)
	require.Eventually(t, func() bool { // one that knows the token still comes in
		k, err := dial(s.Addr(), s.cfg.Token, 0, nil, nil)
		if err == nil {
			t.Cleanup(k.close)
		}
		return err == nil
	}, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { return s.Status().Refused >= strangers*9/10 }, time.Minute, time.Millisecond)
	require.Equal(t, 2, s.Status().Peers)
	require.Equal(t, 1, s.Status().Windows)
}

// TestSilentStrangers: more connections than may knock at once, all silent, keep no peer out.
func TestSilentStrangers(t *testing.T) {
	s := memoryNode(t, NodeConfig{Words: 1})
	var silent []net.Conn
	for range maxKnocking + 100 {
		c, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Skipf("this machine has too few files: %v", err)
		}
		silent = append(silent, c)
	}
	connect(t, s)
	for _, c := range silent {
		_ = c.Close()
	}
}

func TestFramesAreRefused(t *testing.T) {
	read := func(limit int, bytes string) error {
		var v any
		return readFrame(bufio.NewReader(strings.NewReader(bytes)), limit, &v)
	}
	require.NoError(t, read(2, frame("{}")))
	require.ErrorContains(t, read(1, frame("{}")), "at most 1")
	require.ErrorContains(t, read(100, "\x7f\xff\xff\xff"), "at most 100")
	require.ErrorIs(t, read(100, "\x00\x00\x00\x09{}"), io.ErrUnexpectedEOF)
	require.Error(t, read(100, frame("{")))
	require.Error(t, writeFrame(io.Discard, request{Data: make([]byte, frameBytes)}))
}

func TestExtents(t *testing.T) {
	const unit = pieceAlign
	var x extents
	x.give(0, 10*unit)
	var taken []int
	for i := range 5 {
		at, ok := x.take(2*unit - i)
		require.True(t, ok)
		taken = append(taken, at)
	}
	_, ok := x.take(1)
	require.False(t, ok)
	for _, i := range []int{3, 0, 4, 1, 2} {
		x.give(taken[i], 2*unit-i)
	}
	require.Equal(t, []extent{{0, 10 * unit}}, x.free)
	require.Equal(t, 10*unit, x.left())
}

func TestStatusTexts(t *testing.T) {
	for status := range statuses {
		err := statusError("memory node 3", status)
		require.ErrorContains(t, err, "memory node 3")
		require.True(t, errors.Is(err, rma.ErrPeer) || errors.Is(err, rma.ErrTransport))
	}
	require.ErrorIs(t, statusError("x", wcRetry), rma.ErrPeer)
	require.ErrorContains(t, statusError("x", 999), "999")
}
