package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDoctor: each thing that is missing says what to do.
func TestDoctor(t *testing.T) {
	var found struct {
		Findings []struct {
			Thing, Found, Do string
			OK               bool
		}
	}
	if err := json.Unmarshal([]byte(rmalock(t, "doctor", "--json").good(t).stdout), &found); err != nil {
		t.Fatal(err)
	}
	words := rmalock(t, "doctor").good(t).stdout
	for _, thing := range []string{"RDMA", "locked memory", "huge pages", "MPI", "Slurm"} {
		seen := false
		for _, f := range found.Findings {
			seen = seen || f.Thing == thing
			if f.Thing == thing && (f.Found == "" || !f.OK && f.Do == "") {
				t.Errorf("%+v says too little", f)
			}
		}
		if !seen || !strings.Contains(words, thing) {
			t.Errorf("doctor says nothing of %s", thing)
		}
	}
}

// TestDoctorMPI: doctor names the components of MPI libraries.
func TestDoctorMPI(t *testing.T) {
	dir := t.TempDir()
	for name, says := range map[string]string{
		"mpirun.openmpi": "mpirun 9.9", "mpirun.mpich": "HYDRA 9.9",
		"ompi_info":    `mca:osc:rdma:version:"mca:2.1.0"` + "\n" + `mca:osc:sm:version:"mca:2.1.0"` + "\n" + `mca:osc:sm:version:"api:3.0.0"` + "\n" + `mca:btl:vader:version:"mca:2.1.0"`,
		"mpichversion": "MPICH Version:    \t4.0\nMPICH Device:    \tch4:ucx",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nprintf '%b\\n' '"+says+"'\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	words := rmalock(t, "doctor").good(t).stdout
	for _, want := range []string{"mpirun 9.9; osc: rdma sm; btl: vader", "HYDRA 9.9; device ch4:ucx"} {
		if !strings.Contains(words, want) {
			t.Errorf("doctor does not say %q:\n%s", want, words)
		}
	}
}

// TestVerbsFlags: wrong ways to ask for memory nodes.
func TestVerbsFlags(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"mn", "--token-file", token}, "chmod 600"},
		{[]string{"dht", "--mn", "a:1"}, "--backend verbs"},
		{[]string{"dht", "--backend", "verbs", "--memory-nodes", "1"}, "--mn"},
		{[]string{"dht", "--backend", "verbs", "--token-file", token}, "chmod 600"},
	} {
		if o := rmalock(t, c.args...); o.code != 2 || !strings.Contains(o.stderr, c.want) {
			t.Errorf("rmalock %v: exit %d, want 2 and %q:\n%s", c.args, o.code, c.want, o.stderr)
		}
	}
}
