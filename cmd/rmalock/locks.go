package main

// The locks that the program knows: importing one registers it.
import (
	_ "github.com/rmalock/rmalock/baseline"
	_ "github.com/rmalock/rmalock/dmcs"
	_ "github.com/rmalock/rmalock/rmamcs"
	_ "github.com/rmalock/rmalock/rmarw"
)

// defaultLock is what commands use without --lock.
const defaultLock = "dmcs"
