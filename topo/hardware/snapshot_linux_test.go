package hardware

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	ghwdata "github.com/jaypipes/ghw/testdata"
	"github.com/stretchr/testify/require"

	"github.com/rmalock/rmalock/rmarw"
	"github.com/rmalock/rmalock/topo"
	"github.com/rmalock/rmalock/topo/discover"
)

// TestSnapshots replays the machines that ghw recorded for its own tests.
func TestSnapshots(t *testing.T) {
	dir, err := ghwdata.SnapshotsDirectory()
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(dir, "*.tar.gz"))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skipf("no snapshots of ghw at %s", dir)
	}
	want := map[string]string{ // of one rank on each processor, with the number of processors
		"linux-amd64-415ee03b8c4d1c4f07ae2e9d8b3d3d6d": "16: node:1 core:12", // cores with one and with two threads
		"linux-amd64-61797caf7c0b6bca1725ad7975ed4773": "12: node:1 cache:2 core:6",
		"linux-amd64-8581cf3a529e5d8b97ea876eade2f60d": "24: node:1 numa:2 core:12",
		"linux-amd64-accel-nvidia":                     "8: node:1 core:8",
		"linux-amd64-accel":                            "2: node:1 core:2", // a last-level cache each
		"linux-amd64-offlineCPUs":                      "2: node:1 core:2", // two of four processors
		"linux-arm64-c288e0776090cd558ef793b2a4e61939": "1: node:1",
		"linux-s390x-snapshot":                         "8: node:1 core:8",
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".tar.gz")
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			unpack(t, f, root)
			m := readMachine(root)
			var places []topo.Place
			for c := range m.CPUs().All() {
				p, err := discover.Local(discover.Options{Root: root, CPUs: topo.MakeSet(c)})
				require.NoError(t, err)
				places = append(places, p)
			}
			tree := build(t, places...)
			got := fmt.Sprintf("%d:", tree.Size())
			for _, l := range tree.Levels()[1:] {
				got += fmt.Sprintf(" %s:%d", l.Name, l.Elements)
			}
			require.Equal(t, want[name], got, "notes: %q", tree.Notes())
			levels := tree.Levels()
			inner := levels[len(levels)-1]
			counters, err := rmarw.NewCounters(tree, rmarw.TDC{})
			require.NoError(t, err)
			require.Equal(t, "1 per "+inner.Name, counters.TDC().String())
			require.Equal(t, inner.Elements, counters.Len(), "as many as cores")
		})
	}
}

// needed are the files of a snapshot that tell of NUMA nodes, caches and cores.
var needed = regexp.MustCompile(`devices/system/(node/node\d+|cpu)/(cpulist|distance|cpu\d+|cpu\d+/(online|topology/core_id|cache/index\d/(level|type|id|size|shared_cpu_map)))$`)

func unpack(t *testing.T, file, root string) {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		require.NoError(t, err)
		if !needed.MatchString(h.Name) {
			continue
		}
		path := filepath.Join(root, h.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		switch h.Typeflag {
		case tar.TypeSymlink:
			require.NoError(t, os.Symlink(h.Linkname, path))
		case tar.TypeReg:
			text, err := io.ReadAll(r)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, text, 0o644))
		}
	}
}
