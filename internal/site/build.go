package main

import (
	"bytes"
	"fmt"
	"html/template"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	_ "embed"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// index is the page that is the list of pages.
const index = "docs/README.md"

// site is what is being made. Paths are slash-separated and relative to root.
type site struct {
	root, dir string
	made      map[string]bool // paths in the repository
	todo      []string        // that are linked to and not made yet
}

// Build makes a site in dir of the pages that can be reached from README.md and docs/README.md in
// root. It returns the number of files.
func Build(root, dir string) (files int, err error) {
	s := &site{root: root, dir: dir, made: map[string]bool{}, todo: []string{"README.md", index}}
	for len(s.todo) > 0 {
		at := s.todo[0]
		s.todo = s.todo[1:]
		if s.made[at] {
			continue
		}
		s.made[at] = true
		if err := s.file(at); err != nil {
			return 0, err
		}
	}
	return len(s.made), nil
}

// file makes what belongs to a file or folder of the repository.
func (s *site) file(at string) error {
	info, err := os.Stat(filepath.Join(s.root, at))
	if err != nil {
		return err
	}
	if info.IsDir() {
		return s.folder(at)
	}
	b, err := os.ReadFile(filepath.Join(s.root, at))
	if err != nil {
		return err
	}
	switch {
	case path.Ext(at) == ".md":
		body, title, err := s.markdown(at, at, b, true)
		if err != nil {
			return err
		}
		return s.page(at, title, body)
	case copied(at) || !utf8.Valid(b):
		return s.write(s.target(at), b)
	}
	body := "<h1>" + template.HTMLEscapeString(at) + "</h1><pre><code>" + template.HTMLEscapeString(string(b)) + "</code></pre>"
	return s.page(at, at, template.HTML(body)) //nolint:gosec // is escaped
}

// folder makes the list of a folder without a README.md.
func (s *site) folder(at string) error {
	all, err := os.ReadDir(filepath.Join(s.root, at))
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", at)
	for _, e := range all {
		fmt.Fprintf(&b, "- [%s](%s)\n", e.Name(), e.Name())
	}
	body, title, err := s.markdown(at+"/README.md", at, []byte(b.String()), true)
	if err != nil {
		return err
	}
	return s.page(at, title, body)
}

// copied reports whether a file is copied as it is: a browser shows it.
func copied(at string) bool { return slices.Contains([]string{".svg", ".png"}, path.Ext(at)) }

// target is the path in the site of a file of the repository, or of a folder.
func (s *site) target(at string) string {
	info, err := os.Stat(filepath.Join(s.root, at))
	switch {
	case err == nil && info.IsDir():
		return path.Join(at, "index.html")
	case path.Base(at) == "README.md":
		return path.Join(path.Dir(at), "index.html")
	case path.Ext(at) == ".md":
		return strings.TrimSuffix(at, ".md") + ".html"
	case copied(at):
		return at
	}
	return at + ".html"
}

// resolve is the file of the repository that a link on a page leads to; a folder's README.md where
// it has one.
func (s *site) resolve(page, link string) string {
	at := path.Join(path.Dir(page), link)
	if _, err := os.Stat(filepath.Join(s.root, at, "README.md")); err == nil {
		at = path.Join(at, "README.md")
	}
	return at
}

// markdown is the HTML of a text that is written for the place of one page, as it is shown on
// another one, and its first heading. With anchors its headings can be linked to.
func (s *site) markdown(written, shown string, src []byte, anchors bool) (body template.HTML, title string, err error) {
	md := goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough))
	doc := md.Parser().Parse(text.NewReader(src))
	used := map[string]int{}
	err = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			words := plain(n, src)
			if title == "" {
				title = words
			}
			id := anchor(words)
			if used[id]++; used[id] > 1 {
				id = fmt.Sprintf("%s-%d", id, used[id]-1)
			}
			if anchors {
				n.SetAttributeString("id", []byte(id))
			}
		case *ast.Link:
			n.Destination = s.link(written, shown, n.Destination)
		case *ast.Image:
			n.Destination = s.link(written, shown, n.Destination)
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return "", "", err
	}
	var b bytes.Buffer
	err = md.Renderer().Render(&b, src, doc)
	return template.HTML(b.String()), title, err //nolint:gosec // goldmark escapes what is no Markdown
}

// link is a link's destination in the site, and has the file that it leads to made.
func (s *site) link(written, shown string, destination []byte) []byte {
	to, fragment, _ := strings.Cut(string(destination), "#")
	if strings.Contains(to, "://") || to == "" {
		return destination
	}
	at := s.resolve(written, to)
	s.todo = append(s.todo, at)
	if fragment != "" {
		fragment = "#" + fragment
	}
	return []byte(relative(s.target(shown), s.target(at)) + fragment)
}

// relative is the path from one file of the site to another.
func relative(from, to string) string {
	r, err := filepath.Rel(filepath.FromSlash(path.Dir(from)), filepath.FromSlash(to))
	if err != nil {
		return to
	}
	return filepath.ToSlash(r)
}

// page writes a page with the list of pages at its side.
func (s *site) page(at, title string, body template.HTML) error {
	list, err := os.ReadFile(filepath.Join(s.root, index))
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(list), "\n") // without its heading
	side, _, err := s.markdown(index, at, []byte(rest), false)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	err = pageTemplate.Execute(&b, struct {
		Title, Home string
		Side, Body  template.HTML
	}{title, relative(s.target(at), "index.html"), side, body})
	if err != nil {
		return err
	}
	return s.write(s.target(at), b.Bytes())
}

func (s *site) write(to string, b []byte) error {
	to = filepath.Join(s.dir, filepath.FromSlash(to))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o644)
}

// plain is the text of a node without its marks.
func plain(n ast.Node, src []byte) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(src))
			if t.SoftLineBreak() {
				b.WriteByte(' ')
			}
		} else {
			b.WriteString(plain(c, src))
		}
	}
	return b.String()
}

var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

// anchor is the name by which links lead to a heading, as GitHub makes it.
func anchor(heading string) string {
	return strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}
