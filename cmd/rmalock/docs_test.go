package main_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var (
	rmalockLine = regexp.MustCompile(`(?:bin/rmalock(?:-mpich)?|go run \./cmd/rmalock) (.*)$`)
	fileOfLine  = regexp.MustCompile(`(?:^| )((?:\./)?(?:jobs|examples|cmd|bench|scripts)/[a-zA-Z0-9_./-]*)`)
	targetLine  = regexp.MustCompile(`^make ((?:[a-z-]+ ?)+)(?:  |$)`)
)

// TestDocs: the command lines that the documentation shows are right. Those of this
// program run here without their launcher; of the others the files and the targets of
// make that they name are there.
func TestDocs(t *testing.T) {
	root := filepath.Join("..", "..")
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{"README.md", "examples/README.md", "jobs/README.md"} {
		pages = append(pages, filepath.Join(root, more))
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(write(t, "graph.txt", "1 2\n2 3\n3 1\n"))
	ran := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			line, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "    ")
			if !ok {
				continue
			}
			line, _, _ = strings.Cut(line, " # ")
			line = strings.TrimSpace(line)
			if m := targetLine.FindStringSubmatch(line + "  "); m != nil {
				for _, target := range strings.Fields(m[1]) {
					if !strings.Contains(string(makefile), "\n"+target+":") {
						t.Errorf("%s: make has no target %s: %s", page, target, line)
					}
				}
			} else if m := rmalockLine.FindStringSubmatch(line); m != nil {
				ran++
				args := strings.ReplaceAll(m[1], "localhost:9100", "localhost:0") // which may be taken
				if strings.HasPrefix(args, "tune") && !strings.Contains(args, "--rounds") {
					args += " --rounds 1" // in place of five
				}
				run(t, page, dir, strings.Fields(args))
			} else if m := fileOfLine.FindStringSubmatch(line); m != nil {
				path := strings.TrimSuffix(m[1], "/...")
				if _, err := os.Stat(filepath.Join(root, path)); err != nil {
					t.Errorf("%s: %s: %v", page, line, err)
				}
			}
		}
	}
	if ran < 10 {
		t.Errorf("only %d command lines were found: where have they gone?", ran)
	}
}

// run runs the program as a page shows it.
func run(t *testing.T, page, dir string, args []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = dir
	start := time.Now()
	if o := execute(t, cmd); o.code != 0 {
		t.Errorf("%s: rmalock %s: exit %d\n%s", page, strings.Join(args, " "), o.code, o.stderr)
	}
	t.Logf("%s: rmalock %s: %v", filepath.Base(page), strings.Join(args, " "), time.Since(start).Round(time.Millisecond))
}
