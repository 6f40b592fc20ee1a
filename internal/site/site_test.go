package main

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	refers  = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	anchors = regexp.MustCompile(` id="([^"]*)"`)
	outside = regexp.MustCompile(`<(?:link|script|img|iframe)[^>]*(?:href|src)="(?:https?:)?//|@import|url\(`)
)

// TestSite: the site builds; every page of docs is in it; each link leads to a file, and to a heading
// of it; nothing is loaded from another host.
func TestSite(t *testing.T) {
	root, dir := filepath.Join("..", ".."), t.TempDir()
	if _, err := Build(root, dir); err != nil {
		t.Fatal(err)
	}
	html := map[string]string{} // by path
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".html" {
			return err
		}
		b, err := os.ReadFile(path)
		html[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for page, text := range html {
		if m := outside.FindString(text); m != "" {
			t.Errorf("%s loads from elsewhere: %s", page, m)
		}
		for _, m := range refers.FindAllStringSubmatch(text, -1) {
			to, err := url.Parse(m[1])
			if err != nil || to.Host != "" {
				continue
			}
			links++
			path := page
			if to.Path != "" {
				path = filepath.Join(filepath.Dir(page), to.Path)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			} else if to.Fragment != "" && !hasAnchor(html[path], to.Fragment) {
				t.Errorf("%s links to %s, which has no such heading", page, m[1])
			}
		}
	}
	if links < 1000 {
		t.Errorf("only %d links were found: where have they gone?", links)
	}
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		rel, err := filepath.Rel(root, path)
		s := &site{root: root}
		if _, there := html[filepath.Join(dir, s.target(filepath.ToSlash(rel)))]; !there {
			t.Errorf("no page leads to %s: put it into docs/README.md", rel)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func hasAnchor(html, name string) bool {
	for _, m := range anchors.FindAllStringSubmatch(html, -1) {
		if m[1] == name {
			return true
		}
	}
	return false
}

// TestLinks: a link is what its target's place in the site makes of it.
func TestLinks(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"README.md":       "# Home\n[a](docs/a.md#b-c) [folder](docs) [code](x.go) ![p](docs/p.svg) [web](https://example.org)\n",
		"docs/README.md":  "# Pages\n- [a](a.md)\n",
		"docs/a.md":       "# A\n## B, `c`\n[up](../README.md) [same](#b-c)\n<script>no()</script>\n",
		"docs/p.svg":      "<svg/>",
		"x.go":            "package x // a < b\n",
		"not-linked-to.c": "int x;\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := Build(root, dir); err != nil || n != 5 {
		t.Fatalf("%d files, error %v, want 5", n, err)
	}
	for page, want := range map[string][]string{
		"index.html":  {`<title>Home`, `href="docs/a.html#b-c"`, `href="docs/index.html"`, `href="x.go.html"`, `src="docs/p.svg"`, `href="https://example.org"`},
		"docs/a.html": {`<h2 id="b-c">`, `href="../index.html">up`, `href="#b-c"`, `<a href="a.html">`},
		"x.go.html":   {"a &lt; b"},
		"docs/p.svg":  {"<svg/>"},
	} {
		b, err := os.ReadFile(filepath.Join(dir, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(string(b), w) {
				t.Errorf("%s has no %s:\n%s", page, w, b)
			}
		}
		if strings.Contains(string(b), "<script>") {
			t.Errorf("%s has a script", page)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "docs/a.md"), []byte("[b](gone.md)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Build(root, t.TempDir()); err == nil || !strings.Contains(err.Error(), "gone.md") {
		t.Errorf("a link to nothing: error %v", err)
	}
}
