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
	crowd := make([]int, 1<<20)
	t.Setenv("GOMAXPROCS", "3")
	shareCores(rma.Node{Count: 1, Ranks: crowd}, false)
	if n := runtime.GOMAXPROCS(0); n != before {
		t.Errorf("GOMAXPROCS is %d, want %d: the user has set it", n, before)
	}
	t.Setenv("GOMAXPROCS", "")
	for _, want := range []int{1, 2} {
		shareCores(rma.Node{Count: want, Ranks: crowd}, false)
		if n := runtime.GOMAXPROCS(0); n != want {
			t.Errorf("GOMAXPROCS is %d with more ranks than cores on %d nodes, want %d", n, want, want)
		}
		shareCores(rma.Node{Count: want, Ranks: crowd}, true)
		if n := runtime.GOMAXPROCS(0); n != 2 {
			t.Errorf("GOMAXPROCS is %d with memory nodes and more ranks than cores on %d nodes, want 2", n, want)
		}
	}
	shareCores(rma.Node{Count: 1, Ranks: crowd[:1]}, false)
	if n := runtime.GOMAXPROCS(0); n != runtime.NumCPU() {
		t.Errorf("GOMAXPROCS is %d for the only rank of a node, want %d", n, runtime.NumCPU())
	}
}

func TestIsReporter(t *testing.T) {
	for _, v := range []string{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"} {
		t.Setenv(v, "")
	}
	if !isReporter() {
		t.Error("no reporter without a launcher")
	}
	t.Setenv("SLURM_PROCID", "0") // of the daemon, the same for all
	t.Setenv("OMPI_COMM_WORLD_RANK", "1")
	if isReporter() {
		t.Error("rank 1 is the reporter")
	}
	t.Setenv("OMPI_COMM_WORLD_RANK", "0")
	if !isReporter() {
		t.Error("rank 0 is not the reporter")
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
