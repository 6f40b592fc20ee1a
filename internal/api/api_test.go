// Package api compares the exported names of the module with those of its releases.
//
// v0.1.0.txt and v0.2.0.txt have a line for each exported name of a package that docs/upgrading.md
// calls stable. All of the last release must be there. A line of an earlier one that is gone or
// different must be in except.txt, after which docs/upgrading.md says what a user does. A release
// adds its own list: go test ./internal/api -v -args -list.
package api_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// releases are the lists of names, with the names that are gone since.
var releases = []struct{ names, except string }{{"v0.1.0.txt", "except.txt"}, {"v0.2.0.txt", ""}}

var list = flag.Bool("list", false, "print the exported names")

// stable are the folders of the packages whose names stay.
var stable = []string{
	"rma", "rma/clocksync", "rma/inproc", "rma/mpi", "rma/verbs", "lock", "lock/observe", "dmcs", "rmamcs", "rmarw", "dslr",
	"alock", "declock", "shiftlock", "dht", "topo", "topo/discover", "topo/hardware",
}

func TestAPI(t *testing.T) {
	now := names(t, filepath.Join("..", ".."))
	if *list {
		fmt.Println(strings.Join(now, "\n"))
	}
	for _, r := range releases {
		var except []string
		if r.except != "" {
			except = lines(t, r.except)
		}
		compare(t, now, r.names, lines(t, r.names), except)
	}
}

// compare reports what is gone since a release and not excepted, and the other way round.
func compare(t *testing.T, now []string, released string, before, except []string) {
	t.Helper()
	require.NotEmpty(t, before)
	for _, line := range before {
		gone, excepted := !slices.Contains(now, line), slices.Contains(except, line)
		if gone && !excepted {
			t.Errorf("%s has\n\t%s\nand the module has it no more: keep it, or except it and say in docs/upgrading.md what a user does", released, line)
		}
		if excepted && !gone {
			t.Errorf("a line is excepted and not gone:\n\t%s", line)
		}
	}
	for _, line := range except {
		if !slices.Contains(before, line) {
			t.Errorf("a line is excepted that %s has not:\n\t%s", released, line)
		}
	}
}

func lines(t *testing.T, file string) []string {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// names are the exported declarations of the stable packages, sorted.
func names(t *testing.T, root string) []string {
	var all []string
	for _, folder := range stable {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		require.NoError(t, err)
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			for _, d := range file.Decls {
				for _, line := range declared(t, d) {
					all = append(all, folder+": "+line)
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// declared are the lines of a declaration's exported names: of a function its signature, of a type
// each exported field and method, of constants and variables the name.
func declared(t *testing.T, d ast.Decl) []string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		receiver := ""
		if d.Recv != nil {
			receiver = "(" + text(t, d.Recv.List[0].Type) + ") "
			if base := strings.Trim(receiver, "(*) "); !ast.IsExported(base) {
				return nil
			}
		}
		if d.Name.IsExported() {
			return []string{"func " + receiver + d.Name.Name + strings.TrimPrefix(text(t, d.Type), "func")}
		}
	case *ast.GenDecl:
		var all []string
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.IsExported() {
						all = append(all, d.Tok.String()+" "+n.Name)
					}
				}
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					all = append(all, typed(t, s)...)
				}
			}
		}
		return all
	}
	return nil
}

func typed(t *testing.T, s *ast.TypeSpec) []string {
	var fields *ast.FieldList
	kind := ""
	switch u := s.Type.(type) {
	case *ast.StructType:
		fields, kind = u.Fields, "struct"
	case *ast.InterfaceType:
		fields, kind = u.Methods, "interface"
	default:
		return []string{"type " + s.Name.Name + " " + text(t, u)}
	}
	all := []string{"type " + s.Name.Name + " " + kind}
	for _, f := range fields.List {
		for _, n := range f.Names {
			if n.IsExported() {
				all = append(all, "type "+s.Name.Name+" "+kind+", "+n.Name+" "+text(t, f.Type))
			}
		}
		if len(f.Names) == 0 {
			all = append(all, "type "+s.Name.Name+" "+kind+", embedded "+text(t, f.Type))
		}
	}
	return all
}

// text is a piece of syntax on one line, without the names of parameters.
func text(t *testing.T, n ast.Node) string {
	if f, ok := n.(*ast.FuncType); ok {
		for _, l := range []*ast.FieldList{f.Params, f.Results} {
			unname(l)
		}
	}
	var b bytes.Buffer
	require.NoError(t, printer.Fprint(&b, token.NewFileSet(), n))
	return strings.Join(strings.Fields(b.String()), " ")
}

func unname(l *ast.FieldList) {
	if l == nil {
		return
	}
	var all []*ast.Field
	for _, f := range l.List {
		for range max(len(f.Names), 1) {
			all = append(all, &ast.Field{Type: f.Type})
		}
	}
	l.List = all
}
