package bench

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/rmalock/rmalock/internal/history"
	"github.com/rmalock/rmalock/rma"
)

const (
	// historyMost is the number of operations, of all clients together, up to which a run is checked
	// for linearizability. Beyond it each key's last write is checked alone.
	historyMost    = 20_000
	historyClients = 16 // more at one key have too many orders
	historyTime    = 20 * time.Second
	eventWords     = 6
)

// A kvHistory is a kvIndex that notes what its client asks, what it gets, and when.
type kvHistory struct {
	kvIndex
	c      rma.Comm
	events []int64 // eventWords each: from, to, what, key, value, ok
	most   int     // events that there is room for
	over   bool    // more operations are not noted
	unsure bool    // one has failed, and may have taken effect, or there were too many
}

// newHistory notes the operations of a short run on one node, whose ranks have one clock; of
// others the index is as it was.
func newHistory(c rma.Comm, x KV, cfg *Config, index kvIndex) (kvIndex, *kvHistory) {
	each := historyMost / c.Size()
	if cfg.virtual != nil || cfg.Duration > 0 || cfg.Acquires > each || c.Size() > historyClients || c.Node().Count > 1 || x.YCSB == ycsbScans {
		return index, nil
	}
	// Two operations of one acquire, and the warm-up's.
	most := 2*cfg.Acquires + 64
	h := &kvHistory{kvIndex: index, c: c, events: make([]int64, 0, eventWords*most), most: most}
	return h, h
}

func (h *kvHistory) note(from int64, what byte, key []byte, value int64, ok bool, err error) {
	if h.over {
		return
	}
	if err != nil || len(h.events) == eventWords*h.most {
		h.over, h.unsure = true, true
		return
	}
	h.events = append(h.events, from, h.c.Now(), int64(what), int64(binary.BigEndian.Uint64(key)), value, 0)
	if ok {
		h.events[len(h.events)-1] = 1
	}
}

// stampIn is the stamp of a value that is there.
func stampIn(value []byte, there bool) int64 {
	if !there || len(value) < 8 {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(value))
}

func (h *kvHistory) Search(key, dst []byte) ([]byte, bool, error) {
	from := h.c.Now()
	v, there, err := h.kvIndex.Search(key, dst)
	h.note(from, history.Get, key, stampIn(v, there), there, err)
	return v, there, err
}

func (h *kvHistory) Insert(key, value []byte) (bool, error) {
	from := h.c.Now()
	ok, err := h.kvIndex.Insert(key, value)
	h.note(from, history.Insert, key, stampIn(value, true), ok, err)
	return ok, err
}

func (h *kvHistory) Update(key, value []byte) (bool, error) {
	from := h.c.Now()
	ok, err := h.kvIndex.Update(key, value)
	h.note(from, history.Update, key, stampIn(value, true), ok, err)
	return ok, err
}

func (h *kvHistory) Delete(key []byte) (bool, error) {
	from := h.c.Now()
	ok, err := h.kvIndex.Delete(key)
	h.note(from, history.Delete, key, 0, ok, err)
	return ok, err
}

// check looks whether the history of all clients is linearizable, on rank 0, and returns how many
// operations it has: 0 if a client is not sure of one, or the check takes too long. Keys up to
// loaded had the value 0 before. Collective.
func (h *kvHistory) check(loaded int) (int64, error) {
	send := make([]int64, 2+eventWords*h.most)
	send[0] = int64(len(h.events))
	if h.unsure {
		send[1] = 1
	}
	copy(send[2:], h.events)
	all, err := h.c.Allgather(send)
	if err != nil || h.c.Rank() != 0 {
		return 0, err
	}
	var ops []porcupine.Operation
	known := map[int64]bool{}
	for rank := range h.c.Size() {
		of := all[rank*len(send) : (rank+1)*len(send)]
		if of[1] != 0 {
			return 0, nil
		}
		for e := of[2 : 2+of[0]]; len(e) > 0; e = e[eventWords:] {
			c, a := history.Call{What: byte(e[2]), Key: e[3], Value: e[4]}, history.Answer{OK: e[5] != 0}
			if c.What == history.Get {
				c.Value, a.Value = 0, e[4]
			}
			if c.Key < int64(loaded) && !known[c.Key] {
				known[c.Key] = true
				ops = append(ops, porcupine.Operation{ClientId: h.c.Size(), Input: history.Call{What: history.Set, Key: c.Key}, Output: history.Answer{}, Call: -2, Return: -1})
			}
			ops = append(ops, porcupine.Operation{ClientId: rank, Input: c, Output: a, Call: e[0], Return: e[1]})
		}
	}
	switch porcupine.CheckOperationsTimeout(history.Model, ops, historyTime) {
	case porcupine.Unknown: // not decided
		return 0, nil
	case porcupine.Illegal:
		return 0, fmt.Errorf("%w, of %d operations: %w", history.Err, len(ops)-len(known), ErrExclusion)
	case porcupine.Ok:
	}
	return int64(len(ops) - len(known)), nil
}
