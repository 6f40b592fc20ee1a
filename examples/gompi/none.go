//go:build !cgo

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "gompi: built without cgo; gompi and MPI need it: CGO_ENABLED=1 go build ./examples/gompi")
	os.Exit(1)
}
