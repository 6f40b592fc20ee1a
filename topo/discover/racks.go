package discover

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/rmalock/rmalock/topo"
)

// The variables of the environment that rank 0 of a job heeds in Topology.
const (
	EnvFile  = "RMALOCK_TOPO"  // a file to read the topology from, as topo.ReadFile does
	EnvRacks = "RMALOCK_RACKS" // where host names tell what is above the node; see Topology
)

// racks is a pattern of host names, whose named groups are levels above the node.
type racks struct {
	re     *regexp.Regexp
	levels []string
}

// parseRacks reads a pattern such as `^(?P<rack>r\d+)n\d+$`.
func parseRacks(pattern string) (*racks, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("discover: %s: %w: %w", EnvRacks, err, topo.ErrTopology)
	}
	x := &racks{re: re}
	for _, name := range re.SubexpNames() {
		if name == "" {
			continue
		}
		if !topo.AboveNode(name) || slices.Contains(x.levels, name) {
			return nil, fmt.Errorf("discover: %s: group %.60q cannot name a level above the node; write for example (?P<rack>r[0-9]+): %w", EnvRacks, name, topo.ErrTopology)
		}
		x.levels = append(x.levels, name)
	}
	if len(x.levels) == 0 || len(x.levels) >= maxAbove {
		return nil, fmt.Errorf("discover: %s: %.60q has %d named groups, want at least one, such as (?P<rack>r[0-9]+), and fewer than %d: %w",
			EnvRacks, pattern, len(x.levels), maxAbove, topo.ErrTopology)
	}
	return x, nil
}

// place puts what host names tell in place of what Slurm says, or returns a note on
// why it cannot.
func (x *racks) place(places []report) (note string) {
	known := map[string][]topo.Part{}
	for r := range places {
		host := places[r].Host
		if known[host] != nil {
			continue
		}
		m := x.re.FindStringSubmatch(host)
		for _, name := range x.levels {
			if m == nil || m[x.re.SubexpIndex(name)] == "" {
				return fmt.Sprintf("%s finds no %s in the host name %.60q of rank %d: no levels from it", EnvRacks, name, host, r)
			}
			known[host] = append(known[host], topo.Part{Level: name, Name: m[x.re.SubexpIndex(name)]})
		}
	}
	for r := range places {
		places[r].Above, places[r].slurm = known[places[r].Host], ""
	}
	return ""
}
