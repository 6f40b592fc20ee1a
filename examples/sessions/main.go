// Command sessions keeps the sessions of users in a key-value store on memory nodes. Clients update
// some of them all the time: updates of one key that meet are combined, and the last one wins.
// At the end each session holds the last update of the client that wrote it.
//
//	go run ./examples/sessions -ranks 4
//	go build -o bin/ ./examples/sessions && mpirun -n 5 bin/sessions -memory-nodes 1
package main

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/rmalock/rmalock/cider"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/mpi"
)

const (
	users   = 50
	hot     = 5    // users that have half of the updates, and more
	updates = 1000 // of each client
)

func main() {
	backend := flag.String("backend", "auto", "where ranks come from: mpi, inproc, or auto: mpi under mpirun or srun")
	ranks := flag.Int("ranks", 4, "ranks of the inproc backend")
	memoryNodes := flag.Int("memory-nodes", -1, "number of memory nodes; under MPI they are some of the ranks (default 1, under MPI 0: the ranks' own memory)")
	flag.Parse()
	if err := start(*backend, *ranks, *memoryNodes, serve); err != nil {
		fmt.Fprintln(os.Stderr, "sessions:", err)
		os.Exit(1)
	}
}

// start runs f at every rank but memory nodes, which serve until the others have ended.
func start(backend string, ranks, memoryNodes int, f func(rma.Comm) error) error {
	switch {
	case backend == "mpi" || backend == "auto" && mpi.Launched():
		return mpi.Config{MemoryNodes: max(memoryNodes, 0)}.Run(f)
	case ranks < 1:
		return fmt.Errorf("-ranks is %d, want at least 1 rank", ranks)
	case backend == "inproc" || backend == "auto":
		if memoryNodes < 0 {
			memoryNodes = 1
		}
		return inproc.Job{Nodes: 1, PerNode: ranks, MemoryNodes: memoryNodes}.Run(f)
	}
	return fmt.Errorf("no backend is called %q", backend)
}

// A session is what the store has of a user: the client that wrote it last, and the number of that
// update among the client's own.
type session struct{ client, number uint64 }

func (s session) bytes() []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, s.client), s.number)
}

func read(b []byte) (session, error) {
	if len(b) != 16 {
		return session{}, fmt.Errorf("a session of %d bytes, want 16", len(b))
	}
	return session{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}, nil
}

// serve is the program of one rank.
func serve(c rma.Comm) error {
	// Words for blocks are left to the store: two for each key, and some for each client.
	s, err := cider.New(c, cider.Config{Keys: users, Most: 16})
	if err != nil {
		return err
	}
	me := uint64(c.Rank())
	last := make([]int64, users) // the number of this client's last update of each key
	for user := c.Rank(); user < users; user += c.Size() {
		if _, err := s.Insert(user, session{client: me}.bytes()); err != nil {
			return err
		}
	}
	// A client that rests lets others use memory again that it may have been reading.
	if err := errors.Join(s.Rest(), c.Barrier()); err != nil {
		return err
	}
	draw := rand.New(rand.NewPCG(11, me))
	buffer := make([]byte, 0, 16)
	for number := 1; number <= updates; number++ {
		user := draw.IntN(users)
		if draw.IntN(2) == 0 {
			user = draw.IntN(hot)
		}
		there, err := s.Update(user, session{me, uint64(number)}.bytes())
		if err != nil || !there {
			return fmt.Errorf("update of user %d: there %t, error %w", user, there, err)
		}
		last[user] = int64(number)
		// A search finds this update or a later one of another client, never an older one of this.
		value, there, err := s.Search(user, buffer[:0])
		if err != nil || !there {
			return fmt.Errorf("search of user %d: there %t, error %w", user, there, err)
		}
		if found, err := read(value); err != nil || found.client == me && found.number != uint64(number) {
			return fmt.Errorf("user %d has update %d of client %d after its update %d: %w", user, found.number, me, number, err)
		}
	}
	if err := errors.Join(s.Rest(), c.Barrier()); err != nil {
		return err
	}
	all, err := c.Allgather(last)
	if err != nil {
		return err
	}
	wrong := error(nil)
	if c.Rank() == 0 {
		if wrong = audit(s, all); wrong == nil {
			fmt.Printf("sessions: %d ranks made %d updates of %d users: each has the last one\n", c.Size(), updates*c.Size(), users)
		}
	}
	return errors.Join(rma.Agree(c, wrong), s.Rest(), s.Free())
}

// audit compares each session with the last updates of all clients.
func audit(s *cider.Store, last []int64) error {
	for user := range users {
		value, there, err := s.Search(user, nil)
		if err != nil || !there {
			return fmt.Errorf("search of user %d: there %t, error %w", user, there, err)
		}
		found, err := read(value)
		if err != nil {
			return err
		}
		if found.client*users >= uint64(len(last)) {
			return fmt.Errorf("user %d has an update of client %d, which there is not", user, found.client)
		}
		if want := last[int(found.client)*users+user]; int64(found.number) != want {
			return fmt.Errorf("user %d has update %d of client %d, whose last one was %d", user, found.number, found.client, want)
		}
	}
	return nil
}
