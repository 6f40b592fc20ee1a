package main_test

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rmalock/rmalock/bench/papers"
)

var (
	rmalockLine = regexp.MustCompile(`(?:bin/rmalock(?:-mpich)?|go run \./cmd/rmalock) (.*)$`)
	fileOfLine  = regexp.MustCompile(`(?:^| )((?:\./)?(?:jobs|examples|cmd|bench|scripts)/[a-zA-Z0-9_./-]*)`)
	targetLine  = regexp.MustCompile(`^make ((?:[a-z-]+ )+)(?:[A-Z]+=\S+ )* `)
	linkTo      = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// pages are the pages of the documentation.
func pages(t *testing.T, root string) []string {
	t.Helper()
	var out []string
	for _, name := range []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "examples/README.md", "jobs/README.md"} {
		out = append(out, filepath.Join(root, name))
	}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// prose calls f for each line of a page that is no code, with its number from 1.
func prose(t *testing.T, page string, f func(number int, line string)) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	fenced, indented, blank := false, false, true
	for i, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		indented = strings.HasPrefix(line, "    ") && (blank || indented)
		blank = strings.TrimSpace(line) == ""
		if !fenced && !indented {
			f(i+1, line)
		}
	}
	if fenced {
		t.Errorf("%s: a block of code does not end", page)
	}
}

// maxLine is the longest line of a page, in characters.
const maxLine = 100

// TestDocsLines: outside tables and code no line of a page is longer than maxLine.
func TestDocsLines(t *testing.T) {
	for _, page := range pages(t, filepath.Join("..", "..")) {
		prose(t, page, func(number int, line string) {
			if n := utf8.RuneCountInString(line); n > maxLine && !strings.HasPrefix(line, "|") {
				t.Errorf("%s:%d has %d characters, at most %d are allowed", page, number, n, maxLine)
			}
		})
	}
}

// TestDocsLinks: a link from one page to another leads to a file, and to a heading of it.
func TestDocsLinks(t *testing.T) {
	links := 0
	for _, page := range pages(t, filepath.Join("..", "..")) {
		prose(t, page, func(number int, line string) {
			for _, m := range linkTo.FindAllStringSubmatch(line, -1) {
				if strings.Contains(m[1], "://") {
					continue
				}
				links++
				path, anchor, _ := strings.Cut(m[1], "#")
				target := page
				if path != "" {
					target = filepath.Join(filepath.Dir(page), path)
				}
				if _, err := os.Stat(target); err != nil {
					t.Errorf("%s:%d: %v", page, number, err)
				} else if anchor != "" && !slices.Contains(anchors(t, target), anchor) {
					t.Errorf("%s:%d: %s has no heading #%s", page, number, target, anchor)
				}
			}
		})
	}
	if links < 50 {
		t.Errorf("only %d links were found: where have they gone?", links)
	}
}

// anchors are the names by which links lead to the headings of a page.
func anchors(t *testing.T, page string) (names []string) {
	prose(t, page, func(_ int, line string) {
		if text, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			name := notInAnchor.ReplaceAllString(strings.ToLower(text), "")
			names = append(names, strings.ReplaceAll(name, " ", "-"))
		}
	})
	return names
}

// TestDocs: the command lines that the documentation shows are right. Those of this
// program run here without their launcher; of the others the files and the targets of
// make that they name are there.
func TestDocs(t *testing.T) {
	root := filepath.Join("..", "..")
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(write(t, "graph.txt", "1 2\n2 3\n3 1\n"))
	ran := 0
	for _, page := range pages(t, root) {
		for _, line := range commands(t, page) {
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
				run(t, page, dir, papers.Args(smaller(m[1])))
			} else if m := fileOfLine.FindStringSubmatch(line); m != nil {
				path := strings.TrimSuffix(m[1], "/...")
				if _, err := os.Stat(filepath.Join(root, path)); err != nil {
					t.Errorf("%s: %s: %v", page, line, err)
				}
			}
		}
	}
	if ran < 30 {
		t.Errorf("only %d command lines were found: where have they gone?", ran)
	}
}

// commands are the lines of a page that a reader can type: those of indented code and of
// fenced code in sh.
func commands(t *testing.T, page string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	fence := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if opened, ok := strings.CutPrefix(strings.TrimSpace(line), "```"); ok {
			if fence == "" {
				fence = cmp.Or(opened, "text")
			} else {
				fence = ""
			}
			continue
		}
		code, indented := strings.CutPrefix(line, "    ")
		if fence == "sh" {
			lines = append(lines, line)
		} else if fence == "" && indented {
			lines = append(lines, code)
		}
	}
	return lines
}

// shorter are flags whose values a test makes smaller.
var shorter = map[string]*regexp.Regexp{
	"--duration 5ms": regexp.MustCompile(`--duration \S+`),
	"--repeat 1":     regexp.MustCompile(`--repeat \S+`),
	"--rounds 1":     regexp.MustCompile(`--rounds \S+`),
	"--ranks 16":     regexp.MustCompile(`--ranks \S*\d\d\S*`),
}

var locksOfLine = regexp.MustCompile(`--lock \S+`)

// smaller are the arguments of a command for fewer ranks and less time.
func smaller(args string) string {
	if strings.HasPrefix(args, "mn ") || strings.Contains(args, "--backend verbs") {
		return args + " --help" // there may be no device; the flags are looked at
	}
	for with, flag := range shorter {
		args = flag.ReplaceAllString(args, with)
	}
	if !strings.Contains(args, "--backend sim") { // where the machine may be busy for longer than a lease
		args = locksOfLine.ReplaceAllStringFunc(args, func(locks string) string {
			names := strings.Split(strings.TrimPrefix(locks, "--lock "), ",")
			for i := range names {
				names[i] = steady(names[i])
			}
			return "--lock " + strings.Join(names, ",")
		})
	}
	tune := strings.HasPrefix(args, "tune")
	switch bench := strings.HasPrefix(args, "bench"); {
	case tune && !strings.Contains(args, "--duration") && !strings.Contains(args, "--backend sim"):
		args += " --duration 5ms"
	case bench && strings.Contains(args, "--backend sim") && !strings.Contains(args, "--acquires"):
		args += " --acquires 20"
	case bench && !strings.Contains(args, "--backend sim") && !strings.Contains(args, "--duration"):
		args += " --duration 5ms"
	}
	if tune && !strings.Contains(args, "--rounds") {
		args += " --rounds 1" // in place of five
	}
	return strings.ReplaceAll(args, "localhost:9100", "localhost:0") // which may be taken
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
