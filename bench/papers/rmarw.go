package papers

import (
	"fmt"
	"math"

	"github.com/rmalock/rmalock/bench"
)

var rmarw = Paper{
	Name:  "rma-rw",
	Title: "RMA-RW",
	Testbed: "Cray XC30, 16 processes a node, up to 1,024 of them; here the model aries. " +
		"With --backend sim and --figure rmalock bench draws each figure whole.",
	Experiments: []Experiment{
		{
			ID: "RF3-lb", Figure: "3a", What: "LB: the mean latency of all ranks, exclusive locks",
			Flags: "--backend sim --figure 3 --mode lb --band=false", Quick: "--ranks 1024", Full: "--ranks 16,64,256,1024",
			Claims: []Claim{
				{What: "foMPI-Spin over RMA-MCS, P = 1024", Paper: Exactly(10), Unit: "x", Class: K, Of: at(1024, Over(Mean, "fompi-spin", "rmamcs"))},
				{What: "D-MCS over RMA-MCS, P = 1024", Paper: Exactly(4), Unit: "x", Class: R, Of: at(1024, Over(Mean, "dmcs", "rmamcs"))},
			},
		},
		{
			ID: "RF3-ecsb", Figure: "3b", What: "ECSB: throughput of exclusive locks",
			Flags: "--backend sim --figure 3 --mode ecsb --band=false", Quick: "--ranks 8,16,64,256", Full: "--ranks 8,16,32,64,128,256,512,1024",
			Claims: []Claim{
				{What: "RMA-MCS peaks at P of 8 to 16, one node", Class: S, Holds: func(r Runs) (bool, string) {
					r = r.Lock("rmamcs")
					p := r.best().Ranks
					return p <= 16, fmt.Sprintf("P = %d", p)
				}},
			},
		},
		{
			ID: "RF6", Figure: "6", What: "The distributed hashtable without inserts, RMA-RW and foMPI-RW",
			Flags: "--backend sim --figure 6 --band=false --lock rmarw,fompi-rw --writers 0", Quick: "--ranks 64", Full: "--ranks 16,64,256",
			Claims: []Claim{
				{What: "total time, foMPI-RW over RMA-RW, P = 64: equal, or RMA-RW faster", Paper: Exactly(1), Unit: "x", Class: O,
					Of: at(64, Over(func(r *bench.Result) float64 { return r.Seconds }, "fompi-rw", "rmarw"))},
			},
		},
		{
			ID: "RF5-ecsb", Figure: "5b", What: "ECSB: throughput of readers and writers",
			Flags: "--backend sim --figure 5 --mode ecsb --band=false", Quick: "--ranks 64", Full: "--ranks 16,64,256,1024",
			Claims: []Claim{
				{What: "RMA-RW over foMPI-RW, P = 64, least of F_W 0.2, 2, 5 %", Paper: Exactly(6), Unit: "x", Class: O,
					Of: at(64, func(r Runs) float64 {
						least := math.Inf(1)
						for _, writers := range []float64{0.002, 0.02, 0.05} {
							least = min(least, Over(Throughput, "rmarw", "fompi-rw")(r.Writers(writers)))
						}
						return least
					})},
			},
		},
	},
}

// at is a figure of the runs with a number of ranks.
func at(ranks int, of func(Runs) float64) func(Runs) float64 {
	return func(r Runs) float64 { return of(r.Ranks(ranks)) }
}
