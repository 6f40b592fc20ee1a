// Command pictures draws the locks: "go run ./internal/pictures docs/locks/pictures", or make
// pictures. Each block of pictures.txt becomes a file NAME.svg:
//
//	# NAME TITLE
//	word NAME | FIELD, FIELD, ... | CLASS AND PLACE: WHO WRITES IT
//	lanes LANE | LANE | ...
//	2>1 TEXT     an operation of lane 2 on the memory of lane 1
//	2?1 TEXT     lane 2 reads there
//	2=1 TEXT     lane 2 hands the lock over to lane 1
//	2: TEXT      what becomes of lane 2
//
// Steps follow each other in time, from the top down.
package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed pictures.txt
var source string

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./internal/pictures DIR")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	all, err := parse(source)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, p := range all {
		if err := os.WriteFile(filepath.Join(dir, p.name+".svg"), p.svg(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
