package netmodel

// A pair is the ranks that share connections: one queue pair for a node.
type pair struct {
	last int32    // node to which it last was connected
	live []uint64 // nodes to which it is, bit by bit
}

// connect notes that a pair has connections to a node, which are live on both sides
// from their first use on.
func (n *Net) connect(p *pair, a, b int32, c *cost) {
	if c.datagram {
		for _, i := range [2]int32{a, b} {
			if q := &n.nic[i]; !q.datagram {
				q.datagram = true
				n.add(i, 1)
			}
		}
		return
	}
	p.last = b
	if p.live == nil {
		p.live = make([]uint64, (len(n.nic)+63)/64)
	}
	if bit := uint64(1) << (b & 63); p.live[b>>6]&bit == 0 {
		p.live[b>>6] |= bit
		n.add(a, int64(n.qps[b]))
		n.add(b, int64(n.qps[b]))
	}
}

// add adds live connections to a NIC. Of L connections in use, a cache of C holds C: an
// operation misses with probability 1 - C/L.
func (n *Net) add(node int32, qps int64) {
	q := &n.nic[node]
	q.live += qps
	if n.qpCap > 0 && q.live > n.qpCap {
		q.misses = uint32((q.live - n.qpCap) << 32 / q.live)
	}
}

// missed reports whether the next operation at the NIC misses the cache. Misses are
// spread by a Weyl sequence, evenly and in no step with any pattern of operations.
func (q *nic) missed() bool {
	if q.misses == 0 {
		return false
	}
	q.weyl += 0x9E3779B9
	return q.weyl < q.misses
}

// Live is the number of live connections at a node's NIC. They are not counted on a
// machine whose qpCap is 0.
func (n *Net) Live(node int) int { return int(n.nic[node].live) }
