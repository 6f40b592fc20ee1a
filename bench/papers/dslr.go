package papers

var dslr = Paper{
	Name:  "dslr",
	Title: "DSLR",
	Testbed: "ConnectX-3, 32 nodes, of which 16 have locks and 16 have 4 workers each; " +
		"here the model cx3 with verbs, memory nodes in place of the lock servers.",
	Experiments: []Experiment{
		{
			ID: "DS-cost", Figure: "4.4", What: "Operations of an acquire and a release of a free lock",
			Flags: "--backend sim --machine cx3 --verbs --memory-nodes 1 --ranks 1 --lock dslr --mode ecsb", Quick: "--acquires 100",
			Claims: []Claim{
				{What: "operations on the memory node per acquire and release", Paper: Exactly(2), Class: E, Of: func(r Runs) float64 { return r.Of(OnMemory) }},
			},
		},
	},
}
