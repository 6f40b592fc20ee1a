package topo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ReadFile is Read of a file. An error names the file.
func ReadFile(path string) (*Topology, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("topo: %w: %w", err, ErrTopology)
	}
	t, err := Read(text)
	if err != nil {
		return nil, fmt.Errorf("topo: file %s: %s: %w", path, bare(err), ErrTopology)
	}
	return t, nil
}

// bare is an error of this package without what every one begins and ends with.
func bare(err error) string {
	return strings.TrimSuffix(strings.TrimPrefix(err.Error(), "topo: "), ": "+ErrTopology.Error())
}

// Read reads a topology from text in one of three forms.
//
// A description as Parse reads it, over any number of lines.
//
// A table, for machines whose elements are unequal or whose ranks are in no order: on
// each line ranks, and the name of their part at each level, from the outside in.
// Parts of one name in different parts around them are different ones:
//
//	0-3    rack=A  node=n1  numa=0
//	4-7    rack=A  node=n1  numa=1
//	8,10   rack=B  node=n2  numa=0
//	9      rack=B  node=n3  numa=0
//
// Or JSON as MarshalJSON writes it. What counts there are names, labels, ranks,
// merged, cpus and notes. An element's number, parent and host may be left out;
// number and parent must go with the ranks if they are there, and so must ranks and
// count of the whole, which catches an edit of one place that forgets another. New
// numbers are in the order of lowest ranks.
//
// In the first two forms, # begins a comment. Levels are kept as they are written,
// even if they split nothing. An error wraps ErrTopology and says where.
func Read(text []byte) (*Topology, error) {
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("topo: this is no text in UTF-8: %w", ErrTopology)
	}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return readJSON(text)
	}
	var lines []string // by number, so empty ones too
	first := ""
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		lines = append(lines, line)
		if first == "" {
			first = line
		}
	}
	if first != "" && first[0] >= '0' && first[0] <= '9' {
		return readTable(lines)
	}
	return Parse(strings.Join(lines, " "))
}

// readTable reads lines of ranks and names.
func readTable(lines []string) (*Topology, error) {
	type row struct {
		line  int
		ranks Set
		names []string
	}
	var rows []row
	var levels []string
	for i, line := range lines {
		fail := func(format string, args ...any) (*Topology, error) {
			return nil, fmt.Errorf("topo: line %d: %s: %w", i+1, fmt.Sprintf(format, args...), ErrTopology)
		}
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		ranks, err := parseSet(f[0])
		if err != nil {
			return fail("%s", bare(err))
		}
		rw := row{line: i + 1, ranks: ranks}
		var mine []string
		for _, field := range f[1:] {
			level, name, ok := strings.Cut(field, "=")
			if !ok || name == "" {
				return fail("%s: want a level and a name, such as node=n1", quote(field))
			}
			mine, rw.names = append(mine, level), append(rw.names, name)
		}
		if len(rows) == 0 {
			levels = mine
		} else if !slices.Equal(levels, mine) {
			return fail("its levels are %q, those of the first line %q; all lines list the same, from the outside in", mine, levels)
		}
		rows = append(rows, rw)
	}
	d := described{levels: levels}
	if err := d.checkLevels(); err != nil {
		return nil, err
	}
	path := map[string]int{} // of names -> a number
	for _, rw := range rows {
		at, parts := "", make([]int, len(levels))
		for i, name := range rw.names {
			at += "\x00" + name
			if _, ok := path[at]; !ok {
				path[at] = len(path)
			}
			parts[i] = path[at]
		}
		if err := d.add(fmt.Sprintf("line %d", rw.line), rw.ranks); err != nil {
			return nil, err
		}
		for r := range rw.ranks.All() {
			d.where[r] = partsOf{parts, rw.names}
		}
	}
	return d.topology()
}

// described is a topology as its parts are read.
type described struct {
	levels []string        // inside the machine
	where  map[int]partsOf // by rank
}

// partsOf is the parts that a rank is in by level: a number of each, and its name.
type partsOf struct {
	parts []int
	names []string
}

func (d *described) checkLevels() error {
	if len(d.levels) >= maxLevels {
		return fmt.Errorf("topo: more than %d levels: %w", maxLevels, ErrTopology)
	}
	seen := []string{"machine"}
	for _, name := range d.levels {
		outer := misplaced(seen, name)
		switch {
		case !validName(name) || reserved(name):
			return fmt.Errorf("topo: level %s: a name is a lower-case letter and then letters, digits, '-' or '_', and not rank, pu or by: %w", quote(name), ErrTopology)
		case slices.Contains(seen, name):
			return fmt.Errorf("topo: level %q occurs twice: %w", name, ErrTopology)
		case outer != "":
			return fmt.Errorf("topo: a %s cannot be inside a %s; list levels from the outermost to the innermost: %w", name, outer, ErrTopology)
		}
		seen = append(seen, name)
	}
	return nil
}

// add makes room for ranks, of which none may have come before.
func (d *described) add(from string, ranks Set) error {
	if d.where == nil {
		d.where = map[int]partsOf{}
	}
	for r := range ranks.All() {
		if _, twice := d.where[r]; twice {
			return fmt.Errorf("topo: %s: rank %d has come before: %w", from, r, ErrTopology)
		}
		d.where[r] = partsOf{}
	}
	return nil
}

// topology makes the topology of what was read.
func (d *described) topology() (*Topology, error) {
	size := len(d.where)
	for r := range size {
		if _, ok := d.where[r]; !ok {
			return nil, fmt.Errorf("topo: rank %d is missing: there are %d ranks, and they are to be numbered from 0 to %d: %w", r, size, size-1, ErrTopology)
		}
	}
	layers := []layer{{name: "machine", of: make([]int32, size), label: []string{"0"}}}
	for i, name := range d.levels {
		key := make([]int32, size)
		for r := range key {
			key[r] = int32(d.where[r].parts[i])
		}
		l, lows := split(&layers[i], key)
		l.name = name
		for e, r := range lows {
			l.label[e] = d.where[int(r)].names[i]
		}
		layers = append(layers, l)
	}
	return assemble(layers), nil
}

// readJSON reads what MarshalJSON writes.
func readJSON(text []byte) (*Topology, error) {
	fail := func(format string, args ...any) (*Topology, error) {
		return nil, fmt.Errorf("topo: %s: %w", fmt.Sprintf(format, args...), ErrTopology)
	}
	var j struct {
		jsonTopology
		// What rmalock topo --json adds.
		Thresholds json.RawMessage `json:"thresholds"`
		Counters   json.RawMessage `json:"counters"`
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&j); err != nil {
		at, what := dec.InputOffset(), strings.TrimPrefix(err.Error(), "json: ")
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		if errors.As(err, &syntax) {
			at = syntax.Offset
		} else if errors.As(err, &kind) {
			field := kind.Field[strings.LastIndex(kind.Field, ".")+1:]
			at, what = kind.Offset, fmt.Sprintf("field %q cannot be a %s", field, kind.Value)
		}
		return fail("line %d: %s", 1+bytes.Count(text[:min(int(at), len(text))], []byte("\n")), what)
	}
	if dec.More() {
		return fail("there is more after the closing brace")
	}
	if len(j.Levels) == 0 || j.Levels[0].Name != "machine" || len(j.Levels[0].List) != 1 {
		return fail("levels: the first is to be the machine, with one element")
	}
	d := described{}
	for _, l := range j.Levels[1:] {
		d.levels = append(d.levels, l.Name)
	}
	if err := d.checkLevels(); err != nil {
		return nil, err
	}
	// The machine says which ranks there are; each level puts each of them somewhere.
	whole, err := parseSet(string(j.Levels[0].List[0].Ranks))
	if err != nil {
		return fail("level machine: ranks: %s", bare(err))
	}
	if whole == "" {
		return fail("level machine: ranks: there are none")
	}
	if err := d.add("level machine", whole); err != nil {
		return nil, err
	}
	if size := len(d.where); j.Ranks != size && j.Ranks != 0 {
		return fail("ranks is %d, but the machine has %d of them", j.Ranks, size)
	}
	for r := range d.where {
		d.where[r] = partsOf{make([]int, len(d.levels)), make([]string, len(d.levels))}
	}
	for i := range d.levels {
		if err := d.readLevel(j.Levels, i+1); err != nil {
			return nil, err
		}
	}
	t, err := d.topology()
	if err != nil {
		return nil, err
	}
	t.takeMerged(j.Levels)
	if err := t.takeCPUs(j.CPUs); err != nil {
		return nil, err
	}
	t.notes = append(t.notes, j.Notes...)
	t.plain = t.cpus == nil && t.positions()
	return t, nil
}

// readLevel reads the elements of a level of JSON.
func (d *described) readLevel(levels []jsonLevel, level int) error {
	l, outer := &levels[level], &levels[level-1]
	fail := func(e int, format string, args ...any) error {
		return fmt.Errorf("topo: level %s, element %d of the list: %s: %w", l.Name, e, fmt.Sprintf(format, args...), ErrTopology)
	}
	if n := len(l.List); l.Elements != n && l.Elements != 0 {
		return fmt.Errorf("topo: level %s: count is %d, but it lists %d elements: %w", l.Name, l.Elements, n, ErrTopology)
	}
	seen := map[int]bool{}
	for e := range l.List {
		x := &l.List[e]
		ranks, err := parseSet(string(x.Ranks))
		if err != nil {
			return fail(e, "ranks: %s", bare(err))
		}
		if ranks == "" {
			return fail(e, "ranks: there are none")
		}
		x.Ranks = ranks // in its form
		around := -1
		for r := range ranks.All() {
			p, ok := d.where[r]
			switch {
			case !ok:
				return fail(e, "ranks: %d is no rank of the machine", r)
			case seen[r]:
				return fail(e, "ranks: %d is in another element too", r)
			}
			seen[r] = true
			at := 0
			if level > 1 {
				at = p.parts[level-2]
			}
			if around < 0 {
				around = at
			}
			if at != around {
				return fail(e, "ranks: %s are in different elements of level %s", ranks, outer.Name)
			}
			if x.Label == "" {
				x.Label = strconv.Itoa(e)
			}
			p.parts[level-1], p.names[level-1] = e, x.Label
		}
		if x.Element != nil && *x.Element != e {
			return fail(e, "element is %d; the list is in the order of these numbers, from 0 on, or leave all out", *x.Element)
		}
		if x.Parent != nil && *x.Parent != around {
			return fail(e, "parent is %d, but its ranks are in element %d of level %s; change ranks to move it, or leave parent out", *x.Parent, around, outer.Name)
		}
	}
	if len(seen) < len(d.where) {
		for r := range len(d.where) {
			if !seen[r] {
				return fmt.Errorf("topo: level %s: rank %d is in none of its elements: %w", l.Name, r, ErrTopology)
			}
		}
	}
	return nil
}

// takeMerged marks the elements that JSON says stand for several parts.
func (t *Topology) takeMerged(levels []jsonLevel) {
	for i := range levels {
		for _, x := range levels[i].List {
			if !x.Merged {
				continue
			}
			l := &t.levels[i]
			if l.merged == nil {
				l.merged = make([]bool, len(l.label))
			}
			for r := range x.Ranks.All() {
				l.merged[l.of[r]] = true
			}
		}
	}
}

// takeCPUs takes the processors of ranks from JSON.
func (t *Topology) takeCPUs(list []jsonCPUs) error {
	for i, c := range list {
		fail := func(format string, args ...any) error {
			return fmt.Errorf("topo: cpus, item %d: %s: %w", i, fmt.Sprintf(format, args...), ErrTopology)
		}
		cpus, err := parseSet(string(c.CPUs))
		if err != nil {
			return fail("%s", bare(err))
		}
		ranks, err := parseSet(string(c.Ranks))
		if err != nil {
			return fail("ranks: %s", bare(err))
		}
		if t.cpus == nil && cpus != "" {
			t.cpus = make([]Set, t.Size())
		}
		for r := range ranks.All() {
			if r >= t.Size() {
				return fail("ranks: %d is no rank of the machine", r)
			}
			if cpus != "" {
				t.cpus[r] = cpus
			}
		}
	}
	return nil
}

// positions reports whether all labels are positions in the element around, as those
// of Parse are.
func (t *Topology) positions() bool {
	for i := 1; i < len(t.levels); i++ {
		next := make([]int, t.Elements(i-1))
		for e := range t.Elements(i) {
			u := t.Up(i, e)
			if t.Label(i, e) != strconv.Itoa(next[u]) {
				return false
			}
			next[u]++
		}
	}
	return true
}
