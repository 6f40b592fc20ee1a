package main_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestStore: the object store and the tree run and are verified under several locks.
func TestStore(t *testing.T) {
	for _, args := range []string{
		"store --memory-nodes 1 --lock dslr:LEASE=20s,fompi-rw,caslock --objects 100 --acquires 100",
		"store --trace twitter53 --lock rmarw --objects 10 --acquires 50 --ranks 2",
		"store --memory-nodes 2 --lock dmcs --size 8,64 --keys uniform,zipf:2 --counted=false --objects 5 --acquires 50",
		"index --memory-nodes 1 --lock vanilla,nh,fompi-rw --objects 300 --acquires 100",
		"store --backend sim --machine cx4 --verbs --memory-nodes 1 --ranks 8 --acquires 30 --objects 50",
		"kv --memory-nodes 1 --lock cider,optimistic,spin,queue,combining,aware --objects 50 --acquires 200",
		"kv --backend sim --machine cx6 --verbs --memory-nodes 1 --ranks 16 --acquires 50 --objects 500 --lock cider,queue --writers 1",
		"kv --index race --memory-nodes 1 --lock cider,optimistic,combining --objects 300 --acquires 100",
		"kv --memory-nodes 2 --index smart --lock cider:local=2,optimistic --objects 300 --acquires 100",
		"kv --memory-nodes 1 --index smart --ycsb e --acquires 100 --objects 50 --ranks 2 --lock combining --size 24",
		"kv --backend sim --machine cx6 --verbs --memory-nodes 1 --ranks 8 --acquires 50 --objects 300 --lock cider,queue --index smart",
		"kv --memory-nodes 1 --ycsb d --acquires 2000 --objects 100 --ranks 2 --lock cider",
		"kv --memory-nodes 1 --ycsb e --acquires 200 --objects 50 --ranks 2 --lock cider:credit=8:threshold=1 --size 8,24",
		"kv --backend sim --machine cx6 --verbs --memory-nodes 1 --ranks 8 --acquires 100 --objects 50 --ycsb f --lock combining",
		"index --backend sim --machine cx4 --verbs --memory-nodes 1 --ranks 8 --acquires 30 --objects 500 --writers 1",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			out := rmalock(t, append(strings.Fields(args), "--json")...).good(t).stdout
			for line := range strings.Lines(out) {
				var r struct {
					Workload string
					Acquires int64
				}
				if err := json.Unmarshal([]byte(line), &r); err != nil || r.Acquires == 0 || !strings.HasPrefix(r.Workload, strings.Fields(args)[0]) {
					t.Errorf("%s: %v", line, err)
				}
			}
		})
	}
}

// TestStoreWrong: wrong flags are refused with what to do.
func TestStoreWrong(t *testing.T) {
	for args, says := range map[string]string{
		"store --trace twitter1":                   "twitter14, twitter53",
		"store --size 4":                           "want 8 to",
		"index --lock mcs":                         "no lock is called",
		"bench --mode index --size 5":              "go with --mode store",
		"bench --mode store,lb":                    "want it alone",
		"bench --mode store --locks 5":             "does not go with --mode store",
		"kv --memory-nodes 1 --ycsb g":             "want a, b",
		"bench --mode lb --of tatp":                "goes with --mode trace",
		"bench --mode trace --writers 0.5":         "want 1, for which all locks are exclusive",
		"bench --mode trace --of tpce":             `no trace is of "tpce"; there are: tatp, tpcc`,
		"kv --memory-nodes 1 --index hash":         "there are: array",
		"kv --index race --ycsb e":                 "index race has no order; want array or smart",
		"kv --memory-nodes 1 --lock cider:x=1":     "credit, threshold",
		"kv --memory-nodes 1 --size 4":             "8 to",
		"bench --mode index --ycsb a":              "go with --mode kv",
		"bench --objects 5":                        "goes with --mode store or index",
		"bench --mode store --objects 0":           "at least 1",
		"bench --mode index --keys zipf:9":         "--keys: theta",
		"store --lock vanilla --memory-nodes 1":    "no lock is called",
		"bench --mode store --accesses 3 --size 9": "--accesses does not go",
	} {
		rmalock(t, strings.Fields(args)...).bad(t, 2, says)
	}
}
