package rma

import (
	"fmt"
	"strconv"
)

// A Class says who touches a word and how; see the package comment.
type Class uint8

const (
	Far     Class = iota // everybody, through the transport's atomics
	Near                 // changed by ranks of one node only, with CPU atomics; other nodes may Get it
	Flag                 // one writer at a time, by Put; read by Get; no atomics
	Plain                // several writers, by Put, the last one wins; read by Get; no atomics
	Classes              // their number
)

func (c Class) String() string {
	switch c {
	case Far:
		return "far"
	case Near:
		return "near"
	case Flag:
		return "flag"
	case Plain:
		return "plain"
	}
	return "class(" + strconv.Itoa(int(c)) + ")"
}

// A Word is one line in the table of words of a protocol.
type Word struct {
	Name   string // as in the paper; appears in errors and traces
	Class  Class
	Fields []Field // the parts of a packed word, or nil
}

// A Region is Count records of the same words, one after the other: the queue
// nodes of a rank, the tails of many locks, the slots of a table.
type Region struct {
	Words []Word
	Count int
}

// Hosts says whose memory the words of a window are in.
type Hosts uint8

const (
	Ranks       Hosts = iota // each rank of the Comm
	MemoryNodes              // each memory node of the job, which has memory and runs no program
)

// String is "rank" or "memory node".
func (h Hosts) String() string {
	if h == MemoryNodes {
		return "memory node"
	}
	return "rank"
}

// A Spec describes the words that every host contributes to a window: its
// regions, in order, without gaps.
type Spec struct {
	Name    string // in errors and traces
	Regions []Region
	Hosts   Hosts
}

// DataSpec is the Spec of plain data: n words of class Flag.
func DataSpec(name string, n int) Spec {
	return Spec{Name: name, Regions: []Region{{Words: []Word{{Name: "data", Class: Flag}}, Count: n}}}
}

// CounterSpec is the Spec of n words of class Far that everybody updates atomically.
func CounterSpec(name string, n int) Spec {
	return Spec{Name: name, Regions: []Region{{Words: []Word{{Name: "count", Class: Far}}, Count: n}}}
}

// Words is the number of words that a host contributes.
func (s Spec) Words() int {
	n := 0
	for i := range s.Regions {
		n += len(s.Regions[i].Words) * s.Regions[i].Count
	}
	return n
}

// Base is the displacement of the first word of a region.
func (s Spec) Base(region int) int {
	n := 0
	for i := range s.Regions[:region] {
		n += len(s.Regions[i].Words) * s.Regions[i].Count
	}
	return n
}

// at finds the region, record and word of a displacement in range.
func (s Spec) at(disp int) (region, record, word int) {
	for i := range s.Regions {
		r := &s.Regions[i]
		if n := len(r.Words) * r.Count; disp >= n {
			disp -= n
			continue
		}
		return i, disp / len(r.Words), disp % len(r.Words)
	}
	return -1, 0, 0
}

// Class is the class of the word at a displacement; Far for one out of range.
func (s Spec) Class(disp int) Class {
	r, _, w := s.at(disp)
	if r < 0 {
		return Far
	}
	return s.Regions[r].Words[w].Class
}

// WordName is the name of the word at a displacement, such as "TAIL" or "NEXT[3]".
func (s Spec) WordName(disp int) string {
	r, rec, w := s.at(disp)
	if r < 0 {
		return "?"
	}
	name := s.Regions[r].Words[w].Name
	if s.Regions[r].Count > 1 {
		name += "[" + strconv.Itoa(rec) + "]"
	}
	return name
}

// maxWords bounds a host's part so that byte offsets cannot overflow.
const maxWords = 1 << 48

// Validate reports what is wrong with the Spec of a window of c. Backends call it in Allocate.
func Validate(c Comm, s Spec) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if s.Hosts == MemoryNodes && c.MemoryNodes() == 0 {
		return fmt.Errorf("rma: window %q is for memory nodes, and the job has none: %w", s.Name, ErrSpec)
	}
	return nil
}

// Validate reports what is wrong with a Spec.
func (s Spec) Validate() error {
	if s.Name == "" {
		return fmt.Errorf("rma: a window needs a name: %w", ErrSpec)
	}
	if s.Hosts > MemoryNodes {
		return fmt.Errorf("rma: window %q has unknown hosts %d: %w", s.Name, s.Hosts, ErrSpec)
	}
	total := 0
	for i := range s.Regions {
		r := &s.Regions[i]
		if len(r.Words) == 0 {
			return fmt.Errorf("rma: window %q: region %d has no words: %w", s.Name, i, ErrSpec)
		}
		if r.Count < 0 || r.Count > maxWords/len(r.Words) {
			return fmt.Errorf("rma: window %q: region %d has count %d, want 0 to %d: %w",
				s.Name, i, r.Count, maxWords/len(r.Words), ErrSpec)
		}
		for _, w := range r.Words {
			if w.Class >= Classes {
				return fmt.Errorf("rma: window %q: word %s has unknown %v: %w", s.Name, w.Name, w.Class, ErrSpec)
			}
			if w.Class == Near && s.Hosts == MemoryNodes {
				return fmt.Errorf("rma: window %q: word %s is near, and a memory node has no CPU: %w", s.Name, w.Name, ErrSpec)
			}
			if err := checkFields(w.Fields); err != nil {
				return fmt.Errorf("rma: window %q: word %s: %w", s.Name, w.Name, err)
			}
		}
		total += len(r.Words) * r.Count
	}
	if total == 0 || total > maxWords {
		return fmt.Errorf("rma: window %q has %d words per host, want 1 to %d: %w", s.Name, total, maxWords, ErrSpec)
	}
	return nil
}

// Fingerprint is a hash of the whole Spec. Allocate compares it between ranks:
// windows are symmetric.
func (s Spec) Fingerprint() int64 {
	h := uint64(14695981039346656037) // FNV-1a
	add := func(str string) {
		for i := 0; i < len(str); i++ {
			h = (h ^ uint64(str[i])) * 1099511628211
		}
		h = (h ^ 0xff) * 1099511628211
	}
	add(s.Name)
	add(strconv.Itoa(int(s.Hosts)))
	for i := range s.Regions {
		add(strconv.Itoa(s.Regions[i].Count))
		for _, w := range s.Regions[i].Words {
			add(w.Name)
			add(w.Class.String())
			for _, f := range w.Fields {
				add(f.Name)
				add(strconv.Itoa(int(f.Shift)<<8 | int(f.Bits)))
			}
		}
	}
	return int64(h)
}
