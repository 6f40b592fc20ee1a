package remote

// A Ref names a block: its host and the displacement of its first word there. It has at most
// 48 bits, so that a word has room for more beside it. The zero Ref names no block.
type Ref int64

const (
	nodeBits  = 8
	dispBits  = 40
	refBits   = nodeBits + dispBits
	epochBits = 40
)

// At is the Ref of a host and a displacement.
func At(node, disp int) Ref { return Ref(node)<<dispBits | Ref(disp) }

// Node is the block's host.
func (r Ref) Node() int { return int(r >> dispBits) }

// Disp is the displacement of the block's first word.
func (r Ref) Disp() int { return int(r & (1<<dispBits - 1)) }
