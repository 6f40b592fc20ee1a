package topo

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// WriteTree prints the topology as a tree, a line per element with its ranks, and
// the notes. Neighbours that are alike, with labels and ranks that go on evenly,
// take one line: "core 0-3 ×4", below which the first one's inside is printed.
// Nothing is lost by that.
func (t *Topology) WriteTree(w io.Writer) error {
	p := printer{t: t}
	p.row("machine", RanksText(t.Ranks(0, 0)))
	p.inside(0, 0, "")
	return p.write(w)
}

// printer collects the lines of a tree.
type printer struct {
	t     *Topology
	left  []string
	right []string
	folds bool // some line stands for several elements
}

func (p *printer) row(left, right string) {
	p.left, p.right = append(p.left, left), append(p.right, right)
}

// inside prints what is inside an element, each line after indent.
func (p *printer) inside(level, element int, indent string) {
	in := level + 1
	if in == len(p.t.levels) {
		return
	}
	children := p.t.children(level, element)
	for len(children) > 0 {
		n := p.t.alike(in, children)
		branch, deeper := "├─ ", "│  "
		if n == len(children) {
			branch, deeper = "└─ ", "   "
		}
		l := &p.t.levels[in]
		if n == 1 {
			p.row(indent+branch+l.name+" "+l.label[children[0]], RanksText(p.t.Ranks(in, children[0])))
		} else {
			p.folds = true
			p.row(fmt.Sprintf("%s%s%s %s ×%d", indent, branch, l.name, labelRange(l.label[children[0]], n), n), p.t.ranksOf(in, children[:n]))
		}
		p.inside(in, children[0], indent+deeper)
		children = children[n:]
	}
}

// write prints the lines with the ranks in a column.
func (p *printer) write(w io.Writer) error {
	b := bufio.NewWriter(w)
	width := 0
	for _, left := range p.left {
		width = max(width, utf8.RuneCountInString(left))
	}
	for i, left := range p.left {
		fmt.Fprintf(b, "%s%*s%s\n", left, width-utf8.RuneCountInString(left)+2, "", p.right[i])
	}
	if p.folds {
		fmt.Fprintln(b, "(×n: n alike, of which the first is shown in full)")
	}
	for _, n := range p.t.notes {
		fmt.Fprintln(b, "note: "+n)
	}
	return b.Flush()
}

// children lists the elements at the next level inside an element.
func (t *Topology) children(level, element int) []int {
	part, in := t.part(level, element), &t.levels[level+1]
	var out []int
	for len(part) > 0 {
		e := in.of[part[0]]
		out = append(out, int(e))
		part = part[in.count[e]:]
	}
	return out
}

// alike is the number of elements from the first on whose labels count on and
// whose insides are the same but for ranks that are greater by the same number.
func (t *Topology) alike(level int, elements []int) int {
	l := &t.levels[level]
	n := 1
	var step int32
	for ; n < len(elements); n++ {
		a, b := t.part(level, elements[n-1]), t.part(level, elements[n])
		if len(a) != len(b) || !follows(l.label[elements[n-1]], l.label[elements[n]]) {
			break
		}
		if n == 1 {
			step = b[0] - a[0]
		}
		if !t.shifted(level, a, b, step) {
			break
		}
	}
	return n
}

// shifted reports whether parts a and b are the same inside level but for step.
func (t *Topology) shifted(level int, a, b []int32, step int32) bool {
	for i := range a {
		if b[i]-a[i] != step {
			return false
		}
	}
	for k := level + 1; k < len(t.levels); k++ {
		l := &t.levels[k]
		for i := 0; i < len(a); {
			e, f := l.of[a[i]], l.of[b[i]]
			if l.count[e] != l.count[f] || l.label[e] != l.label[f] {
				return false
			}
			i += int(l.count[e])
		}
	}
	return true
}

// ranksOf tells the ranks of elements that are alike.
func (t *Topology) ranksOf(level int, elements []int) string {
	n := len(elements)
	first, last := t.Ranks(level, elements[0]), t.Ranks(level, elements[n-1])
	size := len(first)
	if lo, hi := first[0], last[size-1]; hi-lo+1 == n*size && first[size-1]-lo+1 == size {
		if size == 1 {
			return fmt.Sprintf("ranks %d-%d, one each", lo, hi)
		}
		return fmt.Sprintf("ranks %d-%d, %d each", lo, hi, size)
	}
	text := "ranks " + rankList(first)
	if n > 2 {
		text += "; " + rankList(t.Ranks(level, elements[1]))
	}
	if n > 3 {
		text += "; ..."
	}
	return text + "; " + rankList(last)
}

// RanksText names ranks in ascending order for a message: "rank 3", "ranks 0-3,8", or, of
// four and more at even distances, "ranks 0-60:4" as taskset has it.
func RanksText(ranks []int) string {
	if len(ranks) == 1 {
		return "rank " + strconv.Itoa(ranks[0])
	}
	return "ranks " + rankList(ranks)
}

// rankList is a Set of ranks in ascending order; four and more at even distances
// are written as "0-60:4", as taskset does.
func rankList(ranks []int) string {
	if len(ranks) >= 4 {
		step := ranks[1] - ranks[0]
		even := true
		for i := 1; i < len(ranks) && even; i++ {
			even = ranks[i]-ranks[i-1] == step
		}
		if even && step > 1 {
			return fmt.Sprintf("%d-%d:%d", ranks[0], ranks[len(ranks)-1], step)
		}
	}
	return string(MakeSet(ranks...))
}

// number splits the digits off the end of a label: "n07" is n and 07.
func number(label string) (prefix, digits string) {
	i := len(label)
	for i > 0 && label[i-1] >= '0' && label[i-1] <= '9' {
		i--
	}
	i = max(i, len(label)-9)
	return label[:i], label[i:]
}

// after is the label that comes n after one that ends in digits.
func after(label string, n int) string {
	prefix, digits := number(label)
	at, err := strconv.Atoi(digits)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s%0*d", prefix, len(digits), at+n)
}

// follows reports whether b is the label after a: "3" after "2", "n10" after "n09".
func follows(a, b string) bool { return b != "" && after(a, 1) == b }

// labelRange is n labels from the first on: "0-3", or "n[01-04]".
func labelRange(first string, n int) string {
	prefix, digits := number(first)
	_, end := number(after(first, n-1))
	if prefix == "" {
		return digits + "-" + end
	}
	return prefix + "[" + digits + "-" + end + "]"
}
