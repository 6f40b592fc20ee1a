// Command components finds the connected components of a graph: a forest of all its
// vertices that lies in the memory of all ranks, joined edge by edge under locks as
// fine as they can be, one for each vertex. Then it checks every vertex against a
// sequential program.
//
//	go run ./examples/components -ranks 4 -edges facebook_combined.txt
//	go build -o components ./examples/components && mpirun -n 4 ./components
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/rmalock/rmalock/bench/graph"
	"github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/mpi"
)

func main() {
	backend := flag.String("backend", "auto", "where ranks come from: mpi, inproc, or auto: mpi under mpirun or srun")
	ranks := flag.Int("ranks", 4, "ranks of the inproc backend")
	edges := flag.String("edges", "", "file of edges in the form of the Stanford collection, plain or gzip; without it a random graph (R-MAT)")
	scale := flag.Int("scale", 12, "random graph: it has 2^scale vertices and 16 times as many edges")
	flag.Parse()
	join := func(c rma.Comm) error {
		g, err := open(*edges, *scale)
		if err := rma.Agree(c, err); err != nil { // a file may be missing at one rank alone
			return err
		}
		return join(c, g)
	}
	if err := start(*backend, *ranks, join); err != nil {
		fmt.Fprintln(os.Stderr, "components:", err)
		os.Exit(1)
	}
}

// start runs f at every rank: as goroutines of this process, or in all processes of
// the job that the launcher has started.
func start(backend string, ranks int, f func(rma.Comm) error) error {
	switch {
	case backend == "mpi" || backend == "auto" && mpi.Launched():
		return mpi.Run(f)
	case backend == "inproc" || backend == "auto":
		return inproc.Run(ranks, f)
	}
	return fmt.Errorf("no backend is called %q", backend)
}

func open(path string, scale int) (graph.Source, error) {
	if path != "" {
		return graph.OpenFile(path)
	}
	return graph.NewRMAT(scale, 1)
}

// A forest is one rank's handle on the trees: the parent of every vertex, itself for
// a root. A parent's number is never greater than its child's, so there are no
// circles, and the root of a component is its least vertex.
//
// The word of vertex v lies at rank v mod Size, and so does lock v of a table of
// dmcs: the lock of a word that one changes is where the word is.
type forest struct {
	parents *rma.Window
	locks   *dmcs.Table
	ranks   int
	joins   int64
	// above is private memory: an ancestor of each vertex that this rank has seen. An
	// ancestor stays one for ever, so old knowledge is right, if not the newest. It
	// spares most of the remote reads.
	above []int64
}

// join is the program of one rank.
func join(c rma.Comm, g graph.Source) error {
	f := &forest{ranks: c.Size()}
	var mine [][2]int64 // the rank's share of the edges
	top := int64(-1)
	err := g.Edges(c.Rank(), c.Size(), func(u, v int64) error {
		mine = append(mine, [2]int64{u, v})
		top = max(top, u, v)
		if top >= 1<<28 {
			return fmt.Errorf("vertex %d: this program has a word for every number up to the greatest", top)
		}
		return nil
	})
	if err := rma.Agree(c, err); err != nil {
		return err
	}
	tops, err := c.Allgather([]int64{top})
	if err != nil {
		return err
	}
	for _, t := range tops {
		top = max(top, t)
	}
	if top < 0 {
		return fmt.Errorf("%v: %w", g, graph.ErrNoEdges)
	}
	vertices := int(top) + 1

	// Written by the holder of the vertex's lock alone, read by everybody without it:
	// that is what words of class Flag allow.
	per := (vertices + c.Size() - 1) / c.Size()
	if f.parents, err = c.Allocate(rma.DataSpec("parents", per)); err != nil {
		return err
	}
	if f.locks, err = dmcs.New(c, dmcs.Config{Locks: vertices}); err != nil {
		return err
	}
	f.above = make([]int64, vertices)
	for v := range f.above {
		f.above[v] = int64(v)
	}
	own := make([]int64, per)
	for disp := range own { // every vertex is the root of a tree of its own
		own[disp] = int64(disp*c.Size() + c.Rank())
	}
	f.parents.PutBulk(own, c.Rank(), 0)
	if err := f.parents.Flush(c.Rank()); err != nil {
		return err
	}
	if err := c.Barrier(); err != nil {
		return err
	}

	for _, e := range mine {
		if err := f.union(e[0], e[1]); err != nil {
			return err
		}
	}
	joins, err := c.Allgather([]int64{f.joins}) // and nobody goes on before all have joined
	if err != nil {
		return err
	}
	wrong := error(nil)
	if c.Rank() == 0 {
		wrong = f.check(g, joins)
	}
	if err := rma.Agree(c, wrong); err != nil {
		return err
	}
	if err := f.locks.Free(); err != nil {
		return err
	}
	return f.parents.Free()
}

func (f *forest) place(v int64) (rank, disp int) { return int(v) % f.ranks, int(v) / f.ranks }

// find follows parents up to a root. It takes no lock: when it returns, the root may
// have become a child of somebody.
func (f *forest) find(v int64) (int64, error) {
	root := v
	for f.above[root] != root {
		root = f.above[root]
	}
	for {
		rank, disp := f.place(root)
		p, err := f.parents.GetFlush(rank, disp)
		if err != nil {
			return 0, err
		}
		if p == root {
			f.above[v] = root
			return root, nil
		}
		f.above[root] = p
		root = p
	}
}

// union makes the trees of two vertices one. It holds one lock, for a read and a
// write; only what really joins trees takes it, at most once for each vertex of the
// graph.
func (f *forest) union(u, v int64) error {
	for {
		a, err := f.find(u)
		if err != nil {
			return err
		}
		b, err := f.find(v)
		if err != nil || a == b {
			return err
		}
		child, parent := max(a, b), min(a, b)
		done, err := f.hang(child, parent)
		if done {
			f.joins++
		}
		if done || err != nil {
			return err
		}
		// Somebody has hung the root elsewhere since find: look again.
	}
}

// hang makes a root a child, and reports whether it still was a root. The parent need
// not be one any more: an ancestor of the parent is above the child too, then.
func (f *forest) hang(child, parent int64) (bool, error) {
	if err := f.locks.Lock(context.Background(), int(child), lock.Exclusive); err != nil {
		return false, err
	}
	rank, disp := f.place(child)
	now, err := f.parents.GetFlush(rank, disp)
	if err != nil {
		return false, err
	}
	root := now == child
	if root {
		if err := f.parents.PutFlush(parent, rank, disp); err != nil {
			return false, err
		}
	}
	return root, f.locks.Unlock(int(child), lock.Exclusive)
}

// check compares every vertex with a sequential answer.
func (f *forest) check(g graph.Source, joins []int64) error {
	want := make([]int64, len(f.above))
	for v := range want {
		want[v] = int64(v)
	}
	root := func(v int64) int64 {
		for want[v] != v {
			want[v] = want[want[v]]
			v = want[v]
		}
		return v
	}
	edges := 0
	seen := make([]bool, len(want)) // numbers without an edge are no vertices
	err := g.Edges(0, 1, func(u, v int64) error {
		edges++
		seen[u], seen[v] = true, true
		a, b := root(u), root(v)
		want[max(a, b)] = min(a, b)
		return nil
	})
	if err != nil {
		return err
	}
	vertices, components, joined := 0, 0, int64(0)
	for v := range want {
		got, err := f.find(int64(v))
		if err != nil {
			return err
		}
		if r := root(int64(v)); got != r {
			return fmt.Errorf("vertex %d is in the component of %d, want %d", v, got, r)
		}
		if seen[v] {
			vertices++
			if got == int64(v) {
				components++
			}
		}
	}
	for _, n := range joins {
		joined += n
	}
	if joined != int64(vertices-components) {
		return fmt.Errorf("trees were joined %d times, want %d", joined, vertices-components)
	}
	fmt.Printf("components: %v: %d vertices, %d edges, %d components, found by %d ranks: as in the sequential answer\n",
		g, vertices, edges, components, f.ranks)
	return nil
}
