package main_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

const guidePage = "../../docs/guide.md"

var guideTable = regexp.MustCompile(`<!-- by make guide -->\n(?:\|.*\n)*`)

// TestGuideTable: the table of docs/guide.md is what "rmalock advise --table" prints. In short mode
// some of its rows are looked at.
func TestGuideTable(t *testing.T) {
	page, err := os.ReadFile(guidePage)
	if err != nil {
		t.Fatal(err)
	}
	there := guideTable.FindAllString(string(page), -1)
	if len(there) != 1 {
		t.Fatalf("%s has %d tables by make guide, want one", guidePage, len(there))
	}
	if testing.Short() && !*update {
		rows := strings.Split(strings.TrimSpace(there[0]), "\n")[3:]
		for i := 1; i < len(rows); i += 6 {
			cells := strings.Split(rows[i], "|")
			flags, lock := strings.Trim(cells[2], " `"), strings.Trim(cells[3], " `")
			args := strings.Fields(flags)
			if !strings.Contains(flags, "--ranks") {
				args = append(args, "--ranks", "64", "--nodes", "4")
			}
			if a := rmalock(t, append([]string{"advise", "--json"}, args...)...).good(t).object(t); a["choice"] != lock {
				t.Errorf("%s has %s for %q, and advise says %v: make guide", guidePage, lock, flags, a["choice"])
			}
		}
		return
	}
	want := "<!-- by make guide -->\n" + rmalock(t, "advise", "--table").good(t).stdout
	if *update {
		if err := os.WriteFile(guidePage, guideTable.ReplaceAllLiteral(page, []byte(want)), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if there[0] != want {
		t.Errorf("the table of %s is not what advise says: make guide\n%s", guidePage, want)
	}
}

// What a job must have leaves out the locks that have it not.
func TestAdviseMust(t *testing.T) {
	names := func(a map[string]any, list string) (out []string) {
		for _, r := range a[list].([]any) {
			out = append(out, r.(map[string]any)["lock"].(string))
		}
		return out
	}
	a := rmalock(t, "advise", "--json", "--ranks", "8", "--nodes", "2", "--deaths").good(t).object(t)
	if got := strings.Join(names(a, "left_out"), " "); got != "alock alock-rw dmcs rmamcs rmarw" {
		t.Errorf("where ranks may die %s are left out", got)
	}
	a = rmalock(t, "advise", "--json", "--ranks", "8", "--nodes", "2", "--backend", "verbs", "--memory-nodes", "1").good(t).object(t)
	for _, name := range names(a, "runs") {
		if name != "dslr" && name != "shiftlock" && name != "declock" {
			t.Errorf("%s is run for a job with memory nodes", name)
		}
	}
	text := rmalock(t, "advise", "--ranks", "1024", "--nodes", "64", "--locks", "4", "--deaths").good(t).stdout
	for _, want := range []string{"job      1024 ranks on 64 nodes; 4 locks", "take     ", "because  ", "256 ranks on 16 nodes with 1 lock.", "rmalock bench --lock all"} {
		if !strings.Contains(text, want) {
			t.Errorf("does not say %q:\n%s", want, text)
		}
	}
}

// The ranks are those of the job that is there.
func TestAdviseEnvironment(t *testing.T) {
	for env, want := range map[string]string{
		"SLURM_NTASKS=8 SLURM_JOB_NUM_NODES=4":                     "8 ranks on 4 nodes",
		"OMPI_COMM_WORLD_SIZE=6 OMPI_COMM_WORLD_LOCAL_SIZE=3":      "6 ranks on 2 nodes",
		"PMI_SIZE=4 MPI_LOCALNRANKS=2 SLURM_NTASKS=1 PMI_RANK=0":   "4 ranks on 2 nodes",
		"OMPI_COMM_WORLD_SIZE=2 SLURM_NNODES=1 SLURM_NTASKS=2 A=1": "2 ranks on 1 node",
	} {
		cmd := exec.Command(binary, "advise", "--deaths")
		cmd.Env = append(os.Environ(), strings.Fields(env)...)
		if text := execute(t, cmd).good(t).stdout; !strings.Contains(text, "job      "+want+";") {
			t.Errorf("%s: want %s, says\n%s", env, want, text)
		}
	}
	cmd := exec.Command(binary, "advise")
	cmd.Env = append(os.Environ(), "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2")
	if o := execute(t, cmd); o.code != 0 || o.stdout != "" {
		t.Errorf("rank 1 says %q, exit %d", o.stdout, o.code)
	}
}

func TestAdviseWrong(t *testing.T) {
	for wrong, want := range map[string]string{
		"--ranks 0":                          "--ranks is 0, want at least 1",
		"--ranks 7 --nodes 2":                "the same number on each",
		"--backend inproc --nodes 2":         "one process",
		"--backend sim":                      `--backend is "sim", want mpi, inproc or verbs`,
		"--machine cray":                     `no machine is called "cray"`,
		"--keys often":                       "keys",
		"--writers 2":                        "--writers is 2, want 0 to 1",
		"--locality 90 --locks 8 --ranks 16": "want --locks of at least 16",
		"--locality 90 --memory-nodes 1 --locks 10000": "no rank is on a memory node",
		"--table --json": "table",
	} {
		rmalock(t, append([]string{"advise"}, strings.Fields(wrong)...)...).bad(t, 2, want)
	}
}
