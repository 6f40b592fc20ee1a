// Command site makes a site of the module's pages: "go run ./internal/site DIR", or make site.
//
// A page of Markdown becomes a page of HTML at the same path, README.md the index of its folder. A
// link to any other file of the repository leads to a page with its text. The list of pages at the
// left is docs/README.md. The site names no file of another host.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./internal/site DIR, in the folder of the repository")
		os.Exit(2)
	}
	n, err := Build(".", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
	fmt.Printf("%s/index.html and %d files more\n", os.Args[1], n-1)
}
