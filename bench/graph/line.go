package graph

import (
	"bytes"
	"fmt"
	"math"
)

// A LineError says which line of a file is not an edge. It wraps ErrLine.
type LineError struct {
	File string // path
	Line int64  // from 1
	Text string // the token or the line that is wrong, shortened
	Why  string // what is wrong
}

// Error says file, line, what is wrong, and the text.
func (e *LineError) Error() string {
	return fmt.Sprintf("graph: %s:%d: %s: %q", e.File, e.Line, e.Why, e.Text)
}

// Unwrap is ErrLine.
func (e *LineError) Unwrap() error { return ErrLine }

// flaw is what is wrong with a line, before its number is known.
type flaw struct {
	text []byte
	why  string
}

const (
	whyFew    = "want two vertices, found one"
	whyMany   = "want two vertices, found more"
	whySign   = "a vertex is a number from 0 to 2^63-1, this is negative"
	whyBig    = "a vertex is a number from 0 to 2^63-1, this is larger"
	whyNumber = "a vertex is a decimal number, this is not"
	whyLong   = "line is longer than 65536 bytes, which no edge is"
)

// parse reads the edge in a line, if there is one.
func parse(line []byte) (u, v int64, edge bool, bad flaw) {
	i := blank(line, 0)
	if i == len(line) || line[i] == '#' {
		return 0, 0, false, flaw{}
	}
	u, i, why := number(line, i)
	if why != "" {
		return 0, 0, false, flaw{token(line, i), why}
	}
	if i = blank(line, i); i == len(line) {
		return 0, 0, false, flaw{line, whyFew}
	}
	v, i, why = number(line, i)
	if why != "" {
		return 0, 0, false, flaw{token(line, i), why}
	}
	if i = blank(line, i); i != len(line) {
		return 0, 0, false, flaw{line, whyMany}
	}
	return u, v, true, flaw{}
}

// blank is the index of the first byte from i on that is no white space.
func blank(line []byte, i int) int {
	for i < len(line) && isBlank(line[i]) {
		i++
	}
	return i
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// number reads a number at i and returns the index behind it, or that of the
// number and what is wrong with it.
func number(line []byte, i int) (n int64, next int, why string) {
	first := i
	for ; i < len(line) && !isBlank(line[i]); i++ {
		d := line[i] - '0'
		if d > 9 {
			if line[first] == '-' && i == first && i+1 < len(line) && line[i+1]-'0' <= 9 {
				return 0, first, whySign
			}
			return 0, first, whyNumber
		}
		if i-first >= 18 && n > (math.MaxInt64-int64(d))/10 { // 18 digits always fit
			return 0, first, whyBig
		}
		n = 10*n + int64(d)
	}
	return n, i, ""
}

// token is the word that begins at i.
func token(line []byte, i int) []byte {
	end := i
	for end < len(line) && !isBlank(line[end]) {
		end++
	}
	return line[i:end]
}

// shorten makes a text fit for an error.
func shorten(text []byte) string {
	const most = 60
	text = bytes.TrimSpace(text)
	if len(text) > most {
		return string(text[:most]) + "..."
	}
	return string(text)
}
