package netmodel

import (
	"container/heap"
	"math/rand/v2"

	"github.com/rmalock/rmalock/rma"
)

// A client issues operations of one kind in a closed loop.
type client struct {
	rank   int
	kind   rma.Kind
	words  int
	window int // operations under way
	next   func(*rand.Rand) (to int, word uint64)

	busy int  // operations under way
	idle bool // waits for one of them
}

// load is clients at work on a network: an event loop of its own, apart from the
// simulator's.
type load struct {
	net     *Net
	clients []*client
	events  eventHeap
	seq     int
	rng     *rand.Rand
	from    int64 // when measurement begins
	done    int   // operations since
	latency int64 // their sum
	log     func(at int64, stage, rank int)
}

type op struct {
	at      int64
	seq     int
	c       *client
	stage   int // 0 post, 1 arrived, 2 in effect, 3 seen
	to      int
	word    uint64
	started int64
}

type eventHeap []op

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(op)) }
func (h *eventHeap) Pop() any {
	x := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return x
}

func (l *load) push(o op) {
	l.seq++
	o.seq = l.seq
	heap.Push(&l.events, o)
}

// run runs for so long, measures after a quarter of it, and returns the rate in
// million operations a second and their mean latency in nanoseconds.
func (l *load) run(ns int64) (rate, latency float64) {
	l.rng = rand.New(rand.NewPCG(1, 2))
	l.from = ns / 4
	for i, c := range l.clients {
		l.push(op{at: int64(i % 97), c: c})
	}
	for len(l.events) > 0 {
		o := heap.Pop(&l.events).(op)
		if o.at > ns {
			break
		}
		c := o.c
		switch o.stage {
		case 0:
			o.to, o.word = c.next(l.rng)
			o.started = o.at
			free, arrives := l.net.Issue(o.at, c.rank, o.to, c.kind, c.words, c.busy == 0)
			c.busy++
			if c.idle = c.busy == c.window; !c.idle {
				l.push(op{at: free, c: c})
			}
			o.stage, o.at = 1, arrives
		case 1:
			o.stage, o.at = 2, l.net.Serve(o.at, c.rank, o.to, c.kind, c.words, o.word)
		case 2:
			o.stage, o.at = 3, l.net.Reply(o.at, c.rank, o.to, c.kind, c.words)
		case 3:
			if o.at >= l.from {
				l.done++
				l.latency += o.at - o.started
			}
			c.busy--
			if c.idle {
				c.idle = false
				l.push(op{at: o.at, c: c})
			}
			continue
		}
		if l.log != nil {
			l.log(o.at, o.stage, c.rank)
		}
		if o.stage > 0 {
			l.push(o)
		}
	}
	return float64(l.done) * 1e3 / float64(ns-l.from), float64(l.latency) / float64(max(l.done, 1))
}
