//go:build cgo

package main_test

import (
	"strings"
	"testing"
)

// TestMPIStructures: the object store and the tree on a memory node of an MPI job, and on its
// ranks.
func TestMPIStructures(t *testing.T) {
	for _, args := range []string{
		"store --memory-nodes 1 --lock dslr:LEASE=20s --objects 50 --acquires 50 --json",
		"index --memory-nodes 1 --lock vanilla --objects 500 --acquires 50 --json",
		"kv --index race --memory-nodes 1 --objects 500 --acquires 50 --json",
		"kv --index smart --memory-nodes 1 --objects 500 --acquires 50 --json",
		"store --lock rmarw --objects 50 --acquires 50 --json",
	} {
		if m := mpirun(t, "3", strings.Fields(args)...).object(t); m["acquires_per_rank"] == nil {
			t.Errorf("rmalock %s: %v", args, m)
		}
	}
}

// TestMPITPCC: the locks of TPC-C's transactions in MPI jobs, with their counters verified; on ranks
// and on a memory node.
func TestMPITPCC(t *testing.T) {
	for _, ranks := range []string{"2", "4"} {
		for _, more := range []string{"", " --memory-nodes 1"} {
			args := "bench --mode tpcc --lock dslr:LEASE=200ms --acquires 10 --json" + more
			if m := mpirun(t, ranks, strings.Fields(args)...).good(t).object(t); m["acquires"].(float64) < 10 {
				t.Errorf("%s ranks, rmalock %s: %v", ranks, args, m)
			}
		}
	}
}
