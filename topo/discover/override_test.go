package discover

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/topo"
)

// with is discover for ranks whose rank 0 has an environment, and the others none.
func with(t *testing.T, env string) func(rma.Comm) (*topo.Topology, error) {
	root := t.TempDir()
	return func(c rma.Comm) (*topo.Topology, error) {
		o := Options{Root: root, Host: fmt.Sprintf("r%dn%d", c.Node().Index/2, c.Node().Index), Env: lookup("")}
		if c.Rank() == 0 {
			o.Env = lookup(env)
		}
		return discover(c, o)
	}
}

// refused is the error of every rank of a job, that of rank 0 last.
func refused(t *testing.T, env string) error {
	t.Helper()
	var errs [6]error
	err := inproc.RunNodes(3, 2, func(c rma.Comm) error {
		_, errs[c.Rank()] = with(t, env)(c)
		return nil
	})
	require.NoError(t, err)
	for _, err := range errs {
		require.Error(t, err, "all ranks are told")
	}
	require.ErrorIs(t, errs[0], topo.ErrTopology)
	return errs[0]
}

func TestDiscoverFromFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "machine")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o644)) }

	write("rack:2 node:3")
	got := gathered(t, 3, 2, with(t, EnvFile+"="+file))
	for _, tree := range got {
		require.Same(t, got[0], tree)
	}
	require.Equal(t, "rack:2 node:3", got[0].String())
	require.Equal(t, []string{"read from " + file + ", which RMALOCK_TOPO names"}, got[0].Notes())

	// The file is read again in the next job.
	write("node:3 rank:2 by:node")
	got = gathered(t, 3, 2, with(t, EnvFile+"="+file))
	require.Equal(t, "node:3 rank:2 by:node", got[0].String())
	require.Equal(t, "ranks 0 and 3 share node 0, but no memory: locks that span them use the network there", got[0].Notes()[1])

	// It may have more places than the job has ranks.
	write("rack:2 node:2 core:2")
	got = gathered(t, 3, 2, with(t, EnvFile+"="+file))
	require.Equal(t, 6, got[5].Size())
	require.Equal(t, 3, got[5].Elements(2))
	require.Equal(t, []string{"read from " + file + ", which RMALOCK_TOPO names", "6 of 8 places are used: there are no more ranks"}, got[0].Notes())

	write("node:4")
	require.EqualError(t, refused(t, EnvFile+"="+file), "discover: RMALOCK_TOPO: file "+file+": topo: topology has 4 places, the job has 6 ranks: start at most 4 ranks, or describe 2 times as many per innermost element (rank:2 if none was written): bad description of the machine")
	write("node:0")
	require.EqualError(t, refused(t, EnvFile+"="+file), "discover: RMALOCK_TOPO: file "+file+`: topo: level 1 "node:0": count must be a positive integer below 16777216: bad description of the machine`)
	require.NoError(t, os.Remove(file))
	require.EqualError(t, refused(t, EnvFile+"="+file), "discover: RMALOCK_TOPO: open "+file+": no such file or directory: bad description of the machine")
}

// TestFileThatDiffers has a rank whose file of that name holds other text.
func TestFileThatDiffers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "machine")
	require.NoError(t, os.WriteFile(file, []byte("node:2"), 0o644))
	var errs [2]error
	require.NoError(t, inproc.Run(2, func(c rma.Comm) error {
		_, errs[c.Rank()] = with(t, EnvFile+"="+file)(otherSum{c})
		return nil
	}))
	for _, err := range errs {
		require.EqualError(t, err, "discover: RMALOCK_TOPO: file "+file+" is not the same for ranks 0 and 1; put it where all nodes find one: bad description of the machine")
	}
}

// otherSum is a Comm whose rank 1 passes another sum of the file: the only four words.
type otherSum struct{ rma.Comm }

func (c otherSum) Allgather(words []int64) ([]int64, error) {
	if len(words) == 4 && c.Rank() == 1 {
		words = append([]int64{words[0] + 1}, words[1:]...)
	}
	return c.Comm.Allgather(words)
}

func TestDiscoverRacks(t *testing.T) {
	got := gathered(t, 4, 2, with(t, EnvRacks+`=^(?P<rack>r\d+)n`))
	require.Equal(t, []topo.Level{{Name: "machine", Elements: 1}, {Name: "rack", Elements: 2}, {Name: "node", Elements: 4}}, got[0].Levels())
	require.Equal(t, []int{0, 1, 2, 3}, got[7].Ranks(1, 0))
	require.Equal(t, "r1", got[0].Label(1, 1))
	require.Equal(t, "r1n3", got[0].Label(2, 3))

	// In place of what Slurm says.
	env := "SLURM_TOPOLOGY_ADDR=s.n\nSLURM_TOPOLOGY_ADDR_PATTERN=switch.node\nSLURMD_NODENAME=n\n"
	got = gathered(t, 4, 2, with(t, env+EnvRacks+`=^(?P<rack>r\d+)n`))
	require.Equal(t, []topo.Level{{Name: "machine", Elements: 1}, {Name: "rack", Elements: 2}, {Name: "node", Elements: 4}}, got[0].Levels())

	// Hosts that do not match leave the levels out.
	got = gathered(t, 4, 2, with(t, EnvRacks+`=^(?P<rack>r0)n`))
	require.Len(t, got[0].Levels(), 2)
	require.Contains(t, got[0].Notes(), `rank 0: RMALOCK_RACKS finds no rack in the host name "r1n2" of rank 4: no levels from it`)
	got = gathered(t, 4, 2, with(t, EnvRacks+`=^(?P<rack>r0)?`))
	require.Contains(t, got[0].Notes(), `rank 0: RMALOCK_RACKS finds no rack in the host name "r1n2" of rank 4: no levels from it`)

	for pattern, want := range map[string]string{
		`(`:                    "discover: RMALOCK_RACKS: error parsing regexp: missing closing ): `(`",
		`r\d+`:                 `discover: RMALOCK_RACKS: "r\\d+" has 0 named groups, want at least one, such as (?P<rack>r[0-9]+), and fewer than 8`,
		`(?P<node>r\d+)`:       `discover: RMALOCK_RACKS: group "node" cannot name a level above the node; write for example (?P<rack>r[0-9]+)`,
		`(?P<Rack>r\d+)`:       `discover: RMALOCK_RACKS: group "Rack" cannot name a level above the node; write for example (?P<rack>r[0-9]+)`,
		`(?P<rank>r\d+)`:       `discover: RMALOCK_RACKS: group "rank" cannot name a level above the node; write for example (?P<rack>r[0-9]+)`,
		`(?P<row>.)(?P<numa>)`: `discover: RMALOCK_RACKS: group "numa" cannot name a level above the node; write for example (?P<rack>r[0-9]+)`,
	} {
		require.EqualError(t, refused(t, EnvRacks+"="+pattern), want+": bad description of the machine")
	}
}

// TestRacksInPlaceOfSlurm has the case that RMALOCK_RACKS is for: the batch node's
// address everywhere.
func TestRacksInPlaceOfSlurm(t *testing.T) {
	x, err := parseRacks(`^(?P<rack>r\d)`)
	require.NoError(t, err)
	var places []report
	for i, host := range []string{"r1a", "r1b", "r2a", "r2b"} {
		places = append(places, say(i, host, "r1a", topo.Part{Level: "switch", Name: "s"}))
	}
	require.Empty(t, x.place(places))
	require.Equal(t, "rack: r1(0-1) r2(2-3)\n", above(built(t, places...)))
}

func TestTwoLevelsOfRacks(t *testing.T) {
	x, err := parseRacks(`^(?P<row>[a-z]+)(?P<rack>\d+)-(\d+)`)
	require.NoError(t, err)
	var places []report
	for i, host := range []string{"a1-1", "b1-1", "a2-1", "a1-2", "b2-1", "b1-2"} {
		places = append(places, say(i, host, ""))
	}
	require.Empty(t, x.place(places))
	tree := built(t, places...)
	require.Equal(t, "row: a(0,2-3) b(1,4-5)\nrack: 1(0,3) 1(1,5) 2(2) 2(4)\n", above(tree), "rack 1 of row a is not that of row b")
}
