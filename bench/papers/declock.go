package papers

var declock = Paper{Name: "declock", Title: "DecLock", Testbed: "ConnectX-4, 8 compute nodes with 16 cores of 2 coroutines each, 1 memory node; here the model cx4 with verbs."}
