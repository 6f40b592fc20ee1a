package topo

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync"
	"weak"

	"github.com/rmalock/rmalock/rma"
)

// Discover finds the topology of a job: each rank finds its own place, and all
// exchange them. Collective; all ranks get the same, and ranks of one process one
// and the same Topology. Which ranks share a node is what c.Node says; host names
// are labels.
//
// A machine that tells nothing of itself gives the levels machine and node, and
// Notes says why. Errors are the transport's, or wrap ErrTopology.
func Discover(c rma.Comm) (*Topology, error) { return discover(c, Options{}) }

func discover(c rma.Comm, o Options) (*Topology, error) {
	p, err := Local(o)
	if err != nil {
		p = Place{} // the others wait for this rank
		p.note("%v", err)
		p.locate(&machine{levels: compose(nil, nil).levels})
	}
	p.Node = c.Node().Index
	all, err := rma.AllgatherBytes(c, p.encode())
	if err != nil {
		return nil, fmt.Errorf("topo: exchange of places: %w", err)
	}
	return share(all)
}

// latest is the topology that was built last, as long as somebody uses it. Ranks
// that are goroutines of one process get the same one, and not each its own tables
// of the size of the job.
var latest struct {
	sync.Mutex
	key [sha256.Size]byte
	t   weak.Pointer[Topology]
}

// share builds the topology of encoded places, or finds it.
func share(all [][]byte) (*Topology, error) {
	h := sha256.New()
	for _, b := range all {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(b))))
		h.Write(b)
	}
	var key [sha256.Size]byte
	h.Sum(key[:0])
	latest.Lock()
	defer latest.Unlock()
	if latest.key == key {
		if t := latest.t.Value(); t != nil {
			return t, nil
		}
	}
	places := make([]Place, len(all))
	for r, b := range all {
		var err error
		if places[r], err = decodePlace(b); err != nil {
			return nil, fmt.Errorf("topo: rank %d: %w", r, err)
		}
	}
	t, err := Build(places)
	if err != nil {
		return nil, err
	}
	latest.key, latest.t = key, weak.Make(t)
	return t, nil
}
