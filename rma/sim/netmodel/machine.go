package netmodel

import (
	"embed"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// ErrMachine is wrapped by what Parse, Load and With refuse.
var ErrMachine = errors.New("not a machine's description")

// A Machine is the constants of one kind of machine. It does not change.
type Machine struct {
	Name  string
	About string
	param []Param // as fields
}

// A Param is one constant of a machine, and where it comes from.
type Param struct {
	Name      string // as "slotNs.READ.initiator"
	Unit      string
	Value     float64
	Low, High float64 // what is plausible: the range to sweep
	// Mark says how well the value is known: S read in a source, P read in one of the
	// papers' text, R remembered, I inferred.
	Mark   string
	Source string // key (see machines/README.md) and text
	Weak   bool   // a figure that rests on it is drawn as a band
}

// The verbs of a network, in the order of all tables here.
const (
	read = iota
	write
	cas
	faa
	send
	verbs
)

var verbNames = [verbs]string{"READ", "WRITE", "CAS", "FAA", "SEND"}

// A field says what a machine's file must have.
type field struct {
	name, unit string
	least      float64
	whole      bool
}

// fields are all constants, in the order of Params.
var fields = func() []field {
	var f []field
	add := func(least float64, whole bool, unit string, names ...string) {
		for _, n := range names {
			f = append(f, field{n, unit, least, whole})
		}
	}
	each := func(name string, after ...string) (names []string) {
		for _, v := range verbNames {
			for _, a := range after {
				names = append(names, name+"."+v+a)
			}
		}
		return names
	}
	add(1, false, "ns", each("rttNs", "")...)
	add(0, false, "of rttNs", "loopback")
	add(0, false, "ns", "hopNs")
	add(0, false, "ns a byte", "byteNs")
	add(8, true, "bytes", "packetB")
	add(0, false, "ns", "postNs", "doorbellNs", "pollNs")
	add(1, true, "operations", "maxRdAtomic")
	add(0, false, "ns", each("slotNs", ".initiator", ".responder")...)
	add(0, false, "ns", "wordNs", "bigFootprintNs")
	add(1, true, "lanes", "atomicLanes")
	add(0, true, "0 or 1", "lanesByHash", "holBlocking", "maskedSwap")
	add(0, false, "ns", "lineReadNs", "deviceWordNs")
	add(0, true, "connections", "qpCap")
	add(0, false, "ns", each("qpMissNs", "")...)
	add(0, false, "ns", "ownAtomicNs", "coreHandoverNs.sibling", "coreHandoverNs.socket", "coreHandoverNs.otherSocket")
	add(0, false, "ns", "cpuStepNs", "switchNs", "serverNs")
	return f
}()

// maxLanes bounds the search for a free lane.
const maxLanes = 64

//go:embed machines/*.json
var files embed.FS

// Names are the machines that Load knows.
func Names() []string {
	entries, err := files.ReadDir("machines")
	if err != nil {
		panic(err) // they are part of the program
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".json"))
	}
	return names
}

// Load returns a machine by its name.
func Load(name string) (*Machine, error) {
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("netmodel: machine %q is not one of %s: %w", name, strings.Join(Names(), ", "), ErrMachine)
	}
	f, err := files.Open("machines/" + name + ".json")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Parse(f)
}

// Params returns all constants, in a fixed order.
func (m *Machine) Params() []Param { return slices.Clone(m.param) }

// Weak returns the constants over which figures are drawn as a band.
func (m *Machine) Weak() []Param {
	var weak []Param
	for _, p := range m.param {
		if p.Weak {
			weak = append(weak, p)
		}
	}
	return weak
}

// With returns the machine with another value of one constant, within its range.
func (m *Machine) With(name string, value float64) (*Machine, error) {
	i := index(name)
	if i < 0 {
		return nil, m.refuse(name, "no such constant")
	}
	n := *m
	n.param = slices.Clone(m.param)
	n.param[i].Value = value
	if err := n.param[i].check(fields[i]); err != nil {
		return nil, m.refuse(name, err.Error())
	}
	if err := n.consistent(); err != nil {
		return nil, err
	}
	return &n, nil
}

// Value returns the value of a constant, and panics for a name that is none.
func (m *Machine) Value(name string) float64 {
	i := index(name)
	if i < 0 {
		panic("netmodel: no constant " + name)
	}
	return m.param[i].Value
}

func index(name string) int {
	return slices.IndexFunc(fields, func(f field) bool { return f.name == name })
}

// refuse makes the error about a constant.
func (m *Machine) refuse(name, why string) error {
	return fmt.Errorf("netmodel: machine %q: %s: %s: %w", m.Name, name, why, ErrMachine)
}

// check reports what is wrong with a constant.
func (p *Param) check(f field) error {
	for _, v := range []float64{p.Low, p.Value, p.High} {
		switch {
		case math.IsNaN(v) || v < f.least || v > 1e9:
			return fmt.Errorf("%g is not from %g to 1e9 %s", v, f.least, f.unit)
		case f.whole && v != math.Trunc(v):
			return fmt.Errorf("%g is not a whole number of %s", v, f.unit)
		case f.unit == "0 or 1" && v > 1:
			return fmt.Errorf("%g is neither 0 nor 1", v)
		case f.name == "atomicLanes" && v > maxLanes:
			return fmt.Errorf("%g is more than the %d lanes that are possible", v, maxLanes)
		}
	}
	if p.Low > p.Value || p.Value > p.High {
		return fmt.Errorf("value %g is not within its range %g to %g", p.Value, p.Low, p.High)
	}
	if len(p.Mark) != 1 || !strings.Contains("SPRI", p.Mark) {
		return fmt.Errorf("mark %q is none of S, P, R, I", p.Mark)
	}
	if strings.TrimSpace(p.Source) == "" {
		return errors.New("no source")
	}
	return nil
}

// consistent reports a round trip that is shorter than its known parts.
func (m *Machine) consistent() error {
	for v, name := range verbNames {
		for _, rtt := range []string{"rttNs." + name, "loopback"} {
			if _, ns := m.flight(v, rtt == "loopback"); ns < 0 {
				return m.refuse(rtt, fmt.Sprintf("a quiet %s is over before CPU, slots and atomic unit are done with it, by %.0f ns", name, -2*ns))
			}
		}
	}
	return nil
}

// flight splits the round trip of a verb into what is known of it (CPU, slots, atomic
// unit) and two flights of equal length: fixed + 2 x flight = rtt.
func (m *Machine) flight(verb int, loop bool) (fixed, flight float64) {
	name := verbNames[verb]
	rtt := m.Value("rttNs." + name)
	if loop {
		rtt *= m.Value("loopback")
	}
	fixed = m.Value("postNs") + m.Value("doorbellNs") + m.Value("pollNs") +
		m.Value("slotNs."+name+".initiator") + m.Value("slotNs."+name+".responder")
	if verb == cas || verb == faa {
		fixed += m.Value("wordNs")
	}
	if verb == send { // twice one way, each with all of it
		fixed *= 2
	}
	return fixed, (rtt - fixed) / 2
}
