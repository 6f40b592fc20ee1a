package main

import (
	"bytes"
	"fmt"
	"html"
	"strings"
	"unicode/utf8"
)

// picture is a block of pictures.txt.
type picture struct {
	name, title string
	words       []word
	lanes       []string
	steps       []step
}

type word struct {
	name, about string
	fields      []string
}

// step is an operation between two lanes, numbered from 1, or a note at one of them.
type step struct {
	from, to int
	kind     byte // '>', '?', '=' or ':'
	text     string
}

func parse(source string) (all []*picture, err error) {
	var p *picture
	for i, line := range strings.Split(strings.TrimSpace(source), "\n") {
		head, rest, _ := strings.Cut(line, " ")
		bad := func(what string) error { return fmt.Errorf("line %d: %s: %q", i+1, what, line) }
		switch {
		case line == "":
		case head == "#":
			p = &picture{}
			p.name, p.title, _ = strings.Cut(rest, " ")
			all = append(all, p)
		case p == nil:
			return nil, bad("no picture has begun")
		case head == "word":
			cells := strings.Split(rest, " | ")
			if len(cells) != 3 {
				return nil, bad("want a name, fields and a place")
			}
			p.words = append(p.words, word{cells[0], cells[2], strings.Split(cells[1], ", ")})
		case head == "lanes":
			p.lanes = strings.Split(rest, " | ")
		default:
			s, ok := parseStep(head, rest, len(p.lanes))
			if !ok {
				return nil, bad("want 1>2, 1?2, 1=2 or 1: with numbers of lanes")
			}
			p.steps = append(p.steps, s)
		}
	}
	return all, nil
}

func parseStep(head, text string, lanes int) (s step, ok bool) {
	s.text = text
	if n, err := fmt.Sscanf(head, "%d%c%d", &s.from, &s.kind, &s.to); n == 3 && err == nil {
		return s, strings.IndexByte(">?=", s.kind) >= 0 && s.from != s.to && within(s.from, lanes) && within(s.to, lanes)
	}
	n, _ := fmt.Sscanf(head, "%d%c", &s.from, &s.kind)
	return s, n == 2 && s.kind == ':' && within(s.from, lanes)
}

func within(lane, lanes int) bool { return 1 <= lane && lane <= lanes }

// Sizes, in pixels.
const (
	width   = 760
	margin  = 12
	letter  = 6.8 // mean width of a letter
	wordRow = 30
	stepRow = 34
)

// The ground is light and the ink dark whatever is around the picture.
const style = `<style>
text { font: 12px sans-serif; fill: #1f2328 } .t { font-weight: bold; font-size: 14px } .w { font-weight: bold }
.c { fill: #57606a } .h { paint-order: stroke; stroke: #fbfcfe; stroke-width: 4px }
.b { fill: #ddf4ff; stroke: #54aeff } .n { fill: #fff8c5; stroke: #d4a72c } .l { stroke: #afb8c1 }
.o { stroke: #0969da; stroke-width: 1.5 } .r { stroke: #6e7781; stroke-dasharray: 4 3 } .g { stroke: #1a7f37; stroke-width: 3 }
</style>
<defs>
<marker id="o" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 8 4 0 8z" fill="#0969da"/></marker>
<marker id="r" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 8 4 0 8z" fill="#6e7781"/></marker>
<marker id="g" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="11" markerHeight="11" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 8 4 0 8z" fill="#1a7f37"/></marker>
</defs>
`

// svg draws the words, one below the other, and then the steps.
func (p *picture) svg() []byte {
	top := 44 + wordRow*len(p.words) + 12
	height := top + 30 + stepRow*len(p.steps) + margin
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%d" role="img" aria-label="%s">`+"\n",
		width, height, html.EscapeString(p.title))
	b.WriteString(style)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="6" fill="#fbfcfe" stroke="#d0d7de"/>`+"\n", width, height)
	label(&b, "t", margin, 26, "start", p.title)
	for i, w := range p.words {
		w.draw(&b, 44+wordRow*i)
	}
	for i, lane := range p.lanes {
		x := p.x(i + 1)
		fmt.Fprintf(&b, `<line class="l" x1="%g" y1="%d" x2="%[1]g" y2="%[3]d"/>`+"\n", x, top+22, height-margin)
		box(&b, "b", x, top, lane)
	}
	for i, s := range p.steps {
		p.draw(&b, s, top+30+stepRow*i)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// x is the middle of a lane.
func (p *picture) x(lane int) float64 {
	return width * (2*float64(lane) - 1) / (2 * float64(len(p.lanes)))
}

// draw draws a word as its name, a box for each field, and what is said about it.
func (w *word) draw(b *bytes.Buffer, y int) {
	label(b, "w", margin, y+16, "start", w.name)
	x := float64(margin) + max(76, textWidth(w.name)+14)
	for _, f := range w.fields {
		wide := textWidth(f) + 12
		fmt.Fprintf(b, `<rect class="b" x="%.0f" y="%d" width="%.0f" height="22"/>`+"\n", x, y, wide)
		label(b, "", x+wide/2, y+15, "middle", f)
		x += wide
	}
	label(b, "c", x+8, y+15, "start", w.about)
}

var classes = map[byte]string{'>': "o", '?': "r", '=': "g"}

func (p *picture) draw(b *bytes.Buffer, s step, y int) {
	from := p.x(s.from)
	if s.kind == ':' {
		box(b, "n", from, y+4, s.text)
		return
	}
	to, class := p.x(s.to), classes[s.kind]
	fmt.Fprintf(b, `<line class="%s" x1="%g" y1="%d" x2="%g" y2="%[3]d" marker-end="url(#%[1]s)"/>`+"\n", class, from, y+22, to)
	label(b, "h", inside((from+to)/2, textWidth(s.text)), y+15, "middle", s.text)
}

// box is a text in a box with its middle at x.
func box(b *bytes.Buffer, class string, x float64, y int, text string) {
	wide := textWidth(text) + 14
	x = inside(x, wide)
	fmt.Fprintf(b, `<rect class="%s" x="%.0f" y="%d" width="%.0f" height="22" rx="4"/>`+"\n", class, x-wide/2, y, wide)
	label(b, "", x, y+15, "middle", text)
}

// inside is the middle of something so wide that is to be near x, and within the picture.
func inside(x, wide float64) float64 {
	return min(max(x, margin+wide/2), width-margin-wide/2)
}

func textWidth(text string) float64 { return letter * float64(utf8.RuneCountInString(text)) }

func label(b *bytes.Buffer, class string, x float64, y int, anchor, text string) {
	fmt.Fprintf(b, `<text class="%s" x="%.0f" y="%d" text-anchor="%s">%s</text>`+"\n", class, x, y, anchor, html.EscapeString(text))
}
