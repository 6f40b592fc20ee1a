package discover

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rmalock/rmalock/topo"
)

// lookup is an environment of NAME=value lines.
func lookup(lines string) func(string) string {
	return func(name string) string {
		for line := range strings.Lines(lines) {
			if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok && k == name {
				return v
			}
		}
		return ""
	}
}

// A started process is a rank with what a launcher put into its environment.
type started struct {
	host string
	node int // that it shares memory with
	env  string
}

// built is build without errors.
func built(t *testing.T, places ...report) *topo.Topology {
	t.Helper()
	tree, err := build(places)
	require.NoError(t, err)
	return tree
}

// say is the report of a rank on a node.
func say(node int, host, slurm string, above ...topo.Part) report {
	return report{topo.Place{Host: host, Node: node, Above: above}, slurm}
}

// started places ranks and builds their topology.
func startedJob(t *testing.T, ranks []started) *topo.Topology {
	t.Helper()
	root := t.TempDir()
	var places []report
	for _, s := range ranks {
		p, err := local(Options{Root: root, Host: s.host, CPUs: "0", Env: lookup(s.env)})
		require.NoError(t, err)
		p.Node = s.node
		sent, err := decodeReport(p.encode())
		require.NoError(t, err)
		require.Equal(t, p, sent)
		places = append(places, p)
	}
	return built(t, places...)
}

// above is the levels above the node with their parts and ranks, and the notes
// about them.
func above(tree *topo.Topology) string {
	node, _ := tree.Find("node")
	var b strings.Builder
	for i := 1; i < node; i++ {
		b.WriteString(tree.Levels()[i].Name + ":")
		for e := range tree.Elements(i) {
			fmt.Fprintf(&b, " %s(%s)", tree.Label(i, e), topo.MakeSet(tree.Ranks(i, e)...))
		}
		b.WriteString("\n")
	}
	for _, n := range tree.Notes() {
		if !strings.Contains(n, "no description of NUMA nodes") && (strings.Contains(n, "SLURM") || strings.Contains(n, "Slurm") || strings.Contains(n, EnvRacks)) {
			b.WriteString(n + "\n")
		}
	}
	return b.String()
}

// A job of eight ranks on four nodes, n1 and n2 at rackA, n3 and n4 at rackB, as
// Slurm 22.05 and the launchers under it set the variables. The node of a rank is
// rank/2. The batch script runs on n1.
const (
	batch = `
SLURM_JOB_ID=12
SLURM_JOB_NODELIST=n[1-4]
SLURM_NODELIST=n[1-4]
SLURM_NODEID=0
SLURM_PROCID=0
SLURM_LOCALID=0
SLURMD_NODENAME=n1
SLURM_TOPOLOGY_ADDR=spine.rackA.n1
SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node
`
	racksOfJob = "switch: rackA(0-3) rackB(4-7)\n"
)

// addr is the way to a node of the job.
func addr(n int) string { return fmt.Sprintf("spine.rack%c.n%d", 'A'+(n-1)/2, n) }

func TestSrun(t *testing.T) {
	var ranks []started
	for r := range 8 {
		n := r/2 + 1
		ranks = append(ranks, started{fmt.Sprintf("n%d", n), r / 2, fmt.Sprintf(`
SLURM_JOB_ID=12
SLURM_STEP_ID=0
SLURM_JOB_NODELIST=n[1-4]
SLURM_NODELIST=n[1-4]
SLURM_STEP_NODELIST=n[1-4]
SLURM_NODEID=%d
SLURM_PROCID=%d
SLURM_LOCALID=%d
SLURMD_NODENAME=n%d
SLURM_TOPOLOGY_ADDR=%s
SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node
`, n-1, r, r%2, n, addr(n))})
	}
	require.Equal(t, racksOfJob, above(startedJob(t, ranks)), "the spine splits nothing")

	// Hosts that have other names than Slurm's nodes: the variables go together.
	for r := range ranks {
		ranks[r].host = fmt.Sprintf("10-0-0-%d.cloud", r/2)
	}
	require.Equal(t, racksOfJob, above(startedJob(t, ranks)))

	// A step on some of the nodes: SLURM_NODEID counts the step's.
	part := ranks[4:]
	for r := range part {
		part[r].env = strings.ReplaceAll(part[r].env, "SLURM_STEP_NODELIST=n[1-4]", "SLURM_STEP_NODELIST=n[3-4]")
		part[r].env = strings.ReplaceAll(part[r].env, fmt.Sprintf("SLURM_NODEID=%d", 2+r/2), fmt.Sprintf("SLURM_NODEID=%d", r/2))
		part[r].node = r / 2
	}
	tree := startedJob(t, part)
	require.Equal(t, "", above(tree), "one switch for all")
	require.Contains(t, fmt.Sprint(tree.Notes()), "left out switch2, switch: splits nothing that another level does not")
}

func TestOpenMPIUnderSlurm(t *testing.T) {
	// Ranks of the batch node have the script's variables; the others those of their
	// daemon, which srun started on the nodes after the first.
	var ranks []started
	for r := range 8 {
		s := started{fmt.Sprintf("n%d", r/2+1), r / 2, batch}
		if n := r/2 + 1; n > 1 {
			s.env = fmt.Sprintf(`
SLURM_JOB_NODELIST=n[1-4]
SLURM_NODELIST=n[1-4]
SLURM_STEP_NODELIST=n[2-4]
SLURM_NODEID=%d
SLURM_PROCID=%d
SLURM_LOCALID=0
SLURMD_NODENAME=n%d
SLURM_TOPOLOGY_ADDR=%s
SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node
`, n-2, n-2, n, addr(n))
		}
		s.env += fmt.Sprintf("OMPI_COMM_WORLD_RANK=%d\nPMIX_RANK=%d\n", r, r)
		ranks = append(ranks, s)
	}
	require.Equal(t, racksOfJob, above(startedJob(t, ranks)))
}

func TestMPICHUnderSlurm(t *testing.T) {
	// In 4.0 the batch node's variables go everywhere, but for some of which each
	// node has its own, SLURM_NODEID among them.
	var ranks []started
	for r := range 8 {
		n := r/2 + 1
		env := strings.ReplaceAll(batch, "SLURM_NODEID=0", fmt.Sprintf("SLURM_NODEID=%d", n-1))
		env = strings.ReplaceAll(env, "SLURM_PROCID=0", fmt.Sprintf("SLURM_PROCID=%d", n-1))
		ranks = append(ranks, started{fmt.Sprintf("n%d", n), r / 2, env + fmt.Sprintf("PMI_RANK=%d\nMPI_LOCALRANKID=%d\n", r, r%2)})
	}
	require.Equal(t, "ranks 2-7: no switches from SLURM_TOPOLOGY_ADDR: it is of node \"n1\", and SLURM_NODEID says that this is another one\n"+
		"left out the levels above the node: SLURM_TOPOLOGY_ADDR does not tell for ranks 2-7; start ranks with srun, or name racks with RMALOCK_RACKS or RMALOCK_TOPO\n",
		above(startedJob(t, ranks)))

	// Over ssh all of them are the batch node's, and agree with each other.
	for r := range ranks {
		ranks[r].env = batch
	}
	copies := "left out the levels above the node: several nodes have the address that SLURM_TOPOLOGY_ADDR has on n1; start ranks with srun, or name racks with RMALOCK_RACKS or RMALOCK_TOPO\n"
	require.Equal(t, copies, above(startedJob(t, ranks)))
	for r := range ranks {
		ranks[r].host = "localhost" // nothing to tell the true one by
	}
	require.Equal(t, copies, above(startedJob(t, ranks)))

	// Where none are passed on each has its own, and that is as good as srun's.
	for r := range ranks {
		n := r/2 + 1
		env := strings.ReplaceAll(batch, "SLURM_NODEID=0", fmt.Sprintf("SLURM_NODEID=%d", n-1))
		env = strings.ReplaceAll(env, "NODENAME=n1", fmt.Sprintf("NODENAME=n%d", n))
		ranks[r].env = strings.ReplaceAll(env, "spine.rackA.n1", addr(n))
	}
	require.Equal(t, racksOfJob, above(startedJob(t, ranks)))
}

func TestPretendedNodesOfOneHost(t *testing.T) {
	// Goroutines that play four nodes on n1: the address is true of all of them.
	var ranks []started
	for r := range 8 {
		ranks = append(ranks, started{"n1.cluster", r / 2, batch})
	}
	tree := startedJob(t, ranks)
	require.Equal(t, "", above(tree))
	require.Equal(t, 4, tree.Elements(1))
}

func TestBrokenSlurmVariables(t *testing.T) {
	fits := "SLURMD_NODENAME=n2\nSLURM_TOPOLOGY_ADDR=spine.rackA.n2\nSLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node\n"
	with := func(name, value string) string {
		var b strings.Builder
		for line := range strings.Lines(fits) {
			if k, _, _ := strings.Cut(line, "="); k != name {
				b.WriteString(line)
			}
		}
		return b.String() + name + "=" + value + "\n"
	}
	known := []topo.Part{{Level: "switch2", Name: "spine"}, {Level: "switch", Name: "rackA"}}
	for _, c := range []struct {
		env   string
		host  string
		above []topo.Part
		note  string
	}{
		{"", "n2", nil, ""},
		{fits, "n2", known, ""},
		{fits, "other", known, ""},
		{with("SLURM_TOPOLOGY_ADDR_PATTERN", ""), "n2", nil, `SLURM_TOPOLOGY_ADDR "spine.rackA.n2" does not go with its pattern "": no switches from it`},
		{with("SLURM_TOPOLOGY_ADDR_PATTERN", "switch.node"), "n2", nil, `no switches from SLURM_TOPOLOGY_ADDR: it is of node "rackA.n2", and SLURMD_NODENAME says that this is another one`},
		{with("SLURM_TOPOLOGY_ADDR_PATTERN", "switch.switch.switch.node"), "n2", nil, `SLURM_TOPOLOGY_ADDR "spine.rackA.n2" does not go with its pattern "switch.switch.switch.node": no switches from it`},
		{with("SLURM_TOPOLOGY_ADDR_PATTERN", "node.switch.switch"), "n2", nil, `SLURM_TOPOLOGY_ADDR "spine.rackA.n2" does not go with its pattern "node.switch.switch": no switches from it`},
		{with("SLURM_TOPOLOGY_ADDR_PATTERN", "Switch.SWITCH.node"), "n2", nil, `SLURM_TOPOLOGY_ADDR_PATTERN "Switch.SWITCH.node": "SWITCH" is no level above a node: no switches from it`},
		{with("SLURM_TOPOLOGY_ADDR_PATTERN", "core.switch.node"), "n2", nil, `SLURM_TOPOLOGY_ADDR_PATTERN "core.switch.node": "core" is no level above a node: no switches from it`},
		{with("SLURM_TOPOLOGY_ADDR_PATTERN", "by.switch.node"), "n2", nil, `SLURM_TOPOLOGY_ADDR_PATTERN "by.switch.node": "by" is no level above a node: no switches from it`},
		{with("SLURM_TOPOLOGY_ADDR_PATTERN", "block.switch.node"), "n2", []topo.Part{{Level: "block", Name: "spine"}, {Level: "switch", Name: "rackA"}}, ""},
		{with("SLURM_TOPOLOGY_ADDR", "spine..n2"), "n2", nil, `SLURM_TOPOLOGY_ADDR "spine..n2" does not go with its pattern "switch.switch.node": no switches from it`},
		{with("SLURM_TOPOLOGY_ADDR", "n2"), "n2", nil, `SLURM_TOPOLOGY_ADDR "n2" does not go with its pattern "switch.switch.node": no switches from it`},
		{"SLURM_TOPOLOGY_ADDR=n2\nSLURM_TOPOLOGY_ADDR_PATTERN=node\n", "n2", nil, ""}, // a cluster without switches
		{with("SLURM_TOPOLOGY_ADDR", "s[0-1].rackA.n2"), "n2", []topo.Part{{Level: "switch2", Name: "s[0-1]"}, {Level: "switch", Name: "rackA"}}, ""},
		{with("SLURM_TOPOLOGY_ADDR", "spine.rackA.n3"), "n2", nil, `no switches from SLURM_TOPOLOGY_ADDR: it is of node "n3", and SLURMD_NODENAME says that this is another one`},
		{with("SLURMD_NODENAME", ""), "n2", known, ""}, // the host name fits
		{with("SLURMD_NODENAME", ""), "n2.cluster.org", known, ""},
		{with("SLURMD_NODENAME", ""), "n3", nil, `no switches from SLURM_TOPOLOGY_ADDR: it is of node "n2", and neither SLURM_NODEID nor SLURMD_NODENAME nor the host name says that this is it`},
		{fits + "SLURM_NODEID=1\nSLURM_JOB_NODELIST=n[1-4]\n", "x", known, ""},
		{fits + "SLURM_NODEID=0\nSLURM_JOB_NODELIST=n[1-4]\n", "x", nil, `no switches from SLURM_TOPOLOGY_ADDR: it is of node "n2", and SLURM_NODEID says that this is another one`},
		{fits + "SLURM_NODEID=9\nSLURM_JOB_NODELIST=n[1-4]\n", "x", known, ""}, // no such node: SLURMD_NODENAME decides
		{fits + "SLURM_NODEID=1\nSLURM_JOB_NODELIST=n[1-\n", "x", known, ""},
		{fits + "SLURM_NODEID=one\nSLURM_JOB_NODELIST=n[1-4]\n", "x", known, ""},
	} {
		p := say(0, c.host, "")
		p.switches(lookup(c.env))
		require.Equal(t, c.above, p.Above, c.env)
		require.Equal(t, c.above != nil, p.slurm != "", c.env)
		if c.note == "" {
			require.Empty(t, p.Notes, c.env)
		} else {
			require.Equal(t, []string{c.note}, p.Notes, c.env)
		}
	}
}

func TestNodesThatSlurmTellsApart(t *testing.T) {
	spine, a, b := topo.Part{Level: "switch2", Name: "s"}, topo.Part{Level: "switch", Name: "A"}, topo.Part{Level: "switch", Name: "B"}
	core := topo.Part{Level: "switch3", Name: "c"}
	for name, c := range map[string]struct {
		places []report
		want   string
	}{
		"ways of unequal length": {
			[]report{say(0, "n1", "n1", spine, a), say(1, "n2", "n2", b), say(2, "n3", "n3", spine, a), say(3, "n4", "n4", b)},
			"switch2: s(0,2) B(1,3)\n",
		},
		"ways of three lengths": {
			[]report{say(0, "n1", "n1", core, spine, a), say(1, "n2", "n2", topo.Part{Level: "switch2", Name: "t"}, b), say(2, "n3", "n3", core, spine, b), say(3, "n4", "n4", topo.Part{Level: "switch2", Name: "t"}, a), say(4, "n5", "n5", topo.Part{Level: "switch", Name: "E"}), say(5, "n6", "n6", topo.Part{Level: "switch2", Name: "t"}, b)},
			"switch3: c(0,2) t(1,3,5) E(4)\nswitch: A(0) B(1,5) B(2) A(3) E(4)\n", // switch2 splits nothing more
		},
		"one that does not know": {
			[]report{say(0, "n1", "n1", a), say(1, "n2", "n2", b), say(2, "n3", "")},
			"left out the levels above the node: SLURM_TOPOLOGY_ADDR does not tell for rank 2; start ranks with srun, or name racks with RMALOCK_RACKS or RMALOCK_TOPO\n",
		},
		"a rank that does not know has the address of its node": {
			[]report{say(0, "n1", "n1", a), say(1, "n2", "n2", b), say(1, "n2", ""), say(2, "n3", "n3", b)},
			"switch: A(0) B(1-3)\n",
		},
		"ranks of a node at odds, one with the host's name": {
			[]report{say(0, "n1", "n1", a), say(1, "n2", "n1", a), say(1, "n2", "n2", b), say(2, "n3", "n3", b)},
			"switch: A(0) B(1-3)\n",
		},
		"ranks of a node at odds": {
			[]report{say(0, "n1", "n1", a), say(1, "x", "n3", a), say(1, "x", "n2", b)},
			"left out the levels above the node: SLURM_TOPOLOGY_ADDR does not tell for ranks 1-2; start ranks with srun, or name racks with RMALOCK_RACKS or RMALOCK_TOPO\n",
		},
		"kinds that have nothing in common": {
			[]report{say(0, "n1", "n1", a), say(1, "n2", "n2", topo.Part{Level: "block", Name: "B"}), say(2, "n3", "n3", a)},
			"left out the levels above the node: Slurm's patterns of rank 1 and others have nothing in common\n",
		},
	} {
		require.Equal(t, c.want, above(built(t, c.places...)), name)
	}
}

func TestNthHost(t *testing.T) {
	for list, want := range map[string]string{
		"n1":                     "n1",
		"n[1-3]":                 "n1 n2 n3",
		"n[08-11,7]":             "n08 n09 n10 n11 n7",
		"gpu,n[1-2],x3":          "gpu n1 n2 x3",
		"r[0-1]n[0-1],login":     "r0n0 r0n1 r1n0 r1n1 login",
		"n[1-2]-ib":              "n1-ib n2-ib",
		"":                       "",
		"n[1-2":                  "",
		"n]1[":                   "",
		"n1,,n2":                 "n1",
		"n[2-1]":                 "",
		"n[x]":                   "",
		"a[],b":                  "",
		"n[0-16777215],never":    "n0 n1 n2 n3 n4 n5",
		"n[1-2],n[3-":            "n1 n2",
		"[1-2]":                  "1 2",
		"n[1],n[0-1][0-1]":       "n1 n00 n01 n10 n11",
		"cn-[0001-0003].cluster": "cn-0001.cluster cn-0002.cluster cn-0003.cluster",
	} {
		var got []string
		for n := range 6 {
			name, ok := nthHost(list, n)
			if ok {
				got = append(got, name)
			}
			require.Equal(t, ok, len(got) == n+1, "%s: none after the end", list)
		}
		require.Equal(t, want, strings.Join(got, " "), list)
	}
}
