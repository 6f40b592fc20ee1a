package topo

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadForms(t *testing.T) {
	for text, want := range map[string]string{
		"node:2 core:4": "node:2 core:4",
		"  # a machine\nnode:2 # nodes\n\n core:4 by:node\n": "node:2 core:4 by:node",
		"0-3 node=a\n4-7 node=b":                             "node:2 rank:4",
		"# by hand\n\n0,2 node=a # first\n1,3 node=b\n":      "node:2 rank:2 by:node",
		"0-7":                                  "rank:8", // one machine and no levels
		"0-3\n4-7":                             "rank:8",
		"4-7 node=b\n0-3 node=a":               "node:2 rank:4",        // lines in any order
		"0-1 rack=A node=x\n2-3 rack=B node=x": "rack:2 node:1 rank:2", // a part's name counts inside the one around it
	} {
		topo, err := Read([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, want, topo.String(), text)
		checkInvariants(t, topo)
	}
	topo, err := Read([]byte("3-4 rack=B node=n1\n0,2 rack=A node=n1\n1 rack=A node=n2\n"))
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 0, 2, 2}, elements(t, topo, "node"))
	require.Equal(t, []string{"n1", "n2", "n1"}, []string{topo.Label(2, 0), topo.Label(2, 1), topo.Label(2, 2)})
	require.Equal(t, "B", topo.Label(1, 1))
}

// TestReadBack is what MarshalJSON writes, read again.
func TestReadBack(t *testing.T) {
	all := shapes(t)
	all["merged"] = build(t, at(0, "0", "0"), at(1, "0-1", "0-1"), at(0, "1", "1"), at(1, "", ""))
	for name, topo := range all {
		for _, indent := range []string{"", " "} {
			b, err := json.MarshalIndent(topo, "", indent)
			require.NoError(t, err)
			again, err := Read(b)
			require.NoError(t, err, name)
			require.Equal(t, topo.levels, again.levels, name)
			require.Equal(t, topo.order, again.order, name)
			require.Equal(t, topo.cpus, again.cpus, name)
			require.Equal(t, topo.Notes(), again.Notes(), name)
			require.Equal(t, topo.String(), again.String())
			twice, err := json.MarshalIndent(again, "", indent)
			require.NoError(t, err)
			require.Equal(t, string(b), string(twice), name)
		}
	}
}

func TestReadEdited(t *testing.T) {
	// What a person may leave out, and a rank moved from one node to another.
	topo, err := Read([]byte(`{"levels": [
		{"name": "machine", "elements": [{"ranks": "0-5"}]},
		{"name": "rack", "elements": [{"label": "B", "ranks": "3-5"}, {"label": "A", "ranks": "0-2"}]},
		{"name": "node", "elements": [{"ranks": "0,1"}, {"ranks": "2"}, {"label": "n9", "ranks": "5, 3-4", "parent": 0}]}
	]}`))
	require.NoError(t, err)
	checkInvariants(t, topo)
	require.Equal(t, []int{0, 0, 0, 1, 1, 1}, elements(t, topo, "rack"), "numbered by lowest rank, whatever the order of the list")
	require.Equal(t, []string{"A", "B"}, []string{topo.Label(1, 0), topo.Label(1, 1)})
	require.Equal(t, []string{"0", "1", "n9"}, []string{topo.Label(2, 0), topo.Label(2, 1), topo.Label(2, 2)})
	require.Equal(t, []int{0, 0, 1, 2, 2, 2}, elements(t, topo, "node"))
}

func TestReadErrors(t *testing.T) {
	levels := func(rest string) string {
		return `{"levels": [{"name": "machine", "elements": [{"ranks": "0-3"}]}` + rest + `]}`
	}
	for text, want := range map[string]string{
		"":                    `the description is empty; write for example "node:2 core:4", or "rank:8" for no levels`,
		"# nothing\n":         `the description is empty; write for example "node:2 core:4", or "rank:8" for no levels`,
		"0 node=\xa5":         `this is no text in UTF-8`,
		"node:2\ncore:0":      `level 2 "core:0": count must be a positive integer below 16777216`,
		"0-x node=a":          `line 1: list "0-x": "0-x" is neither a number nor a range such as 0-3 of numbers up to 16777215`,
		"0 node=a\n\n1 node":  `line 3: "node": want a level and a name, such as node=n1`,
		"0 node=a\n1 node=":   `line 2: "node=": want a level and a name, such as node=n1`,
		"0 node=a\n1 rack=b":  `line 2: its levels are ["rack"], those of the first line ["node"]; all lines list the same, from the outside in`,
		"0 node=a\n0 node=b":  `line 2: rank 0 has come before`,
		"0 node=a\n2 node=b":  `rank 1 is missing: there are 2 ranks, and they are to be numbered from 0 to 1`,
		"0 node=a rack=b":     `a rack cannot be inside a node; list levels from the outermost to the innermost`,
		"0 node=a node=b":     `level "node" occurs twice`,
		"0 machine=a":         `level "machine" occurs twice`,
		"0 Node=a":            `level "Node": a name is a lower-case letter and then letters, digits, '-' or '_', and not rank, pu or by`,
		"0 by=a":              `level "by": a name is a lower-case letter and then letters, digits, '-' or '_', and not rank, pu or by`,
		"{":                   `line 1: unexpected EOF`,
		"{\n\"ranks\": 3,\n]": `line 3: invalid character ']' looking for beginning of object key string`,
		`{"levels": 3}`:       `line 1: field "levels" cannot be a number`,
		`{"level": []}`:       `line 1: unknown field "level"`,
		`{"levels": []}`:      `levels: the first is to be the machine, with one element`,
		levels("") + "{}":     `there is more after the closing brace`,
		`{"levels": [{"name": "node", "elements": [{"ranks": "0"}]}]}`:                                                                                                  `levels: the first is to be the machine, with one element`,
		`{"levels": [{"name": "machine", "elements": [{}]}]}`:                                                                                                           `level machine: ranks: there are none`,
		`{"levels": [{"name": "machine", "elements": [{"ranks": "1-2"}]}]}`:                                                                                             `rank 0 is missing: there are 2 ranks, and they are to be numbered from 0 to 1`,
		`{"ranks": 2, "levels": [{"name": "machine", "elements": [{"ranks": "0"}]}]}`:                                                                                   `ranks is 2, but the machine has 1 of them`,
		levels(`, {"name": "node", "elements": [{"ranks": "0-1"}]}`):                                                                                                    `level node: rank 2 is in none of its elements`,
		levels(`, {"name": "node", "elements": [{"ranks": "0-3"}, {}]}`):                                                                                                `level node, element 1 of the list: ranks: there are none`,
		levels(`, {"name": "node", "elements": [{"ranks": "0-3"}, {"ranks": "3"}]}`):                                                                                    `level node, element 1 of the list: ranks: 3 is in another element too`,
		levels(`, {"name": "node", "elements": [{"ranks": "0-4"}]}`):                                                                                                    `level node, element 0 of the list: ranks: 4 is no rank of the machine`,
		levels(`, {"name": "node", "elements": [{"ranks": "a"}]}`):                                                                                                      `level node, element 0 of the list: ranks: list "a": "a" is neither a number nor a range such as 0-3 of numbers up to 16777215`,
		levels(`, {"name": "node", "count": 2, "elements": [{"ranks": "0-3"}]}`):                                                                                        `level node: count is 2, but it lists 1 elements`,
		levels(`, {"name": "node", "elements": [{"ranks": "0-1"}, {"ranks": "2-3"}]}, {"name": "numa", "elements": [{"ranks": "0-2"}, {"ranks": "3"}]}`):                `level numa, element 0 of the list: ranks: 0-2 are in different elements of level node`,
		levels(`, {"name": "node", "elements": [{"ranks": "0-1"}, {"ranks": "2-3"}]}, {"name": "numa", "elements": [{"ranks": "0-1", "parent": 1}, {"ranks": "2-3"}]}`): `level numa, element 0 of the list: parent is 1, but its ranks are in element 0 of level node; change ranks to move it, or leave parent out`,
		levels(`, {"name": "node", "elements": [{"ranks": "0-3", "element": 1}]}`):                                                                                      `level node, element 0 of the list: element is 1; the list is in the order of these numbers, from 0 on, or leave all out`,
		levels(`, {"name": "rank", "elements": [{"ranks": "0-3"}]}`):                                                                                                    `level "rank": a name is a lower-case letter and then letters, digits, '-' or '_', and not rank, pu or by`,
		`{"cpus": [{"cpus": "x", "ranks": "0"}], ` + levels("")[1:]:                                                                                                     `cpus, item 0: list "x": "x" is neither a number nor a range such as 0-3 of numbers up to 16777215`,
		`{"cpus": [{"cpus": "1", "ranks": "9"}], ` + levels("")[1:]:                                                                                                     `cpus, item 0: ranks: 9 is no rank of the machine`,
	} {
		topo, err := Read([]byte(text))
		require.Nil(t, topo, text)
		require.EqualError(t, err, "topo: "+want+": bad description of the machine", text)
		require.ErrorIs(t, err, ErrTopology)
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good"), filepath.Join(dir, "bad")
	require.NoError(t, os.WriteFile(good, []byte("node:2 core:2\n"), 0o644))
	require.NoError(t, os.WriteFile(bad, []byte("0 node=a\n0 node=b\n"), 0o644))
	topo, err := ReadFile(good)
	require.NoError(t, err)
	require.Equal(t, 4, topo.Size())
	_, err = ReadFile(bad)
	require.EqualError(t, err, "topo: file "+bad+": line 2: rank 0 has come before: bad description of the machine")
	_, err = ReadFile(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, ErrTopology)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{
		"node:2 core:2", "0-3 rack=A node=a\n4 rack=A node=b", "0,2 node=a\n1 node=b", "0\n1",
		`{"levels": [{"name": "machine", "elements": [{"ranks": "0-3"}]}, {"name": "node", "elements": [{"ranks": "0,2"}, {"ranks": "1,3", "merged": true}]}], "cpus": [{"cpus": "1", "ranks": "2"}]}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 400 || strings.Contains(text, "00") { // huge ranges are slow, not wrong
			return
		}
		topo, err := Read([]byte(text))
		if err != nil {
			require.ErrorIs(t, err, ErrTopology)
			return
		}
		if topo.Size() > 2000 {
			return
		}
		checkInvariants(t, topo)
		b, err := json.Marshal(topo)
		require.NoError(t, err)
		again, err := Read(b)
		require.NoError(t, err)
		require.Equal(t, topo.levels, again.levels)
	})
}
