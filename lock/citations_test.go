package lock_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// listings are the lines of Listings 2 to 10 of rma-rw that have code.
var listings = map[int][]int{
	2:  {1, 3, 4, 6, 7, 8, 10, 11, 12, 13, 14},
	3:  {1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 14},
	4:  {1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 15, 18, 22, 23},
	5:  {1, 3, 4, 5, 8, 12, 13, 15, 16, 17, 18, 19, 20, 23},
	6:  {2, 4, 6, 9, 11, 12, 14, 18, 19, 22, 23, 27, 28},
	7:  {1, 2, 3, 5, 6, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 22},
	8:  {1, 2, 4, 5, 6, 7, 9, 10, 11, 12, 15, 16, 17, 18, 19, 20, 23},
	9:  {1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 14, 15, 17, 18, 19, 20, 24},
	10: {1, 2},
}

// TestEachLineOfTheListingsIsCitedOnce: a grep for L, 4, a colon and 15 leads to the one
// place in the code that does what Listing 4, line 15, does, or says why it is left out.
func TestEachLineOfTheListingsIsCitedOnce(t *testing.T) {
	citation := regexp.MustCompile(`\bL\d+:\d+\b`)
	places := map[string][]string{}
	err := filepath.WalkDir("..", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".go" {
			return err
		}
		text, err := os.ReadFile(file)
		for i, line := range strings.Split(string(text), "\n") {
			for _, c := range citation.FindAllString(line, -1) {
				places[c] = append(places[c], fmt.Sprintf("%s:%d", file, i+1))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for listing, lines := range listings {
		for _, line := range lines {
			c := fmt.Sprintf("L%d:%d", listing, line)
			if len(places[c]) != 1 {
				t.Errorf("%s is cited at %q, want one place", c, places[c])
			}
			delete(places, c)
		}
	}
	for c, at := range places {
		t.Errorf("%s, cited at %q, has no code in the paper", c, at)
	}
}
