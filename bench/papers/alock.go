package papers

var alock = Paper{Name: "alock", Title: "ALock", Testbed: "ConnectX-3, up to 20 nodes with 12 threads each, every thread connected to every thread; here the model cx3 with verbs."}
