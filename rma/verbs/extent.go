package verbs

import "slices"

// extents hands out pieces of a memory: free ones, ordered and never adjacent.
type extents struct{ free []extent }

// extent is a piece from one byte to another.
type extent struct{ from, to int }

const pieceAlign = 128 // as rma.PartAlign

// take returns the first free piece of so many bytes.
func (x *extents) take(bytes int) (from int, ok bool) {
	bytes = (bytes + pieceAlign - 1) / pieceAlign * pieceAlign
	for i := range x.free {
		f := &x.free[i]
		if f.to-f.from < bytes {
			continue
		}
		from = f.from
		if f.from += bytes; f.from == f.to {
			x.free = slices.Delete(x.free, i, i+1)
		}
		return from, true
	}
	return 0, false
}

// give returns a piece.
func (x *extents) give(from, bytes int) {
	to := from + (bytes+pieceAlign-1)/pieceAlign*pieceAlign
	i, _ := slices.BinarySearchFunc(x.free, from, func(f extent, at int) int { return f.from - at })
	x.free = slices.Insert(x.free, i, extent{from, to})
	if i+1 < len(x.free) && x.free[i+1].from == to {
		x.free[i].to = x.free[i+1].to
		x.free = slices.Delete(x.free, i+1, i+2)
	}
	if i > 0 && x.free[i-1].to == from {
		x.free[i-1].to = x.free[i].to
		x.free = slices.Delete(x.free, i, i+1)
	}
}

// left is the number of free bytes.
func (x *extents) left() int {
	n := 0
	for _, f := range x.free {
		n += f.to - f.from
	}
	return n
}
