package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var request = regexp.MustCompile(`^\.(TH|SH|nf$|fi$)`)

// TestManualPages: there is a page for each command and topic of the help, with its flags, and no
// line of a text is taken for a request.
func TestManualPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	o := rmalock(t, "man", dir)
	require.Equal(t, outcome{}, o)
	help := rmalock(t, "--help").good(t).stdout
	pages := 0
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z-]+) +[A-Z]`).FindAllStringSubmatch(help, -1) {
		text, err := os.ReadFile(filepath.Join(dir, "rmalock-"+m[1]+".1"))
		require.NoError(t, err)
		pages++
		for _, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
				require.Regexp(t, request, line, "page %s", m[1])
			}
		}
	}
	require.Greater(t, pages, 15)
	bench, err := os.ReadFile(filepath.Join(dir, "rmalock-bench.1"))
	require.NoError(t, err)
	require.Contains(t, string(bench), `\-\-duration duration`)
	rmalock(t, "man", filepath.Join(dir, "rmalock.1", "below")).bad(t, 1, "not a directory")
}
