package main

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

func TestShareCores(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	t.Setenv("GOMAXPROCS", "3")
	shareCores(1 << 20)
	if n := runtime.GOMAXPROCS(0); n != before {
		t.Errorf("GOMAXPROCS is %d, want %d: the user has set it", n, before)
	}
	t.Setenv("GOMAXPROCS", "")
	shareCores(1 << 20)
	if n := runtime.GOMAXPROCS(0); n != 1 {
		t.Errorf("GOMAXPROCS is %d with more ranks than cores, want 1", n)
	}
	shareCores(1)
	if n := runtime.GOMAXPROCS(0); n != runtime.NumCPU() {
		t.Errorf("GOMAXPROCS is %d for the only rank of a node, want %d", n, runtime.NumCPU())
	}
}

func TestSpeaks(t *testing.T) {
	for _, v := range []string{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"} {
		t.Setenv(v, "")
	}
	if !speaks() {
		t.Error("silent without a launcher")
	}
	t.Setenv("SLURM_PROCID", "0") // of the daemon, the same for all
	t.Setenv("OMPI_COMM_WORLD_RANK", "1")
	if speaks() {
		t.Error("rank 1 speaks")
	}
	t.Setenv("OMPI_COMM_WORLD_RANK", "0")
	if !speaks() {
		t.Error("rank 0 is silent")
	}
}

func TestMessage(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("plain"), "plain"},
		{fmt.Errorf("rank 2: file.txt:3: %w", rma.ErrPeer), "rank 2: file.txt:3"},
		{fmt.Errorf("rank 1: no lock x: %s: %w", lock.ErrConfig, rma.ErrPeer), "rank 1: no lock x: " + lock.ErrConfig.Error()},
		{fmt.Errorf("no lock x: %w", lock.ErrConfig), "no lock x"},
		{rma.ErrPeer, rma.ErrPeer.Error()},
	} {
		if got := message(c.err); got != c.want {
			t.Errorf("message of %q is %q, want %q", c.err, got, c.want)
		}
	}
}
