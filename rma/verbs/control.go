package verbs

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/rmalock/rmalock/rma"
)

const (
	dialLimit    = 10 * time.Second // for a connection and its greeting
	controlLimit = 5 * time.Second  // for an answer that waits for no other process
)

// A control is a connection to a memory node for requests.
type control struct {
	name string
	conn net.Conn

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan *reply
	gone    error         // why there are no more answers
	ended   chan struct{} // closed then
	event   func(int)     // called with the number of a process of the job that is gone
	onEnd   func()        // called when the memory node is gone
	read    chan struct{} // closed when the reader has returned
	still   func()        // ends the beats
}

// keepAlive finds a peer whose machine is gone where beats do not (endSilence).
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 4}

// dial connects to a memory node and shows the token. patience 0 is the default.
func dial(name string, token []byte, patience time.Duration, event func(int), onEnd func()) (*control, error) {
	patience, err := patienceOf(patience)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: dialLimit, KeepAliveConfig: keepAlive}
	conn, err := d.Dial("tcp", name)
	if err != nil {
		return nil, fmt.Errorf("verbs: memory node %s: %v; is rmalock mn running there? %w", name, err, rma.ErrPeer)
	}
	k := &control{name: name, conn: conn, waiting: map[uint64]chan *reply{}, ended: make(chan struct{}), event: event, onEnd: onEnd, read: make(chan struct{})}
	in := bufio.NewReader(conn)
	if err := k.greet(in, token); err != nil {
		_ = conn.Close()
		return nil, err
	}
	k.still = beating(conn, patience, k.beat)
	go k.reader(in)
	return k, nil
}

// greet is the client's side of the greeting.
func (k *control) greet(in *bufio.Reader, token []byte) error {
	_ = k.conn.SetDeadline(time.Now().Add(dialLimit))
	defer func() { _ = k.conn.SetDeadline(time.Time{}) }()
	var first, second hello
	err := readFrame(in, helloBytes, &first)
	switch {
	case err != nil || first.Greeting != greeting:
		return fmt.Errorf("verbs: %s does not answer as a memory node does (%v); is it the port of an rmalock mn? %w", k.name, err, rma.ErrRefused)
	case first.Protocol != protocol:
		return fmt.Errorf("verbs: memory node %s speaks version %d of the protocol, this program %d; use the same release on both: %w",
			k.name, first.Protocol, protocol, rma.ErrRefused)
	}
	if err = writeFrame(k.conn, answer{protocol, proof(token, first.Nonce)}); err == nil {
		err = readFrame(in, helloBytes, &second)
	}
	if err == nil && second.Error != "" {
		err = errors.New(second.Error)
	}
	if err != nil {
		return fmt.Errorf("verbs: memory node %s: %v: %w", k.name, err, rma.ErrRefused)
	}
	return nil
}

// reader hands out replies until the connection ends.
func (k *control) reader(in *bufio.Reader) {
	defer close(k.read)
	for {
		var r *reply
		err := skipBeats(in)
		if err == nil {
			r = new(reply)
			err = readFrame(in, frameBytes, r)
		}
		if err != nil {
			if k.end(fmt.Errorf("verbs: memory node %s is gone (%v): %w", k.name, err, rma.ErrPeer)) && k.onEnd != nil {
				k.onEnd()
			}
			return
		}
		if r.ID == 0 {
			if k.event != nil {
				k.event(r.Process)
			}
			continue
		}
		k.mu.Lock()
		to := k.waiting[r.ID]
		delete(k.waiting, r.ID)
		k.mu.Unlock()
		if to != nil {
			to <- r
		}
	}
}

// beat tells the memory node's kernel that this machine is there.
func (k *control) beat() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.gone != nil {
		return k.gone
	}
	_ = k.conn.SetWriteDeadline(time.Now().Add(controlLimit))
	_, err := k.conn.Write(beatFrame)
	return err
}

// end fails all requests, those to come too. It reports whether it is the first to do so.
func (k *control) end(why error) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.gone != nil {
		return false
	}
	k.gone = why
	close(k.ended)
	return true
}

// lost is why the connection is gone, or nil.
func (k *control) lost() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.gone
}

// call sends a request and waits for its reply; limit 0 is none.
func (k *control) call(q request, limit time.Duration) (*reply, error) {
	to := make(chan *reply, 1)
	k.mu.Lock()
	if k.gone != nil {
		defer k.mu.Unlock()
		return nil, k.gone
	}
	k.last++
	q.ID = k.last
	k.waiting[q.ID] = to
	_ = k.conn.SetWriteDeadline(time.Now().Add(controlLimit))
	err := writeFrame(k.conn, q)
	k.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("verbs: memory node %s: %v: %w", k.name, err, rma.ErrPeer)
	}
	var late <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		late = t.C
	}
	select {
	case r := <-to:
		return r, r.err(k.name)
	case <-k.ended:
		return nil, k.lost()
	case <-late:
		return nil, fmt.Errorf("verbs: memory node %s has not answered %q within %v: %w", k.name, q.Call, limit, rma.ErrPeer)
	}
}

// close ends the connection, and returns when its reader has.
func (k *control) close() {
	k.still()
	k.end(fmt.Errorf("verbs: the connection to memory node %s is closed: %w", k.name, rma.ErrFreed))
	_ = k.conn.Close()
	<-k.read
}
