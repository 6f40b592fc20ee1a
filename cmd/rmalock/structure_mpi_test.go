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
