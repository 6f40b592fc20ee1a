package verbs

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/rmalock/rmalock/rma"
)

// A peer is a connection that has shown the token.
type peer struct {
	s    *Server
	conn net.Conn

	writing sync.Mutex
	end     end // its queue pair, or nil; used by the peer's goroutine alone
	job     *servedJob
	index   int
	done    bool // the process ends in good order
}

// servedJob is a job whose processes meet here.
type servedJob struct {
	name   string
	peers  []*peer // by process
	gone   bool    // a process has ended before its time
	groups map[string]*gathering
}

// gathering is a collective call of a group of processes.
type gathering struct {
	brought [][]byte
	asked   []*peer // by process of the group; nil of one that has not come
	ids     []uint64
	came    int
}

// talk answers requests until the connection ends.
func (p *peer) talk(in *bufio.Reader) {
	still := beating(p.conn, p.s.patience, p.beat)
	defer still()
	for {
		if skipBeats(in) != nil {
			break
		}
		var q request
		if readFrame(in, frameBytes, &q) != nil {
			break
		}
		r, waits, err := p.do(&q)
		if waits {
			continue
		}
		r.ID = q.ID
		if err != nil {
			r.Error, r.Class = explain(err)
		}
		if p.send(&r) != nil {
			break
		}
	}
	p.leave()
}

// explain is an error as a reply has it.
func explain(err error) (text, class string) {
	text = err.Error()
	for name, sentinel := range classes {
		if errors.Is(err, sentinel) {
			return strings.TrimSuffix(text, ": "+sentinel.Error()), name
		}
	}
	return text, ""
}

// send writes a reply. A peer that does not read loses its connection.
func (p *peer) send(r *reply) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	_ = p.conn.SetWriteDeadline(time.Now().Add(controlLimit))
	err := writeFrame(p.conn, r)
	if err != nil {
		_ = p.conn.Close()
	}
	return err
}

// beat tells the peer's kernel that this machine is there.
func (p *peer) beat() error {
	p.writing.Lock()
	defer p.writing.Unlock()
	_ = p.conn.SetWriteDeadline(time.Now().Add(controlLimit))
	_, err := p.conn.Write(beatFrame)
	return err
}

// do does what a request asks for; waits means that its reply comes later.
func (p *peer) do(q *request) (r reply, waits bool, err error) {
	s := p.s
	switch q.Call {
	case callPair:
		r, err = p.connect(q)
	case callWindow:
		r, err = s.window(p, q)
	case callFree:
		s.mu.Lock()
		err = s.drop(q.Name)
		s.mu.Unlock()
	case callJob:
		err = s.join(p, q)
	case callGather:
		waits, err = s.gather(p, q)
	case callSlot:
		r, err = s.lease(p)
	case callLeave:
		s.leave(p, q)
	case callDone:
		p.done = true
	default:
		err = fmt.Errorf("there is no call %q: %w", q.Call, rma.ErrRefused)
	}
	return r, waits, err
}

// connect makes the peer's queue pair, instead of its earlier one.
func (p *peer) connect(q *request) (reply, error) {
	if q.Address == nil {
		return reply{}, fmt.Errorf("a queue pair without an address: %w", rma.ErrRefused)
	}
	if p.end != nil {
		_ = p.end.close()
		p.end = nil
	}
	end, mine, err := p.s.card.pair(q.Address)
	if err != nil {
		return reply{}, err
	}
	p.end = end
	return reply{Address: mine}, nil
}

// join makes the peer a process of a job, which the first of them begins.
func (s *Server) join(p *peer, q *request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.job != nil || q.Count < 1 || q.Count > maxRanks || q.Index < 0 || q.Index >= q.Count {
		return fmt.Errorf("process %d of %d cannot be of job %q: %w", q.Index, q.Count, q.Name, rma.ErrRefused)
	}
	j := s.jobs[q.Name]
	if j == nil {
		j = &servedJob{name: q.Name, peers: make([]*peer, q.Count), groups: map[string]*gathering{}}
		s.jobs[q.Name] = j
	}
	switch {
	case j.gone:
		return fmt.Errorf("another process of job %q has ended: %w", q.Name, rma.ErrPeer)
	case len(j.peers) != q.Count:
		return fmt.Errorf("job %q has %d processes, and this one says %d: %w", q.Name, len(j.peers), q.Count, rma.ErrMismatch)
	case j.peers[q.Index] != nil:
		return fmt.Errorf("job %q has a process %d already; two jobs of one name meet here (RMALOCK_JOB names them): %w", q.Name, q.Index, rma.ErrMismatch)
	}
	j.peers[q.Index], p.job, p.index = p, j, q.Index
	return nil
}

// gather takes what a process brings to a collective call; the last one's is the answer of all.
func (s *Server) gather(p *peer, q *request) (waits bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := p.job
	switch {
	case j == nil:
		return false, fmt.Errorf("a collective call outside a job: %w", rma.ErrRefused)
	case j.gone:
		return false, fmt.Errorf("another process of job %q has ended: %w", j.name, rma.ErrPeer)
	case q.Count < 1 || q.Count > len(j.peers) || q.Index < 0 || q.Index >= q.Count:
		return false, fmt.Errorf("a collective call as process %d of %d: %w", q.Index, q.Count, rma.ErrRefused)
	}
	g := j.groups[q.Name]
	if g == nil {
		g = &gathering{brought: make([][]byte, q.Count), asked: make([]*peer, q.Count), ids: make([]uint64, q.Count)}
		j.groups[q.Name] = g
	}
	if len(g.brought) != q.Count || g.asked[q.Index] != nil {
		return false, fmt.Errorf("the processes of job %q are not in the same collective call: %w", j.name, rma.ErrMismatch)
	}
	g.brought[q.Index], g.asked[q.Index], g.ids[q.Index] = q.Data, p, q.ID
	if g.came++; g.came < q.Count {
		return true, nil
	}
	delete(j.groups, q.Name)
	for i, to := range g.asked {
		r := reply{ID: g.ids[i], All: g.brought}
		s.all.Add(1)
		go func() { // a peer that does not read keeps only itself waiting
			defer s.all.Done()
			_ = to.send(&r)
		}()
	}
	return true, nil
}

// leave ends what the connection had.
func (p *peer) leave() {
	s := p.s
	if p.end != nil {
		_ = p.end.close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.peers, p)
	for i := range s.slots {
		if s.slots[i].owner == p {
			s.slots[i].owner = nil
		}
	}
	for name, w := range s.windows {
		if w.owner == p {
			_ = s.drop(name)
		}
	}
	if p.job != nil {
		s.quit(p)
	}
}

// quit takes a process from its job. If it is not done, the others learn that it is gone.
func (s *Server) quit(p *peer) {
	j := p.job
	j.peers[p.index] = nil
	left := 0
	for _, other := range j.peers {
		if other == nil {
			continue
		}
		left++
		if !p.done {
			s.all.Add(1)
			go func() {
				defer s.all.Done()
				_ = other.send(&reply{Error: "a process of the job is gone", Class: "peer", Process: p.index})
			}()
		}
	}
	j.gone = j.gone || !p.done
	if left == 0 {
		delete(s.jobs, j.name)
	}
}
