package discover

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"weak"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/topo"
)

// Topology finds the topology of a job: each rank finds its own place, and all
// exchange them. Collective; all ranks get the same, and ranks of one process one
// and the same Topology. Which ranks share a node is what c.Node says; host names
// are labels. Levels inside the nodes need an import (see the package comment).
//
// Two variables in the environment of rank 0, wherever the others are, say what the
// system does not:
//
//   - RMALOCK_TOPO is a file from which all ranks read the topology ([topo.ReadFile]), in
//     place of all that could be discovered. Ranks take its places in order, and there
//     must be one for every rank.
//   - RMALOCK_RACKS tells by host names what nodes lie in, in place of what Slurm
//     says: a regular expression whose named groups are levels above the node, from
//     the outside in, such as ^(?P<rack>r[0-9]+)n.
//
// A machine that tells nothing of itself gives the levels machine and node, and the
// notes say why. Errors are the transport's, or wrap topo.ErrTopology: the file cannot
// be read, or is for another number of ranks; the regular expression is none.
func Topology(c rma.Comm) (*topo.Topology, error) { return discover(c, Options{}) }

func discover(c rma.Comm, o Options) (*topo.Topology, error) {
	var p report
	if !rma.Simulated(c) {
		var err error
		if p, err = local(o); err != nil {
			p = report{} // the others wait for this rank
			p.note("%v", err)
			p.locate(thisMachine())
		}
	}
	p.Node = c.Node().Index
	mine := p.encode()
	if c.Rank() == 0 {
		mine = encodeWish(o.env(), mine)
	}
	found, err := rma.Combine(c, mine, join)
	switch {
	case err == nil && found.file == "":
		return found.t, nil
	case err == nil:
		return discoverFile(c, found.file, found.all)
	case errors.Is(err, topo.ErrTopology):
		return nil, err
	}
	return nil, fmt.Errorf("discover: exchange of places: %w", err)
}

// gathering is what the places of all ranks come to: a topology, or the file to read it from.
type gathering struct {
	t    *topo.Topology
	file string
	all  [][]byte // encoded places
}

// join makes it of encoded places, the first after rank 0's wish.
func join(all [][]byte) (g gathering, err error) {
	var pattern string
	g.all = slices.Clone(all)
	if g.file, pattern, g.all[0], err = decodeWish(all[0]); err == nil && g.file == "" {
		g.t, err = share(append(slices.Clip(g.all), []byte(pattern)), func() (*topo.Topology, error) { return buildEncoded(g.all, pattern) })
	}
	return g, err
}

// encodeWish puts what rank 0's environment says before its place.
func encodeWish(env func(string) string, place []byte) []byte {
	b := []byte{}
	for _, name := range []string{EnvFile, EnvRacks} {
		value := env(name)
		if name == EnvFile && value != "" {
			if abs, err := filepath.Abs(value); err == nil {
				value = abs // others may run elsewhere
			}
		}
		b = append(binary.AppendUvarint(b, uint64(len(value))), value...)
	}
	return append(b, place...)
}

func decodeWish(b []byte) (file, pattern string, place []byte, err error) {
	d := decoder{b: string(b)}
	file, pattern = d.text(), d.text()
	if d.bad {
		return "", "", nil, fmt.Errorf("discover: rank 0: %w", errGarbled)
	}
	return file, pattern, []byte(d.b), nil
}

// buildEncoded is build of encoded reports, after racks by host names.
func buildEncoded(all [][]byte, pattern string) (*topo.Topology, error) {
	places, err := decodeReports(all)
	if err != nil {
		return nil, err
	}
	if pattern != "" {
		x, err := parseRacks(pattern)
		if err != nil {
			return nil, err
		}
		if note := x.place(places); note != "" {
			places[0].note("%s", note)
		}
	}
	return build(places)
}

func decodeReports(all [][]byte) ([]report, error) {
	places := make([]report, len(all))
	for r, b := range all {
		var err error
		if places[r], err = decodeReport(b); err != nil {
			return nil, fmt.Errorf("discover: rank %d: %w", r, err)
		}
	}
	return places, nil
}

// discoverFile reads the topology from a file, at all ranks.
func discoverFile(c rma.Comm, file string, all [][]byte) (*topo.Topology, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		err = fmt.Errorf("discover: %s: %w: %w", EnvFile, err, topo.ErrTopology)
	}
	if err := rma.Agree(c, err); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	t, err := rma.Combine(c, sum[:], func(sums [][]byte) (*topo.Topology, error) {
		for r, s := range sums {
			if !bytes.Equal(s, sums[0]) {
				return nil, fmt.Errorf("discover: %s: file %s is not the same for ranks 0 and %d; put it where all nodes find one: %w", EnvFile, file, r, topo.ErrTopology)
			}
		}
		return share(append(slices.Clip(all), []byte(file), text), func() (*topo.Topology, error) { return buildFile(file, text, all) })
	})
	if err != nil && !errors.Is(err, topo.ErrTopology) {
		return nil, fmt.Errorf("discover: exchange of sums: %w", err)
	}
	return t, err
}

// buildFile makes the topology of the text of a file, for ranks with encoded places.
func buildFile(file string, text []byte, all [][]byte) (*topo.Topology, error) {
	t, err := topo.Read(text)
	if err == nil {
		t, err = t.For(len(all))
	}
	if err != nil {
		return nil, fmt.Errorf("discover: %s: file %s: %w", EnvFile, file, err)
	}
	places, err := decodeReports(all)
	if err != nil {
		return nil, err
	}
	notes := []string{"read from " + file + ", which " + EnvFile + " names"}
	return t.WithNotes(append(append(notes, t.Notes()...), checkNodes(t, places)...)...), nil
}

// checkNodes says where an element at level node is not what shares memory.
func checkNodes(t *topo.Topology, places []report) []string {
	level, ok := t.Find("node")
	for e := 0; ok && e < t.Elements(level); e++ {
		for _, r := range t.Ranks(level, e) {
			if first := t.FirstRank(level, e); places[r].Node != places[first].Node {
				return []string{fmt.Sprintf("ranks %d and %d share node %d, but no memory: locks that span them use the network there", first, r, e)}
			}
		}
	}
	return nil
}

// build is topo.Build of reports, once they agree on what Slurm says.
func build(places []report) (*topo.Topology, error) {
	places, lost := agree(places)
	out := make([]topo.Place, len(places))
	for r := range places {
		out[r] = places[r].Place
	}
	t, err := topo.Build(out)
	if err == nil && lost != "" {
		t = t.WithNotes(append(t.Notes(), lost)...)
	}
	return t, err
}

// latest is the topology that was built last, as long as it is in use. Ranks
// that are goroutines of one process get the same one, and not each its own tables
// of the size of the job.
var latest struct {
	sync.Mutex
	key [sha256.Size]byte
	t   weak.Pointer[topo.Topology]
}

// share makes the topology of a key, or finds it.
func share(of [][]byte, build func() (*topo.Topology, error)) (*topo.Topology, error) {
	h := sha256.New()
	for _, b := range of {
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
	t, err := build()
	if err != nil {
		return nil, err
	}
	latest.key, latest.t = key, weak.Make(t)
	return t, nil
}
