package baseline

import (
	"fmt"

	"github.com/rmalock/rmalock/internal/values"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// NCoSED is N-CoSED, with which dslr compares (section 6.1), after
//
//	S. Narravula and others: High Performance Distributed Lock Management Services using
//	Network-based Remote Atomic Operations. CCGrid 2007:
//
// CAS for writers, FetchAndOp for readers, and messages between ranks where they meet.
//
//	word  class  whose memory                   fields
//	LOCK  far    the home: memory node or rank  rank and turn of the last writer; requests of readers since
//
// A writer swaps itself and a number, its turn, for what the word holds, and 0 for the readers. If
// there was a writer it asks that one for the lock, if there were readers alone it asks the lock's
// server. A reader adds 1; if there is a writer it asks that one. The rank that was asked grants
// the lock when it has released it and the readers that it let in have left. The server does so for
// readers that met no writer.
//
// 1+1 remote operations exclusively and 1+0 shared, and a message for the release of a reader.
// A rank that waits sends a message and gets one. A message is a Put of the message and one of a
// bell, and later one by its receiver, which says that the next may come.
//
// Writers enter in the order of their swaps; a reader may be passed by writers.
//
// A rank answers others in its calls of Lock, Unlock and Serve: one that computes keeps them
// waiting. The last NCoSEDConfig.Servers ranks serve, and take no locks; see [lock.Server].
//
// # Where it differs
//
// The paper's text is not the source, but the account of dslr and the two programs of its
// authors, which are unsafe: one lets a writer in beside readers, and neither tells a request
// for an old turn of a writer from one for its new turn. Hence the turn.
type NCoSED struct {
	table
	mail    *mail
	clients int
	servers int
	turn    int64
	same    bool     // of a test: all turns have one number
	records []record // turns of this rank that are not over
	homes   []homed  // of a server: locks whose readers it counts
	granted bool     // the rank's last request is
	readAs  [MaxHeld]writerTurn
	turns   [MaxHeld]int64

	ended   int  // of the first server: ranks that want no more locks
	ending  bool // the rank has said so
	stopped bool // and so have all
}

var (
	_ lock.Checked = (*NCoSED)(nil)
	_ lock.Server  = (*NCoSED)(nil)
)

// NCoSEDConfig of a table of N-CoSED locks.
type NCoSEDConfig struct {
	Config
	Servers int // the last ranks, which serve; 0 means 1
}

// writerTurn is whom a reader has asked; rank -1 for none.
type writerTurn struct {
	rank int
	turn int64
}

var ncosed = struct{ rank, turn, shared rma.Field }{
	rank:   rma.Field{Name: "writer", Shift: 44, Bits: 20},
	turn:   rma.Field{Name: "turn", Shift: 32, Bits: 12},
	shared: rma.Field{Name: "readers", Shift: 0, Bits: 32},
}

const ncosedName = "ncosed"

// NewNCoSED opens a table of N-CoSED locks. Collective; all ranks pass the same Config.
func NewNCoSED(c rma.Comm, cfg NCoSEDConfig) (*NCoSED, error) {
	if cfg.Servers == 0 {
		cfg.Servers = 1
	}
	clients := c.Size() - cfg.Servers
	if cfg.Servers < 1 || clients < 1 || c.Size() >= 1<<12 {
		return nil, fmt.Errorf("baseline: %s: %d ranks of %d serve, want at least one, one that does not, and less than 4,096 in all: %w",
			ncosedName, cfg.Servers, c.Size(), lock.ErrConfig)
	}
	t, err := openWords(c, ncosedName, cfg.Config, rma.Word{Name: "LOCK", Class: rma.Far, Fields: []rma.Field{ncosed.rank, ncosed.turn, ncosed.shared}})
	if err != nil {
		return nil, err
	}
	m, err := openMail(c, ncosedName+"-mail", letter.kind, letter.turn, letter.shared, letter.lock)
	if err != nil {
		return nil, err
	}
	return &NCoSED{table: t, mail: m, clients: clients, servers: cfg.Servers}, nil
}

func init() {
	lock.Register(lock.Info{
		Name:   ncosedName,
		Title:  "N-CoSED, CAS and fetch-and-add on one word, and messages between ranks that meet",
		Shared: true,
		Serves: true,
		Fair:   "writers in the order of their swaps; a reader may be passed by writers",
		Params: []lock.Param{
			{Name: "SERVERS", Help: "the number of ranks that serve, the last ones; default 1"},
			paramR, paramL, paramRetries,
		},
		Open: func(c rma.Comm, n, home int) (lock.Table, error) {
			return NewNCoSED(c, NCoSEDConfig{Config: Config{Locks: n, Home: home}})
		},
		OpenWith: func(c rma.Comm, s lock.Setting) (lock.Table, error) {
			var cfg NCoSEDConfig
			base, err := parse(ncosedName, s, Full, func(_, value string) (err error) {
				cfg.Servers, err = values.Number(value, 1)
				return err
			})
			if err != nil {
				return nil, err
			}
			cfg.Config = base
			return NewNCoSED(c, cfg)
		},
	})
}

// Promise has no bound on readers that wait, nor on operations: a swap is tried until it
// succeeds, and a rank answers others in its calls.
func (t *NCoSED) Promise(lock.Mode) lock.Promise { return unfair(lock.Unbounded, lock.Unbounded) }

// Idle checks that the rank holds nothing and owes nothing, and that words are 0.
func (t *NCoSED) Idle() error {
	if len(t.records)+len(t.homes)+len(t.mail.out) > 0 {
		return fmt.Errorf("baseline: %s: rank %d has %d turns, %d locks with readers and %d messages", ncosedName, t.c.Rank(), len(t.records), len(t.homes), len(t.mail.out))
	}
	return t.table.Idle()
}

// Serves reports whether the caller serves.
func (t *NCoSED) Serves() bool { return t.c.Rank() >= t.clients }

// server is the rank that counts the readers of a lock.
func (t *NCoSED) server(id int) int { return t.clients + id%t.servers }

// Free closes the windows. Collective; see [lock.Server].
func (t *NCoSED) Free() error {
	if err := t.mail.w.Free(); err != nil {
		return err
	}
	return t.table.Free()
}
