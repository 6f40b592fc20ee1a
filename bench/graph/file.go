package graph

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	maxLine    = 64 << 10  // bytes, line feed included
	readBuffer = 256 << 10 // bytes
	blockLines = 512       // lines of a compressed file that one rank takes in a row
)

// A File is a list of edges in a file; see the package comment for its form.
//
// Ranks read a plain file by ranges of bytes. A line belongs to the rank whose range has its
// first byte. A compressed file has no ranges: every rank reads all of it and takes every
// size'th block of lines.
type File struct {
	path       string
	size       int64 // bytes
	compressed bool
}

var _ Source = (*File)(nil)

// OpenFile looks at a file and remembers its size and whether it is compressed,
// which the first two bytes say, whatever its name. Errors are those of the
// operating system, ErrNoEdges for an empty file and ErrConfig for what is no
// regular file.
func OpenFile(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("graph: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("graph: %w", err)
	}
	switch {
	case info.IsDir():
		return nil, fmt.Errorf("graph: %s is a directory, want a file of edges: %w", path, ErrConfig)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("graph: %s is not a regular file, and ranks must be able to seek in it: %w", path, ErrConfig)
	case info.Size() == 0:
		return nil, fmt.Errorf("graph: %s is empty: %w", path, ErrNoEdges)
	}
	var magic [2]byte
	n, err := io.ReadFull(f, magic[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("graph: %w", err)
	}
	return &File{path: path, size: info.Size(), compressed: n == 2 && magic == [2]byte{0x1f, 0x8b}}, nil
}

// String is the path.
func (g *File) String() string { return g.path }

// Estimate reads the first 256 KiB of lines and supposes that the rest of the file
// has edges at the same rate per byte, compressed or not. It is 0 if the file
// cannot be read any more. There are at most twice as many vertices as edges, and
// usually far fewer.
func (g *File) Estimate() (edges, vertices int64) {
	f, err := os.Open(g.path)
	if err != nil {
		return 0, 0
	}
	defer f.Close()
	text := io.Reader(f)
	if g.compressed {
		if text, err = gzip.NewReader(f); err != nil {
			return 0, 0
		}
	}
	head, _ := io.ReadAll(io.LimitReader(text, readBuffer)) // what there is will do
	for _, line := range bytes.SplitAfter(head, []byte{'\n'}) {
		if _, _, edge, _ := parse(line); edge {
			edges++
		}
	}
	if at, err := f.Seek(0, io.SeekCurrent); err == nil && 0 < at && at < g.size {
		edges = int64(float64(edges) / float64(at) * float64(g.size))
	}
	return edges, 2 * edges
}

// Edges visits a share of the file. Errors are *LineError, those of reading, and
// ErrNoEdges.
func (g *File) Edges(rank, size int, f func(u, v int64) error) error {
	checkRank(rank, size)
	file, err := os.Open(g.path)
	if err != nil {
		return fmt.Errorf("graph: %w", err)
	}
	defer file.Close()
	found := false
	visit := func(u, v int64) error {
		found = true
		return f(u, v)
	}
	if g.compressed {
		err = g.blocks(file, rank, size, visit)
	} else {
		err = g.bytes(file, rank, size, visit)
	}
	if err == nil && size == 1 && !found {
		err = fmt.Errorf("graph: %s has no edges: %w", g.path, ErrNoEdges)
	}
	return err
}

// bytes visits the lines that begin in the rank's range of a plain file.
func (g *File) bytes(file *os.File, rank, size int, f func(u, v int64) error) error {
	at, end := share(g.size, rank, size)
	if at == end {
		return nil
	}
	skip := at > 0
	if skip { // the line before the range belongs to another rank
		at--
	}
	if _, err := file.Seek(at, io.SeekStart); err != nil {
		return fmt.Errorf("graph: %w", err)
	}
	r := bufio.NewReaderSize(file, readBuffer)
	for at < end {
		line, err := r.ReadSlice('\n')
		if err != nil && err != io.EOF && err != bufio.ErrBufferFull {
			return fmt.Errorf("graph: %s, at byte %d: %w", g.path, at, err)
		}
		if len(line) > maxLine {
			return g.lineError(at, flaw{line, whyLong})
		}
		if err == io.EOF && at+int64(len(line)) < g.size {
			at += int64(len(line))
			return fmt.Errorf("graph: %s ends at byte %d, it had %d bytes when it was opened: %w", g.path, at, g.size, io.ErrUnexpectedEOF)
		}
		if skip {
			skip = false
		} else if u, v, edge, bad := parse(line); edge {
			if err := f(u, v); err != nil {
				return err
			}
		} else if bad.why != "" {
			return g.lineError(at, bad)
		}
		at += int64(len(line))
	}
	return nil
}

// lineError is the error of the line that begins at a byte. To know its number, the
// file is read up to there.
func (g *File) lineError(at int64, bad flaw) error {
	e := &LineError{File: g.path, Line: 1, Text: shorten(bad.text), Why: bad.why}
	file, err := os.Open(g.path)
	if err != nil {
		return errors.Join(e, err)
	}
	defer file.Close()
	buf := make([]byte, readBuffer)
	for before := io.LimitReader(file, at); ; {
		n, err := before.Read(buf)
		e.Line += int64(bytes.Count(buf[:n], []byte{'\n'}))
		if err == io.EOF {
			return e
		}
		if err != nil {
			return errors.Join(e, err)
		}
	}
}

// blocks visits every size'th block of lines of a compressed file.
func (g *File) blocks(file *os.File, rank, size int, f func(u, v int64) error) error {
	z, err := gzip.NewReader(bufio.NewReaderSize(file, readBuffer))
	if err != nil {
		return fmt.Errorf("graph: %s looks compressed: %w", g.path, err)
	}
	r := bufio.NewReaderSize(z, readBuffer)
	for n := int64(0); ; n++ {
		line, err := r.ReadSlice('\n')
		if err != nil && err != io.EOF && err != bufio.ErrBufferFull {
			return fmt.Errorf("graph: %s, after %d lines: %w", g.path, n, err)
		}
		if len(line) > maxLine {
			return &LineError{File: g.path, Line: n + 1, Text: shorten(line), Why: whyLong}
		}
		if n/blockLines%int64(size) == int64(rank) {
			if u, v, edge, bad := parse(line); edge {
				if err := f(u, v); err != nil {
					return err
				}
			} else if bad.why != "" {
				return &LineError{File: g.path, Line: n + 1, Text: shorten(bad.text), Why: bad.why}
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}
