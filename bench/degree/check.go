package degree

import (
	"fmt"

	"github.com/rmalock/rmalock/dht"
	"github.com/rmalock/rmalock/rma"
)

// found is what the check found, of all ranks.
type found struct {
	vertices    int64 // in the table
	differences int64
	first       difference // that of the smallest vertex
}

// A difference is a vertex whose count is not what it should be; -1 for a vertex
// that is not there.
type difference struct{ vertex, got, want int64 }

// String describes the difference.
func (d difference) String() string {
	switch {
	case d.got < 0:
		return fmt.Sprintf("vertex %d is not in the table, want degree %d", d.vertex, d.want)
	case d.want < 0:
		return fmt.Sprintf("vertex %d is in the table with degree %d, and in no edge", d.vertex, d.got)
	}
	return fmt.Sprintf("vertex %d has degree %d in the table, want %d", d.vertex, d.got, d.want)
}

// note adds a difference.
func (f *found) note(d difference) {
	if f.differences == 0 || d.vertex < f.first.vertex {
		f.first = d
	}
	f.differences++
}

// check compares the rank's volume with a sequential count, and hears what the
// others found. Collective; errors are agreed on.
func (j *job) check(t *dht.Table) (found, error) {
	mine, err := j.compare(t)
	if err := rma.Agree(j.c, err); err != nil {
		return found{}, err
	}
	all, err := j.c.Allgather([]int64{mine.vertices, mine.differences, mine.first.vertex, mine.first.got, mine.first.want})
	if err != nil {
		return found{}, err
	}
	var f found
	for ; len(all) > 0; all = all[5:] {
		f.vertices += all[0]
		if n := all[1]; n > 0 {
			f.note(difference{all[2], all[3], all[4]})
			f.differences += n - 1
		}
	}
	return f, nil
}

// compare looks for differences in both directions. Its memory is a map entry per
// vertex of the volume.
func (j *job) compare(t *dht.Table) (found, error) {
	want := map[int64]int64{}
	me := j.c.Rank()
	err := j.cfg.Source.Edges(0, 1, func(u, v int64) error {
		if t.Volume(u) == me {
			want[u]++
		}
		if t.Volume(v) == me {
			want[v]++
		}
		return nil
	})
	if err != nil {
		return found{}, fmt.Errorf("degree: sequential pass: %w", err)
	}
	var f found
	err = t.Range(func(vertex, got int64) error {
		f.vertices++
		n, ok := want[vertex]
		if !ok {
			n = -1
		}
		if n != got {
			f.note(difference{vertex, got, n})
		}
		delete(want, vertex) // a vertex that is there twice is a difference, too
		return nil
	})
	if err != nil {
		return found{}, fmt.Errorf("degree: reading the volume: %w", err)
	}
	for vertex, n := range want {
		f.note(difference{vertex, -1, n})
	}
	return f, nil
}
