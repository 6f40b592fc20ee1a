package discover

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rmalock/rmalock/topo"
)

// switches reads what Slurm says of the way to this node,
//
//	SLURM_TOPOLOGY_ADDR=spine.rackA.n2
//	SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node
//
// into Above and slurm. The innermost of several levels of one kind keeps its name,
// those outside it are switch2, switch3.
//
// Under mpirun the variables may be those of another node: MPICH 4.0 gives
// each process the batch node's SLURM_TOPOLOGY_ADDR and SLURMD_NODENAME, but its
// own SLURM_NODEID; over ssh all are the batch node's. So the address must fit
// whatever else names the node. What passes here is checked again when all ranks
// are known, by agree.
func (p *report) switches(env func(string) string) {
	addr, pattern := env("SLURM_TOPOLOGY_ADDR"), env("SLURM_TOPOLOGY_ADDR_PATTERN")
	if addr == "" {
		return
	}
	kinds := strings.Split(pattern, ".")
	last := len(kinds) - 1
	names := strings.SplitN(addr, ".", len(kinds)) // a node's name may have dots
	if kinds[last] != "node" || len(names) != len(kinds) || slices.Contains(names, "") || len(kinds) >= maxAbove {
		p.note("SLURM_TOPOLOGY_ADDR %.60q does not go with its pattern %.60q: no switches from it", addr, pattern)
		return
	}
	if last == 0 {
		return // a cluster without switches
	}
	node := names[last]
	if doubt := p.doubt(node, env); doubt != "" {
		p.note("no switches from SLURM_TOPOLOGY_ADDR: it is of node %.60q, %s", node, doubt) // the same text on many nodes
		return
	}
	above := make([]topo.Part, last)
	seen := map[string]int{}
	for i := last - 1; i >= 0; i-- {
		kind := kinds[i]
		if !topo.AboveNode(kind) {
			p.note("SLURM_TOPOLOGY_ADDR_PATTERN %.60q: %.60q is no level above a node: no switches from it", pattern, kind)
			return
		}
		if seen[kind]++; seen[kind] > 1 {
			kind += strconv.Itoa(seen[kind])
		}
		above[i] = topo.Part{Level: kind, Name: names[i]}
	}
	p.Above, p.slurm = above, node
}

// doubt says why a node that Slurm names cannot be this one, "" if it can.
func (p *report) doubt(node string, env func(string) string) string {
	sure := false
	for _, name := range []string{"SLURM_STEP_NODELIST", "SLURM_NODELIST", "SLURM_JOB_NODELIST"} {
		list := env(name)
		if list == "" {
			continue
		}
		id, isNumber := parseNumber(env("SLURM_NODEID"))
		if here, ok := nthHost(list, id); ok && isNumber {
			if here != node {
				return "and SLURM_NODEID says that this is another one"
			}
			sure = true
		}
		break
	}
	if here := env("SLURMD_NODENAME"); here != "" {
		if here != node {
			return "and SLURMD_NODENAME says that this is another one"
		}
		sure = true
	}
	if !sure && !sameHost(p.Host, node) {
		return "and neither SLURM_NODEID nor SLURMD_NODENAME nor the host name says that this is it"
	}
	return ""
}

// sameHost compares names of hosts up to the domain.
func sameHost(a, b string) bool {
	a, _, _ = strings.Cut(a, ".")
	b, _, _ = strings.Cut(b, ".")
	return a != "" && a == b
}

// nthHost is the nth name of a list as Slurm writes it: "n[1-4,07],gpu[0-1]x[0-3]".
func nthHost(list string, n int) (name string, ok bool) {
	rest := n
	eachHost(list, func(host string) bool {
		if rest == 0 {
			name, ok = host, true
		}
		rest--
		return rest >= 0
	})
	return name, ok
}

// eachHost yields the names of a list in order, up to the first mistake.
func eachHost(list string, yield func(string) bool) {
	for list != "" {
		item := list
		nested := 0
		end := strings.IndexFunc(list, func(c rune) bool {
			switch c {
			case '[':
				nested++
			case ']':
				nested--
			}
			return c == ',' && nested == 0
		})
		if end >= 0 {
			item, list = list[:end], list[end+1:]
		} else {
			list = ""
		}
		if nested < 0 || !expand("", item, yield) {
			return
		}
	}
}

// expand yields the names of one item after a prefix, and reports whether to go on.
func expand(prefix, item string, yield func(string) bool) bool {
	before, after, ok := strings.Cut(item, "[")
	if !ok {
		return prefix+item != "" && yield(prefix+item)
	}
	ranges, tail, ok := strings.Cut(after, "]")
	if !ok {
		return false
	}
	for r := range strings.SplitSeq(ranges, ",") {
		first, last, isRange := strings.Cut(r, "-")
		if !isRange {
			last = first
		}
		lo, ok := parseNumber(first)
		hi, ok2 := parseNumber(last)
		if !ok || !ok2 || lo > hi {
			return false
		}
		for k := lo; k <= hi; k++ {
			if !expand(fmt.Sprintf("%s%s%0*d", prefix, before, len(first), k), tail, yield) {
				return false
			}
		}
	}
	return true
}

// parseNumber reads a number without a sign.
func parseNumber(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 24)
	return int(n), err == nil
}

// agree settles what Slurm said to each rank, now that all are known. It returns
// places that all list the same levels above the node, or none, and a note where
// something was lost. Places that Slurm said nothing to, and that say nothing
// themselves, count as unknown only where others know.
func agree(places []report) ([]report, string) {
	claims := map[int]*claim{} // by node
	heard := false
	for r := range places {
		p := &places[r]
		c := claims[p.Node]
		if c == nil {
			c = &claim{}
			claims[p.Node] = c
		}
		heard = heard || p.slurm != ""
		c.hear(p)
	}
	if !heard {
		return places, ""
	}
	// Two nodes cannot be the same one of Slurm's: the address of those whose host
	// has another name is a copy.
	by := map[string]int{}
	for _, c := range claims {
		by[c.slurm]++
	}
	deep := &claim{}
	var lost []int
	copied := ""
	for r := range places {
		c := claims[places[r].Node]
		if c.slurm != "" && by[c.slurm] > 1 && !c.fits {
			c.bad, copied = true, c.slurm
		}
		if c.bad || len(c.above) == 0 {
			lost = append(lost, r)
		} else if len(c.above) > len(deep.above) {
			deep = c
		}
	}
	out := slices.Clone(places)
	drop := func(format string, args ...any) ([]report, string) {
		for r := range out {
			out[r].Above, out[r].slurm = nil, ""
		}
		return out, "left out the levels above the node: " + fmt.Sprintf(format, args...)
	}
	if copied != "" {
		return drop("several nodes have the address that SLURM_TOPOLOGY_ADDR has on %s; start ranks with srun, or name racks with %s or %s", copied, EnvRacks, EnvFile)
	}
	if len(lost) > 0 {
		return drop("SLURM_TOPOLOGY_ADDR does not tell for %s; start ranks with srun, or name racks with %s or %s", topo.RanksText(lost), EnvRacks, EnvFile)
	}
	for r := range out {
		// A way with fewer switches begins further in; further out there is no more
		// than its outermost one.
		mine := claims[out[r].Node].above
		short := len(deep.above) - len(mine)
		above := slices.Clone(deep.above)
		for i := range above {
			m := mine[max(i-short, 0)]
			if i >= short && m.Level != above[i].Level {
				return drop("Slurm's patterns of rank %d and others have nothing in common", r)
			}
			above[i].Name = m.Name
		}
		out[r].Above, out[r].slurm = above, ""
	}
	return out, ""
}

// A claim is what the ranks of a node say of the way to it.
type claim struct {
	slurm string // Slurm's name of the node; "" when a place gave Above without Slurm
	above []topo.Part
	fits  bool // the host has that name
	bad   bool // ranks contradict each other
}

// hear adds what one rank says. One whose host has the name it claims is right
// against others.
func (c *claim) hear(p *report) {
	if len(p.Above) == 0 {
		return
	}
	fits := p.slurm == "" || sameHost(p.Host, p.slurm)
	switch {
	case len(c.above) == 0 || fits && !c.fits:
		*c = claim{slurm: p.slurm, above: p.Above, fits: fits}
	case fits == c.fits && !slices.Equal(c.above, p.Above):
		c.bad = true
	}
}
