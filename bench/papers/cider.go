package papers

var cider = Paper{Name: "cider", Title: "CIDER", Testbed: "ConnectX-6, 8 servers with 64 clients each, one of them also the memory node; here the model cx6 with verbs."}
