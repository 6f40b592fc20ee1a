package verbs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/stretchr/testify/require"
)

func TestFindMemoryNodes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "hosts")
	require.NoError(t, os.WriteFile(file, []byte("# memory\na slots=4\n\nb:9 # two\n  c\n"), 0o600))
	require.NoError(t, os.WriteFile(file+"0", []byte("# none\n"), 0o600))
	scontrol := "#!/bin/sh\n[ \"$*\" = 'show hostnames n[1-3]' ] && printf 'n1\\nn2\\nn3\\n'\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "scontrol"), []byte(scontrol), 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("SLURM_JOB_NODELIST", "n[1-3]")
	for text, want := range map[string][]string{
		"":           nil,
		"a:1,b":      {"a:1", "b:7471"},
		"::1,[::1]":  {"[::1]:7471", "[::1]:7471"},
		"[::1]:5":    {"[::1]:5"},
		"@" + file:   {"a:7471", "b:9", "c:7471"},
		"2@" + file:  {"a:7471", "b:9"},
		"2":          {"n1:7471", "n2:7471"},
		"1:80":       {"n1:80"},
		"node-3:700": {"node-3:700"},
	} {
		got, err := FindMemoryNodes(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"0", "4", "4@" + file, "@" + file + "0", "a,,b", "0@" + file} {
		_, err := FindMemoryNodes(text)
		require.ErrorIs(t, err, rma.ErrRefused, text)
	}
	_, err := FindMemoryNodes("@" + dir + "/nothing")
	require.ErrorIs(t, err, os.ErrNotExist)
	t.Setenv("SLURM_JOB_NODELIST", "")
	_, err = FindMemoryNodes("2")
	require.ErrorContains(t, err, "@FILE")
}
