package verbs

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/rmalock/rmalock/rma"
)

// A NodeConfig says what a memory node offers.
type NodeConfig struct {
	Listen string // address for control, host:port; port 0 for any
	Words  int    // of memory, in all windows together
	Slots  int    // for clients that come and go; 0 for 64
	Token  []byte // the secret that peers must know; nil for none
	Device string // name of the RDMA device; "" for the first that can be used

	// Patience is how long a peer's machine may be silent before it counts as gone; 0 for 500 ms.
	Patience time.Duration
}

// card is what a memory node needs of its RDMA device.
type card interface {
	register(memory []byte) (region, error)
	pair(to *address) (end, *address, error)
	describe() string
	close() error
}

// region is registered memory.
type region interface {
	place() place
	close() error
}

// end is the memory node's end of a queue pair.
type end interface{ close() error }

// A Server is a memory node.
type Server struct {
	cfg      NodeConfig
	listener net.Listener
	card     card
	patience time.Duration
	memory   []byte
	huge     bool
	release  func() error // of memory

	mu       sync.Mutex
	space    extents
	windows  map[string]*served
	jobs     map[string]*servedJob
	slots    []slot
	peers    map[*peer]bool // that know the token
	knocking []net.Conn     // that have not shown it, oldest first
	refused  int
	closed   bool
	all      sync.WaitGroup
}

// served is a window.
type served struct {
	fingerprint int64
	from, bytes int
	region      region
	owner       *peer // ends the window with its connection; nil for none
}

// slot is a client's place.
type slot struct {
	owner      *peer
	generation int
}

// Status is what a memory node tells of itself.
type Status struct {
	Listen  string `json:"listen"`
	Device  string `json:"device"`
	Words   int    `json:"words"`
	Free    int    `json:"free_words"`
	Huge    bool   `json:"huge_pages"`
	Windows int    `json:"windows"`
	Peers   int    `json:"peers"`
	Clients int    `json:"clients"`
	Refused int    `json:"refused"` // connections that ended before they showed the token
}

// serve makes a memory node of a card and memory.
func serve(cfg NodeConfig, c card) (*Server, error) {
	if cfg.Words < 1 || cfg.Words > 1<<44 {
		return nil, fmt.Errorf("verbs: a memory node of %d words: want 1 to %d: %w", cfg.Words, 1<<44, rma.ErrSpec)
	}
	if cfg.Slots == 0 {
		cfg.Slots = 64
	}
	if cfg.Slots < 0 || cfg.Slots > maxRanks {
		return nil, fmt.Errorf("verbs: %d slots for clients: want 1 to %d: %w", cfg.Slots, maxRanks, rma.ErrSpec)
	}
	patience, err := patienceOf(cfg.Patience)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, card: c, patience: patience, windows: map[string]*served{}, jobs: map[string]*servedJob{}, peers: map[*peer]bool{}, slots: make([]slot, cfg.Slots)}
	for i := range s.slots {
		s.slots[i].generation = -1
	}
	if s.memory, s.huge, s.release, err = pages(cfg.Words * 8); err != nil {
		return nil, err
	}
	s.space.give(0, len(s.memory)/pieceAlign*pieceAlign)
	if s.listener, err = net.Listen("tcp", cfg.Listen); err != nil {
		return nil, errors.Join(fmt.Errorf("verbs: memory node: %w", err), s.release())
	}
	return s, nil
}

// Addr is where the memory node listens.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Status is the state now.
func (s *Server) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	clients := 0
	for i := range s.slots {
		if s.slots[i].owner != nil {
			clients++
		}
	}
	return Status{
		Listen: s.Addr(), Device: s.card.describe(), Words: s.cfg.Words, Free: s.space.left() / 8, Huge: s.huge,
		Windows: len(s.windows), Peers: len(s.peers), Clients: clients, Refused: s.refused,
	}
}

// Run serves until ctx ends, and then closes everything. It returns nil then.
func (s *Server) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = s.listener.Close() })
	defer stop()
	var err error
	for pause := time.Duration(0); ; {
		conn, e := s.listener.Accept()
		if errors.Is(e, net.ErrClosed) {
			break
		}
		if e != nil { // too many open files, say: it passes
			if pause = max(time.Millisecond, min(2*pause, time.Second)); ctx.Err() != nil {
				break
			}
			time.Sleep(pause)
			continue
		}
		pause = 0
		s.admit(conn)
	}
	return errors.Join(err, s.close())
}

// maxKnocking bounds the connections that have not shown the token. One more ends the oldest, so
// that connections that send nothing keep no peer out.
const (
	maxKnocking = 512
	helloLimit  = 3 * time.Second
)

// admit starts to talk to a connection.
func (s *Server) admit(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = conn.Close()
		return
	}
	if len(s.knocking) >= maxKnocking {
		_ = s.knocking[0].Close()
		s.knocking = s.knocking[1:]
	}
	s.knocking = append(s.knocking, conn)
	s.all.Add(1)
	go func() {
		defer s.all.Done()
		defer func() { _ = conn.Close() }()
		in := bufio.NewReader(conn)
		err := s.greet(conn, in)
		if p := s.enter(conn, err); p != nil {
			p.talk(in)
		}
	}()
}

// greet is the memory node's side of the greeting.
func (s *Server) greet(conn net.Conn, in *bufio.Reader) error {
	_ = conn.SetDeadline(time.Now().Add(helloLimit))
	nonce := make([]byte, 32)
	_, _ = rand.Read(nonce) // never fails
	if err := writeFrame(conn, hello{Greeting: greeting, Protocol: protocol, Nonce: nonce}); err != nil {
		return err
	}
	var a answer
	if err := readFrame(in, helloBytes, &a); err != nil {
		return err
	}
	second := hello{Greeting: greeting, Protocol: protocol}
	switch {
	case a.Protocol != protocol:
		second.Error = fmt.Sprintf("the peer speaks version %d of the protocol, and this is %d; use the same release on both", a.Protocol, protocol)
	case !hmac.Equal(a.Proof, proof(s.cfg.Token, nonce)): // takes the same time wherever they differ
		second.Error = "the token is not that of the memory node; pass both the same --token-file"
	}
	if err := writeFrame(conn, second); err != nil {
		return err
	}
	if second.Error != "" {
		return errors.New(second.Error)
	}
	return conn.SetDeadline(time.Time{})
}

// enter ends the knocking of a connection, and makes it a peer unless it failed.
func (s *Server) enter(conn net.Conn, failed error) *peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range s.knocking {
		if c == conn {
			s.knocking = append(s.knocking[:i:i], s.knocking[i+1:]...)
			break
		}
	}
	if failed != nil || s.closed {
		s.refused++
		return nil
	}
	if t, ok := conn.(*net.TCPConn); ok {
		_ = t.SetKeepAliveConfig(keepAlive)
	}
	p := &peer{s: s, conn: conn}
	s.peers[p] = true
	return p
}

// close ends all connections, windows and the device.
func (s *Server) close() error {
	s.mu.Lock()
	s.closed = true
	for _, c := range s.knocking {
		_ = c.Close()
	}
	for p := range s.peers {
		_ = p.conn.Close()
	}
	s.mu.Unlock()
	s.all.Wait()
	var errs []error
	for name := range s.windows {
		errs = append(errs, s.drop(name))
	}
	errs = append(errs, s.card.close(), s.release())
	return errors.Join(errs...)
}

// window creates a window, or attaches to it.
func (s *Server) window(p *peer, q *request) (reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.windows[q.Name]; w != nil {
		if w.fingerprint != q.Fingerprint || w.bytes != q.Words*8 {
			return reply{}, fmt.Errorf("window %q exists, and the peer describes it differently; pass the Spec that it was created with: %w", q.Name, rma.ErrMismatch)
		}
		return reply{Place: w.region.place()}, nil
	}
	if q.Words < 1 || q.Words > s.cfg.Words {
		return reply{}, fmt.Errorf("window %q has %d words, and all of the memory node has %d (--words): %w", q.Name, q.Words, s.cfg.Words, rma.ErrMemory)
	}
	from, ok := s.space.take(q.Words * 8)
	if !ok {
		return reply{}, fmt.Errorf("no room for window %q of %d words: %d of %d are free, not all in one piece (--words): %w",
			q.Name, q.Words, s.space.left()/8, s.cfg.Words, rma.ErrMemory)
	}
	part := s.memory[from : from+q.Words*8]
	clear(part)
	r, err := s.card.register(part)
	if err != nil {
		s.space.give(from, q.Words*8)
		return reply{}, fmt.Errorf("window %q: %w", q.Name, err)
	}
	w := &served{fingerprint: q.Fingerprint, from: from, bytes: q.Words * 8, region: r, owner: p}
	if q.Keep {
		w.owner = nil
	}
	s.windows[q.Name] = w
	return reply{Place: r.place()}, nil
}

// drop ends a window. The caller has the mutex, or is alone.
func (s *Server) drop(name string) error {
	w := s.windows[name]
	if w == nil {
		return nil
	}
	delete(s.windows, name)
	err := w.region.close()
	s.space.give(w.from, w.bytes)
	return err
}

// lease gives a client the lowest free slot.
func (s *Server) lease(p *peer) (reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.slots {
		if t := &s.slots[i]; t.owner == nil {
			t.owner = p
			t.generation++
			return reply{Slots: len(s.slots), Slot: i, Generation: t.generation}, nil
		}
	}
	return reply{}, fmt.Errorf("clients have all %d slots (--clients): %w", len(s.slots), ErrFull)
}

// leave ends a lease, if the slot has no later client.
func (s *Server) leave(p *peer, q *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.Index >= 0 && q.Index < len(s.slots) {
		if t := &s.slots[q.Index]; t.owner == p && t.generation == q.Generation {
			t.owner = nil
		}
	}
}
