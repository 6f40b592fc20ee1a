package verbs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/stretchr/testify/require"
)

// launch makes the environment that of a process of a launcher.
func launch(t *testing.T, env map[string]string) {
	t.Helper()
	for _, name := range []string{
		"RMALOCK_MN", "RMALOCK_TOKEN_FILE", "RMALOCK_DEVICE", "RMALOCK_PROCESS", "RMALOCK_JOB", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
		"PMIX_NAMESPACE", "PMI_RANK", "PMI_SIZE", "PMI_PORT", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID", "SLURM_STEP_ID",
	} {
		t.Setenv(name, env[name])
	}
}

func TestFromEnvironment(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want Config
	}{
		{nil, Config{}},
		{map[string]string{"RMALOCK_MN": "a:1,b:2", "RMALOCK_DEVICE": "rxe0"}, Config{MemoryNodes: []string{"a:1", "b:2"}, Device: "rxe0"}},
		{map[string]string{"RMALOCK_PROCESS": "1/3"}, Config{Process: 1, Processes: 3, Job: "job"}},
		{map[string]string{"RMALOCK_PROCESS": "1/3", "RMALOCK_JOB": "j"}, Config{Process: 1, Processes: 3, Job: "j"}},
		{map[string]string{"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "PMIX_NAMESPACE": "n", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"},
			Config{Process: 2, Processes: 4, Job: "n."}},
		{map[string]string{"SLURM_PROCID": "5", "SLURM_NTASKS": "6", "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "1"}, Config{Process: 5, Processes: 6, Job: "77.1"}},
	} {
		launch(t, c.env)
		got, err := FromEnvironment()
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	launch(t, map[string]string{"RMALOCK_PROCESS": "one"})
	_, err := FromEnvironment()
	require.ErrorIs(t, err, rma.ErrRefused)
}

func TestConfigsThatCannotBe(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  Config
		n    int
		want error
	}{
		"no rank":              {Config{}, 0, rma.ErrRank},
		"too many ranks":       {Config{}, maxRanks + 1, rma.ErrRank},
		"uneven nodes":         {Config{Nodes: 2}, 3, rma.ErrRank},
		"process out of range": {Config{Process: 2, Processes: 2, MemoryNodes: []string{"a:1"}}, 1, rma.ErrRank},
		"nowhere to meet":      {Config{Processes: 2}, 1, rma.ErrRefused},
	} {
		require.ErrorIs(t, c.cfg.check(c.n), c.want, name)
	}
	c := Config{}
	require.NoError(t, c.check(4))
	require.Equal(t, [2]int{1, 1}, [2]int{c.Processes, c.Nodes})
}

func TestReadToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(" secret\n"), 0o600))
	token, err := ReadToken(file)
	require.NoError(t, err)
	require.Equal(t, "secret", string(token))
	require.NoError(t, os.Chmod(file, 0o640))
	_, err = ReadToken(file)
	require.ErrorContains(t, err, "chmod 600")
	require.NoError(t, os.Chmod(file, 0o600))
	require.NoError(t, os.WriteFile(file, []byte("\n"), 0o600))
	_, err = ReadToken(file)
	require.ErrorContains(t, err, "empty")
	_, err = ReadToken(file + "s")
	require.ErrorIs(t, err, os.ErrNotExist)
	token, err = ReadToken("")
	require.NoError(t, err)
	require.Nil(t, token)
}
