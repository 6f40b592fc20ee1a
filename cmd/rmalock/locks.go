package main

// The locks that the program knows: importing one registers it.
import (
	_ "github.com/rmalock/rmalock/alock"
	_ "github.com/rmalock/rmalock/baseline"
	_ "github.com/rmalock/rmalock/declock"
	_ "github.com/rmalock/rmalock/dmcs"
	_ "github.com/rmalock/rmalock/dslr"
	_ "github.com/rmalock/rmalock/rmamcs"
	_ "github.com/rmalock/rmalock/rmarw"
	_ "github.com/rmalock/rmalock/shiftlock"
	_ "github.com/rmalock/rmalock/topo/hardware" // levels inside the nodes
)

// What commands use without --lock.
const (
	defaultLock = "dmcs"
	dhtLock     = "rmarw" // as in section 5.3 of rma-rw
)
