package sim_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEnginesApart: the search and the clock do not use each other's declarations, and what
// they share uses neither's, but for the parts of a rank that are theirs.
func TestEnginesApart(t *testing.T) {
	room := func(file string) string {
		switch {
		case strings.HasPrefix(file, "clock"):
			return "clock"
		case slices.Contains([]string{"comm.go", "control.go", "doc.go", "elapsed.go", "engine.go", "rank.go", "segment.go", "world.go"}, file):
			return "shared"
		}
		return "search"
	}
	ofRank := []string{"searchState", "memoState", "timedState", "timedOperation"}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	declared := map[string]string{} // name -> room
	parsed := map[string]*ast.File{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed[name] = f
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					declared[d.Name.Name] = room(name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						declared[s.Name.Name] = room(name)
					case *ast.ValueSpec:
						for _, n := range s.Names {
							declared[n.Name] = room(name)
						}
					}
				}
			}
		}
	}
	if len(parsed) < 10 || declared["search"] != "search" || declared["clock"] != "clock" {
		t.Fatalf("%d files, %d declarations", len(parsed), len(declared))
	}
	for name, f := range parsed {
		var fields []*ast.Ident // and methods, whose names are their type's
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				fields = append(fields, n.Sel)
			case *ast.Field:
				fields = append(fields, n.Names...)
			case *ast.KeyValueExpr:
				if k, ok := n.Key.(*ast.Ident); ok {
					fields = append(fields, k)
				}
			case *ast.FuncDecl:
				fields = append(fields, n.Name)
			case *ast.Ident:
				of := declared[n.Name]
				if of == "" || of == "shared" || of == room(name) || slices.Contains(fields, n) || name == "rank.go" && slices.Contains(ofRank, n.Name) {
					return true
				}
				t.Errorf("%s uses %s of the %s", fset.Position(n.Pos()), n.Name, of)
			}
			return true
		})
	}
}
