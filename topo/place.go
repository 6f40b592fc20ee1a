package topo

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// A Place is where one rank runs: what Local finds, Discover gathers, and Build
// makes a topology of. Places of recorded machines can be replayed.
type Place struct {
	Host string `json:"host"`           // host name; a label only
	Node int    `json:"node"`           // ranks with the same number share memory
	CPUs Set    `json:"cpus,omitempty"` // processors it may run on
	// Above names what the node lies in, from the outside in. All ranks list the
	// same levels, and ranks of one node the same parts.
	Above []Part `json:"above,omitempty"`
	// Slurm is the name that Slurm has for the node, where Above is what Slurm says.
	// Build then checks it against what other ranks say: under mpirun it may be
	// another node's.
	Slurm string `json:"slurm,omitempty"`
	// Inside tells for each level inside the node which of its parts the rank may
	// run on, from the outside in. All ranks list the same levels, with an empty Set
	// where they do not know.
	Inside []Span   `json:"inside,omitempty"`
	Notes  []string `json:"notes,omitempty"` // what went wrong in finding out
}

// A Part is a part of the machine outside the nodes: {"rack", "A"}.
type Part struct {
	Level string `json:"level"`
	Name  string `json:"name"`
}

// A Span is the parts of a level that a rank may run on: {"core", "0-3"}. Numbers
// are unique in the node.
type Span struct {
	Level string `json:"level"`
	IDs   Set    `json:"ids"`
}

// encode is the place as bytes: strings and lists with their lengths before them.
// It is what ranks exchange, so it is short: about 60 bytes, 20 more for each level
// above the node, and notes.
func (p *Place) encode() []byte {
	text := func(b []byte, s string) []byte { return append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	b := text(nil, p.Host)
	b = binary.AppendUvarint(b, uint64(p.Node))
	b = text(b, string(p.CPUs))
	b = binary.AppendUvarint(b, uint64(len(p.Above)))
	for _, a := range p.Above {
		b = text(text(b, a.Level), a.Name)
	}
	b = text(b, p.Slurm)
	b = binary.AppendUvarint(b, uint64(len(p.Inside)))
	for _, s := range p.Inside {
		b = text(text(b, s.Level), string(s.IDs))
	}
	b = binary.AppendUvarint(b, uint64(len(p.Notes)))
	for _, n := range p.Notes {
		b = text(b, n)
	}
	return b
}

// errGarbled is what a rank's message is that cannot be decoded.
var errGarbled = fmt.Errorf("its place arrived garbled; do all ranks run the same program? %w", ErrTopology)

// decodePlace is the inverse of encode.
func decodePlace(b []byte) (Place, error) {
	d := decoder{b: string(b)}
	p := Place{Host: d.text(), Node: d.number(maxRanks), CPUs: Set(d.text())}
	for range d.number(maxLevels) {
		p.Above = append(p.Above, Part{d.text(), d.text()})
	}
	p.Slurm = d.text()
	for range d.number(maxLevels) {
		p.Inside = append(p.Inside, Span{d.text(), Set(d.text())})
	}
	for range d.number(maxNotes) {
		p.Notes = append(p.Notes, d.text())
	}
	if d.bad || d.b != "" {
		return Place{}, errGarbled
	}
	return p, nil
}

// decoder takes fields off the front of b.
type decoder struct {
	b   string
	bad bool
}

func (d *decoder) number(limit int) int {
	n, k := uint64(0), 0
	for shift := 0; ; shift += 7 {
		if k == len(d.b) || shift > 28 {
			d.bad = true
			return 0
		}
		c := d.b[k]
		k++
		n |= uint64(c&0x7f) << shift
		if c < 0x80 {
			break
		}
	}
	if d.b = d.b[k:]; n > uint64(limit) {
		d.bad = true
		return 0
	}
	return int(n)
}

func (d *decoder) text() string {
	n := d.number(1 << 20)
	if n > len(d.b) {
		d.bad = true
		return ""
	}
	s := d.b[:n]
	d.b = d.b[n:]
	return s
}

// maxNotes and maxNote bound what a rank tells the others of its troubles.
const (
	maxNotes = 8
	maxNote  = 240
)

// note adds a line to the place, unless it is there or there are too many.
func (p *Place) note(format string, args ...any) {
	n := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	if len(n) > maxNote {
		n = strings.ToValidUTF8(n[:maxNote], "") + "..."
	}
	for _, old := range p.Notes {
		if old == n {
			return
		}
	}
	if len(p.Notes) < maxNotes {
		p.Notes = append(p.Notes, n)
	}
}
