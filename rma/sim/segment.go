package sim

import (
	"fmt"

	"github.com/rmalock/rmalock/rma"
)

// A segment is the memory of one window: one part per host.
type segment struct {
	id    int
	first uint64 // number of its first word in the world
	spec  rma.Spec
	words int
	group *group
	mem   []int64 // of a search, whose windows are small
	pages []*page // of the clock

	packed bool // some words have fields
}

func (w *world) newSegment(spec rma.Spec, g *group) (*segment, error) {
	n, hosts := spec.Words(), len(g.ranks)
	if spec.Hosts == rma.MemoryNodes {
		hosts = w.memoryNodes
	}
	s := &segment{id: len(w.segments), first: w.words, spec: spec, words: n, group: g}
	if err := w.engine.memory(s, hosts); err != nil {
		return nil, err
	}
	w.segments = append(w.segments, s)
	w.words += uint64(n * hosts)
	return s, nil
}

// word is the address of a word.
func (s *segment) word(target, disp int) *int64 {
	i := target*s.words + disp
	if s.pages == nil {
		return &s.mem[i]
	}
	return &s.page(i).word[i%pageWords]
}

// read is the value of a word. It makes no page: a program may look at all of a large window.
func (s *segment) read(target, disp int) int64 {
	if s.pages != nil && s.pages[(target*s.words+disp)/pageWords] == nil {
		return 0
	}
	return *s.word(target, disp)
}

// key is the number of a word in the world.
func (s *segment) key(target, disp int) uint64 { return s.first + uint64(target*s.words+disp) }

// name is the name of a word, as in "TAIL@0" for rank 0 and "TAIL@m0" for memory node 0.
func (s *segment) name(target, disp int) string {
	at := "@"
	if s.spec.Hosts == rma.MemoryNodes {
		at = "@m"
	}
	return fmt.Sprintf("%s.%s%s%d", s.spec.Name, s.spec.WordName(disp), at, target)
}

// host is the number of a target in the world: of the rank, or, after all ranks, of the
// memory node.
func (s *segment) host(target int) int {
	if s.spec.Hosts == rma.MemoryNodes {
		return len(s.group.ranks[0].w.ranks) + target
	}
	return s.group.ranks[target].id
}

// mate reports whether a target shares memory with a rank of the segment's group.
func (s *segment) mate(rank, target int) bool {
	return s.spec.Hosts == rma.Ranks && s.group.mates(rank, target)
}

// format is the value of a word as text.
func (s *segment) format(disp int, v int64) string {
	w := s.spec.Word(disp)
	return w.Format(v)
}

// pageWords is the number of words of a page: 4 KiB.
const pageWords = 512

// A page is a part of a segment in virtual time. It exists from the first access to one of its
// words on, so that a window of a billion locks takes the memory of those that are taken.
type page struct {
	word [pageWords]int64
	// owner is 1 + the rank whose cache has the word, and waits the list of those that wait for
	// it: 1 + 2 x the rank + the index of its Wait. Made when needed.
	owner, waits *[pageWords]int32
}

// page is the page of the i-th word of a segment.
func (s *segment) page(i int) *page {
	p := s.pages[i/pageWords]
	if p == nil {
		p = new(page)
		s.pages[i/pageWords] = p
	}
	return p
}

// ownerOf is the entry of the i-th word in its page's table of owners.
func (s *segment) ownerOf(i int) *int32 { return entry(&s.page(i).owner, i) }

// waitsAt is the head of the list of those that wait for the i-th word.
func (s *segment) waitsAt(i int) *int32 { return entry(&s.page(i).waits, i) }

func entry(t **[pageWords]int32, i int) *int32 {
	if *t == nil {
		*t = new([pageWords]int32)
	}
	return &(*t)[i%pageWords]
}
