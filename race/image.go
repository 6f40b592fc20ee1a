package race

import (
	"fmt"
	"math/bits"

	"github.com/rmalock/rmalock/cider"
	"github.com/rmalock/rmalock/rma"
)

// An image is what a client has read of the four buckets where a key may be: each main bucket with
// the overflow bucket beside it.
type image struct {
	segment int
	at      [2]int  // displacements of the two reads
	w       []int64 // words of the two reads
}

// groups of buckets are main | overflow | main.
const groupBuckets = 3

// birth is the depth with which a segment begins.
func (t *Table) birth(segment int) int {
	if segment < t.cfg.Initial {
		return t.initial
	}
	return bits.Len(uint(segment))
}

// parent is the segment that a segment is split from.
func parent(segment int) int { return segment &^ (1 << (bits.Len(uint(segment)) - 1)) }

// header is the depth of a bucket, and whether it is open.
func (t *Table) header(segment int, raw int64) (int, bool) {
	if raw == 0 {
		return t.birth(segment), segment < t.cfg.Initial
	}
	return int(depth.Get(raw)), true
}

// opened is the header of a bucket.
func opened(segment, d int) int64 {
	return open.With(suffix.With(depth.With(0, int64(d)), int64(segment)), 1)
}

// doublings is the mark of a depth.
func (t *Table) doublings(d int) int64 { return int64(d - t.initial) }

// place is a segment's host and displacement there.
func (t *Table) place(segment int) (host, disp int) {
	return segment % t.hosts, segment / t.hosts * t.cfg.Groups * groupBuckets * t.width
}

// find is the segment of a hash, as far as the client knows.
func (t *Table) find(h uint64) int {
	s := int(h & (1<<t.initial - 1))
	for {
		next, moved := t.after(s, h, max(int(t.depths[s]), t.birth(s)))
		if !moved {
			return s
		}
		s = next
	}
}

// after is the segment to which a key has moved from one of depth d.
func (t *Table) after(segment int, h uint64, d int) (int, bool) {
	other := (h & (1<<d - 1)) ^ uint64(segment)
	return segment | int(other&-other), other != 0
}

// issue issues the two reads of an image.
func (t *Table) issue(im *image, segment int) {
	host, base := t.place(segment)
	im.segment = segment
	for i, main := range t.to.main { // a main bucket on the right begins with the overflow bucket
		im.at[i] = base + (main/2*groupBuckets+main%2)*t.width
		t.w.GetBulk(im.w[2*i*t.width:2*(i+1)*t.width], host, im.at[i])
	}
}

// read reads an image that is of a piece.
func (t *Table) read(im *image, segment int) error {
	for {
		t.issue(im, segment)
		if err := t.complete(segment); err != nil {
			return err
		}
		if err := t.sane(im); err != nil || !t.torn(im) {
			return err
		}
		t.stats.Torn++
	}
}

// complete completes the reads of a segment, and the block of an insert that is on its way.
func (t *Table) complete(segment int) error {
	if t.ahead {
		t.ahead = false
		return t.w.FlushAll()
	}
	host, _ := t.place(segment)
	return t.w.Flush(host)
}

// sane reports a header of another segment, which no operation leaves.
func (t *Table) sane(im *image) error {
	for i := 0; i < len(im.w); i += t.width {
		if raw := im.w[i]; raw != 0 && int(suffix.Get(raw)) != im.segment {
			host, _ := t.place(im.segment)
			return fmt.Errorf("race: bucket of segment %d at %d of host %d has the header of segment %d: %w",
				im.segment, t.disp(im, i), host, suffix.Get(raw), ErrTorn)
		}
	}
	return nil
}

// torn reports whether a header is older than a slot behind it: a split has come by in between.
func (t *Table) torn(im *image) bool {
	var most int64
	var isOpen bool
	for i, w := range im.w {
		if i%t.width == 0 {
			var d int
			d, isOpen = t.header(im.segment, w)
			most = t.doublings(d)
		} else if mark.Get(w) > most || isOpen && w == 0 && im.segment >= t.cfg.Initial {
			return true
		}
	}
	return false
}

// closed is the first of the buckets that is not open, or -1.
func (t *Table) closed(im *image) int {
	for i := 0; i < len(im.w); i += t.width {
		if _, ok := t.header(im.segment, im.w[i]); !ok {
			return i / t.width
		}
	}
	return -1
}

// deepest is the greatest depth of the buckets. The client learns it.
func (t *Table) deepest(im *image) (d int) {
	for i := 0; i < len(im.w); i += t.width {
		one, _ := t.header(im.segment, im.w[i])
		d = max(d, one)
	}
	if d > int(t.depths[im.segment]) {
		t.depths[im.segment] = uint8(d)
	}
	return d
}

// moved is the segment to which the key has moved from that of the image, by the headers.
func (t *Table) moved(im *image) (int, bool) { return t.after(im.segment, t.to.hash, t.deepest(im)) }

// disp is the displacement of a word of an image.
func (t *Table) disp(im *image, i int) int { return im.at[i/(2*t.width)] + i%(2*t.width) }

// bucket is the number, in the segment, of one of the image's four buckets.
func (t *Table) bucket(im *image, j int) int {
	_, base := t.place(im.segment)
	return (t.disp(im, j*t.width) - base) / t.width
}

// slot is a word of an image for package cider.
func (t *Table) slot(im *image, i int) cider.Slot {
	return t.slotAt(im.segment, t.bucket(im, i/t.width), i%t.width)
}

// slotAt is slot i, from 1 on, of a bucket.
func (t *Table) slotAt(segment, bucket, i int) cider.Slot {
	host, base := t.place(segment)
	number := segment/t.hosts*t.cfg.Groups*groupBuckets*(t.width-1) + bucket*(t.width-1) + i - 1
	return cider.Slot{
		Host: host, Pointer: base + bucket*t.width + i, Lock: t.locksAt + 2*number, Marks: marks,
		Key: t.to.hash,
	}
}

// reads is how many blocks a client reads at once.
const reads = 4

// same is the first slot from from on, in a state, whose block has the key; and the block. -1 is
// none.
func (t *Table) same(im *image, from int, s int64) (int, []int64, error) {
	for from < len(im.w) {
		n, wait := 0, [2]int{-1, -1} // hosts to wait for, if there are no more than two
		for ; from < len(im.w) && n < reads; from++ {
			if from%t.width == 0 || !is(im.w[from], s, t.to.print) {
				continue
			}
			ref, words := t.block(im.w[from])
			t.w.GetBulk(t.blocks[n][:words], ref.Node(), ref.Disp())
			t.hits[n] = from
			if n++; wait[0] < 0 || wait[0] == ref.Node() {
				wait[0] = ref.Node()
			} else {
				wait[1] = ref.Node()
			}
		}
		if n == 0 {
			break
		}
		if err := t.wait(wait); err != nil {
			return -1, nil, err
		}
		for i := range n {
			at := t.hits[i]
			_, words := t.block(im.w[at])
			b, err := t.verify(im, at, t.blocks[i][:words])
			if err != nil {
				return -1, nil, err
			}
			if t.to.has(b) {
				return at, b, nil
			}
		}
	}
	return -1, nil, nil
}

// wait completes operations on one host or on several.
func (t *Table) wait(hosts [2]int) error {
	if hosts[1] < 0 {
		return t.w.Flush(hosts[0])
	}
	return t.w.FlushAll()
}

// verify is the block of a slot, or errAgain if the client has to look again.
func (t *Table) verify(im *image, i int, b []int64) ([]int64, error) {
	if t.sections.Expired() {
		return nil, errAgain
	}
	if b = whole(b); b != nil {
		return b, nil
	}
	if t.wrong != im.w[i] {
		t.wrong = im.w[i]
		return nil, errAgain
	}
	ref, words := t.block(im.w[i])
	return nil, fmt.Errorf("race: block of %d words at %d of host %d: %w", words, ref.Disp(), ref.Node(), ErrTorn)
}

// spec is the words of a table.
func (c *Config) regions(hosts int) []rma.Region {
	each := c.Segments / hosts
	if c.Segments%hosts > 0 {
		each++
	}
	buckets := each * c.Groups * groupBuckets
	return []rma.Region{
		{Count: buckets * (c.slots + 1), Words: []rma.Word{{
			Name: "BUCKET", Class: rma.Far, Fields: []rma.Field{print, length, node, unit, state, mark, wraps, cider.Version},
		}}},
		{Count: each, Words: []rma.Word{{Name: "DIRECTORY", Class: rma.Far, Fields: []rma.Field{splits, open, suffix, depth}}}},
		{Count: buckets * c.slots, Words: cider.LockWords()},
	}
}
