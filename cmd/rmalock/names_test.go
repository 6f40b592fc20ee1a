package main_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	dotted   = regexp.MustCompile(`^([A-Za-z]\w*)((?:\.[A-Z]\w*)+)`)
	target   = regexp.MustCompile(`^make ([a-z-]+)`)
	testName = regexp.MustCompile(`\bTest[A-Z]\w+`)
	fileName = regexp.MustCompile(`\b[a-z][a-z0-9-]*(?:/[a-z0-9_.-]+)*/[a-z0-9_.-]+\.(?:go|c|h|json|sbatch|sh)\b`)
)

// identifiers are those of the module's code: of each package by its name, and of all
// packages by the name "".
func identifiers(t *testing.T, root string) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{"": {}}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var s scanner.Scanner
		s.Init(token.NewFileSet().AddFile(path, -1, len(text)), text, nil, 0)
		pkg := ""
		for before := token.ILLEGAL; ; {
			_, tok, word := s.Scan()
			if tok == token.EOF {
				return nil
			}
			if tok == token.IDENT {
				if before == token.PACKAGE {
					pkg = strings.TrimSuffix(word, "_test")
				}
				if all[pkg] == nil {
					all[pkg] = map[string]bool{}
				}
				all[pkg][word], all[""][word] = true, true
			}
			before = tok
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestDocsNames: what a page names is there: tests, files, and in
// code spans targets of make and names with a dot, such as rma.Window.Flush and Config.Leaf.
func TestDocsNames(t *testing.T) {
	root := filepath.Join("..", "..")
	known := identifiers(t, root)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	names := 0
	for _, page := range pages(t, root) {
		if filepath.Base(page) == "CHANGELOG.md" {
			continue // which has names of the past
		}
		prose(t, page, func(number int, line string) {
			for _, name := range testName.FindAllString(line, -1) {
				if names++; !known[""][name] {
					t.Errorf("%s:%d: no test is called %s", page, number, name)
				}
			}
			for _, name := range fileName.FindAllString(line, -1) {
				names++
				if _, err := os.Stat(filepath.Join(root, name)); err != nil {
					if _, err := os.Stat(filepath.Join(filepath.Dir(page), name)); err != nil {
						t.Errorf("%s:%d: no file is called %s", page, number, name)
					}
				}
			}
			for _, span := range codeSpan.FindAllStringSubmatch(line, -1) {
				if m := target.FindStringSubmatch(span[1]); m != nil {
					if names++; !strings.Contains(string(makefile), "\n"+m[1]+":") {
						t.Errorf("%s:%d: make has no target %s", page, number, m[1])
					}
				}
				m := dotted.FindStringSubmatch(span[1])
				if m == nil {
					continue
				}
				words, ok := known[m[1]]
				if !ok {
					if words = known[""]; !words[m[1]] {
						continue // a name of another module
					}
				}
				for _, name := range strings.Split(m[2], ".")[1:] {
					if names++; !words[name] {
						t.Errorf("%s:%d: the code has no %s in %s", page, number, name, span[1])
					}
				}
			}
		})
	}
	if names < 100 {
		t.Errorf("only %d names were found: where have they gone?", names)
	}
}
