package baseline

import (
	"context"
	"fmt"

	"github.com/rmalock/rmalock/internal/values"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// Traditional is the traditional lock manager of dslr, section 6.1: "each node is in charge of
// managing the locks for its own objects", which others ask by messages. The last
// TraditionalConfig.Servers ranks are those nodes; they take no locks (see [lock.Server]), and
// keep the locks' state in memory of their own.
//
// A lock has a queue, first come, first served; readers that follow each other in it share the
// lock. Traditional_RO (section 6.4) reorders readers: while readers hold the lock and a writer
// waits, up to Passes more may come in before that writer.
//
// 2+2 messages, and one more for a grant after a wait: nothing is polled. The other ranks of a
// server that dies wait for ever.
type Traditional struct {
	*requests
	name    string
	locks   int
	home    int
	passes  int
	timeout int64
	held    held

	managed map[int]*managed // of a server: locks that are held or wanted
	unused  []*managed
}

var (
	_ lock.Checked = (*Traditional)(nil)
	_ lock.Server  = (*Traditional)(nil)
)

// TraditionalConfig of a table of traditional locks.
type TraditionalConfig struct {
	Locks   int // number of locks; 0 means 1
	Home    int // server of lock 0, from 0; lock id is at (Home+id) mod Servers
	Servers int // the last ranks, which serve; 0 means 1
	// Passes is the number of readers that may pass a writer that waits: 0 for strict order. dslr
	// has 10 in Traditional_RO.
	Passes int
	// TimeoutNs is how long the Lock of a rank that holds other locks waits before it returns
	// lock.ErrGiveWay; 0 for ever. The code of dslr's authors has 100 ms.
	TimeoutNs int64
}

// A managed lock is a server's.
type managed struct {
	writer  bool
	readers int
	queue   []waiting
}

// waiting is a request in a queue.
type waiting struct {
	client int
	v      int64 // the request
	passed int   // readers that have passed this writer
}

// NewTraditional opens a table of traditional locks. Collective; all ranks pass the same Config.
func NewTraditional(c rma.Comm, cfg TraditionalConfig) (*Traditional, error) {
	name := "traditional"
	if cfg.Passes > 0 {
		name = "traditional-ro"
	}
	return openTraditional(c, name, cfg)
}

func openTraditional(c rma.Comm, name string, cfg TraditionalConfig) (*Traditional, error) {
	if cfg.Locks == 0 {
		cfg.Locks = 1
	}
	if cfg.Servers == 0 {
		cfg.Servers = 1
	}
	if cfg.Locks < 0 || cfg.Home < 0 || cfg.Passes < 0 || cfg.TimeoutNs < 0 || int64(cfg.Locks) > request.lock.Get(-1) {
		return nil, fmt.Errorf("baseline: %s: Locks is %d, Home %d, Passes %d and TimeoutNs %d, want no negative numbers, and locks up to 2^32: %w",
			name, cfg.Locks, cfg.Home, cfg.Passes, cfg.TimeoutNs, lock.ErrConfig)
	}
	r, err := openRequests(c, name, cfg.Servers)
	if err != nil {
		return nil, err
	}
	t := &Traditional{
		requests: r, name: name, locks: cfg.Locks, home: cfg.Home % cfg.Servers, passes: cfg.Passes, timeout: cfg.TimeoutNs,
	}
	return t, nil
}

func init() {
	for name, about := range map[string]struct {
		title, fair string
		passes      int
	}{
		"traditional":    {"a traditional lock manager, ranks that serve others", "first come, first served", 0},
		"traditional-ro": {"a traditional lock manager that lets readers pass a writer", "a writer is passed by up to 10 readers", 10},
	} {
		params := []lock.Param{
			{Name: "SERVERS", Help: "the number of ranks that serve, the last ones; default 1"},
			{Name: "TIMEOUT", Help: "how long a rank that holds other locks waits before ErrGiveWay, as in 100ms; default 0, for ever"},
		}
		if about.passes > 0 {
			params = append(params, lock.Param{Name: "PASSES", Help: "readers that may pass a writer that waits; default 10"})
		}
		lock.Register(lock.Info{
			Name: name, Title: about.title, Fair: about.fair, Shared: true, Serves: true, Params: params,
			Open: func(c rma.Comm, n, home int) (lock.Table, error) {
				return openTraditional(c, name, TraditionalConfig{Locks: n, Home: home, Passes: about.passes})
			},
			OpenWith: func(c rma.Comm, s lock.Setting) (lock.Table, error) {
				cfg := TraditionalConfig{Passes: about.passes}
				base, err := parse(name, s, Fixed, func(param, value string) (err error) {
					switch param {
					case "SERVERS":
						cfg.Servers, err = values.Number(value, 1)
					case "TIMEOUT":
						cfg.TimeoutNs, err = values.Time(value)
					case "PASSES":
						cfg.Passes, err = values.Number(value, 0)
					}
					return err
				})
				if err != nil {
					return nil, err
				}
				cfg.Locks, cfg.Home = base.Locks, base.Home
				return openTraditional(c, name, cfg)
			},
		})
	}
}

// Len is the number of locks.
func (t *Traditional) Len() int { return t.locks }

// Home is the rank that manages a lock.
func (t *Traditional) Home(id int) int {
	if uint(id) >= uint(t.locks) {
		panic(fmt.Sprintf("baseline: lock %d of a table of %d", id, t.locks))
	}
	return t.clients + (t.home+id)%t.servers
}

// Promise says that a rank whose request has arrived is passed by each other one once: servers
// look at ranks in turn, and then the queue is in order. With Passes so many readers more pass a
// writer, and readers that wait are passed without a bound.
func (t *Traditional) Promise(mode lock.Mode) lock.Promise {
	p := lock.Promise{Bypass: t.clients - 1 + t.passes, Acquire: 2, Release: 2}
	if mode == lock.Shared && t.passes > 0 {
		p.Bypass = lock.Unbounded
	}
	return p
}

// Idle checks that the rank holds nothing, and a server that no rank does.
func (t *Traditional) Idle() error {
	if h := &t.held; h.busy != 0 || len(t.managed) > 0 {
		return fmt.Errorf("baseline: %s: rank %d holds %b, and manages %d locks that are held or wanted", t.name, t.c.Rank(), h.busy, len(t.managed))
	}
	return nil
}

// Lock takes lock id.
func (t *Traditional) Lock(ctx context.Context, id int, mode lock.Mode) error {
	home := t.Home(id)
	k, err := t.claim(id, mode)
	if err != nil {
		return err
	}
	if err = t.queue(ctx, home, id, mode); err != nil {
		t.held.unclaim(k)
	}
	return err
}

func (t *Traditional) claim(id int, mode lock.Mode) (int, error) {
	if t.Serves() {
		panic("baseline: lock by a rank that serves")
	}
	return t.held.claim(t.name, id, mode)
}

// queue asks for a lock and waits until it is granted, or for too long.
func (t *Traditional) queue(ctx context.Context, home, id int, mode lock.Mode) error {
	answer, err := t.ask(home, askLock, id, mode)
	if err != nil || answer == answerYes {
		return err
	}
	granted, why := false, lock.ErrGiveWay
	switch {
	case ctx.Done() != nil:
		granted, err = t.watch(ctx)
		why = lock.ErrDeadline
	case t.timeout > 0 && t.held.several():
		granted, err = t.later(t.c.Now() + t.timeout)
	default:
		granted, err = t.later(rma.Forever)
	}
	if granted || err != nil {
		return err
	}
	if answer, err = t.ask(home, askGiveUp, id, mode); err != nil || answer == answerYes { // granted meanwhile
		return err
	}
	if why == lock.ErrDeadline {
		return fmt.Errorf("baseline: %s: lock %d: %w (%w)", t.name, id, why, context.Cause(ctx))
	}
	return fmt.Errorf("baseline: %s: lock %d: it was not granted in %d ns: %w", t.name, id, t.timeout, why)
}

// watchNs is the time between two looks at a context.
const watchNs = 10_000

// watch waits for the second answer to the last request until ctx ends.
func (t *Traditional) watch(ctx context.Context) (bool, error) {
	for {
		switch {
		case t.w.Peek(t.answerAt()) == t.yes(t.number):
			return true, nil
		case ctx.Err() != nil:
			return false, nil
		}
		t.c.Sleep(watchNs)
	}
}

// TryLock takes lock id if it is free. It asks, and waits for the answer.
func (t *Traditional) TryLock(id int, mode lock.Mode) (bool, error) {
	home := t.Home(id)
	k, err := t.claim(id, mode)
	if err != nil {
		return false, err
	}
	answer, err := t.ask(home, askTry, id, mode)
	if answer == answerNo || err != nil {
		t.held.unclaim(k)
	}
	return answer == answerYes && err == nil, err
}

// Unlock releases lock id.
func (t *Traditional) Unlock(id int, mode lock.Mode) error {
	home := t.Home(id)
	t.held.unclaim(t.held.claimed(id, mode))
	_, err := t.ask(home, askUnlock, id, mode)
	return err
}

// Mutex is a handle on lock id, a lock.RWMutex.
func (t *Traditional) Mutex(id int) lock.Mutex {
	t.Home(id)
	return &handle{t, id}
}

// Free closes the window. Collective; see [lock.Server].
func (t *Traditional) Free() error { return t.w.Free() }

// Serve is of lock.Server.
func (t *Traditional) Serve() (more bool, err error) {
	if !t.Serves() {
		return false, t.end()
	}
	client, v, err := t.receive()
	if err != nil {
		return false, err
	}
	id, mode := int(request.lock.Get(v)), lock.Mode(request.mode.Get(v))
	answer := int64(answerYes)
	switch request.what.Get(v) {
	case askEnd:
		t.ended++
	case askUnlock:
		if err := t.unlock(id, mode); err != nil {
			return false, err
		}
	case askGiveUp:
		if answer, err = t.giveUp(id, client); err != nil {
			return false, err
		}
	default:
		answer = t.lock(id, mode, client, v)
	}
	if err := t.requests.answer(client, v, answer); err != nil {
		return false, err
	}
	if t.ended == t.clients {
		t.ended = 0
		return false, nil
	}
	return true, nil
}

// manage finds what a server knows of a lock.
func (t *Traditional) manage(id int) *managed {
	if t.managed == nil {
		t.managed = map[int]*managed{}
	}
	m := t.managed[id]
	if m == nil {
		if n := len(t.unused); n > 0 {
			m, t.unused = t.unused[n-1], t.unused[:n-1]
		} else {
			m = &managed{}
		}
		t.managed[id] = m
	}
	return m
}

// forget forgets a lock that is free.
func (t *Traditional) forget(id int, m *managed) {
	if !m.writer && m.readers == 0 && len(m.queue) == 0 {
		delete(t.managed, id)
		t.unused = append(t.unused, m)
	}
}

// lock grants a lock or, but for a try, queues the request.
func (t *Traditional) lock(id int, mode lock.Mode, client int, v int64) int64 {
	m := t.manage(id)
	switch {
	case m.fits(mode) && (len(m.queue) == 0 || mode == lock.Shared && m.pass(t.passes)):
		m.grant(mode)
		return answerYes
	case request.what.Get(v) == askLock:
		m.queue = append(m.queue, waiting{client: client, v: v})
	default:
		t.forget(id, m)
	}
	return answerNo
}

// fits reports whether a mode goes with the holders.
func (m *managed) fits(mode lock.Mode) bool {
	return !m.writer && (mode == lock.Shared || m.readers == 0)
}

func (m *managed) grant(mode lock.Mode) {
	if mode == lock.Shared {
		m.readers++
	} else {
		m.writer = true
	}
}

// pass lets a reader pass the writers that wait, if none of them has been passed by most.
func (m *managed) pass(most int) bool {
	for i := range m.queue {
		if w := &m.queue[i]; request.mode.Get(w.v) == int64(lock.Exclusive) && w.passed >= most {
			return false
		}
	}
	for i := range m.queue {
		m.queue[i].passed++
	}
	return true
}

// unlock lets a lock go, and grants it to those that come next in the queue.
func (t *Traditional) unlock(id int, mode lock.Mode) error {
	m := t.manage(id)
	if mode == lock.Shared {
		m.readers--
	} else {
		m.writer = false
	}
	return t.next(id, m)
}

// next grants a lock to the ranks at the head of its queue that fit.
func (t *Traditional) next(id int, m *managed) error {
	n := 0
	for ; n < len(m.queue); n++ {
		w := m.queue[n]
		mode := lock.Mode(request.mode.Get(w.v))
		if !m.fits(mode) {
			break
		}
		m.grant(mode)
		if err := t.requests.answer(w.client, w.v, answerYes); err != nil {
			return err
		}
	}
	m.queue = append(m.queue[:0], m.queue[n:]...)
	t.forget(id, m)
	return nil
}

// giveUp takes a rank's request out of a queue. It answers yes if the lock was granted.
func (t *Traditional) giveUp(id, client int) (int64, error) {
	m := t.manage(id)
	for i := range m.queue {
		if m.queue[i].client == client {
			m.queue = append(m.queue[:i], m.queue[i+1:]...)
			return answerNo, t.next(id, m) // readers may be behind it
		}
	}
	return answerYes, nil
}
