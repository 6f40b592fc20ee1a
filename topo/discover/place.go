package discover

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/rmalock/rmalock/topo"
)

// A report is what a rank tells the others: its place.
type report struct {
	topo.Place
	// slurm is the name that Slurm has for the node, where Above is what Slurm says. It is
	// checked against what other ranks say: under mpirun it may be another node's.
	slurm string
}

// encode is the report as bytes: strings and lists with their lengths before them.
// It is what ranks exchange, so it is short: about 60 bytes, 20 more for each level
// above the node, and notes.
func (p *report) encode() []byte {
	text := func(b []byte, s string) []byte { return append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	b := text(nil, p.Host)
	b = binary.AppendUvarint(b, uint64(p.Node))
	b = text(b, string(p.CPUs))
	b = binary.AppendUvarint(b, uint64(len(p.Above)))
	for _, a := range p.Above {
		b = text(text(b, a.Level), a.Name)
	}
	b = text(b, p.slurm)
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
var errGarbled = fmt.Errorf("its place arrived garbled; do all ranks run the same program? %w", topo.ErrTopology)

// decodeReport is the inverse of encode.
func decodeReport(b []byte) (report, error) {
	d := decoder{b: string(b)}
	p := report{Place: topo.Place{Host: d.text(), Node: d.number(maxNodes), CPUs: topo.Set(d.text())}}
	for range d.number(maxLevels) {
		p.Above = append(p.Above, topo.Part{Level: d.text(), Name: d.text()})
	}
	p.slurm = d.text()
	for range d.number(maxLevels) {
		p.Inside = append(p.Inside, topo.Span{Level: d.text(), IDs: topo.Set(d.text())})
	}
	for range d.number(maxNotes) {
		p.Notes = append(p.Notes, d.text())
	}
	if d.bad || d.b != "" {
		return report{}, errGarbled
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

const (
	maxNodes  = 1 << 24
	maxLevels = 16
	maxAbove  = maxLevels / 2 // levels above the node, less one
	maxNotes  = 8             // lines that a rank tells the others of its troubles,
	maxNote   = 240           // and bytes of each
)

// note adds a line to the place, unless it is there or there are too many.
func (p *report) note(format string, args ...any) {
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
