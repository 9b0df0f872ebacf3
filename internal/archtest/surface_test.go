package archtest

import (
	"bytes"
	"flag"
	"go/ast"
	"go/build"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the listings of exported names in testdata")

// public are the packages that others may import.
var public = []string{"mptcp", "mptcp/qlog", "netstack", "scheduler", "cc"}

// TestExportedSurface compares the exported names with their listings, so that
// the surface grows by decision only. Listings show what Linux sees.
func TestExportedSurface(t *testing.T) {
	for _, pkg := range public {
		t.Run(pkg, func(t *testing.T) {
			got := surface(t, pkg)
			name := filepath.Join("testdata", pkg+".txt")
			if *update {
				require.NoError(t, os.WriteFile(name, []byte(strings.Join(got, "\n")+"\n"), 0o644))
				return
			}
			listing, err := os.ReadFile(name)
			require.NoError(t, err)
			want := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(listing), "\r\n", "\n")), "\n")
			for _, line := range without(got, want) {
				t.Errorf("not listed: %s", line)
			}
			for _, line := range without(want, got) {
				t.Errorf("listed and gone: %s", line)
			}
			if t.Failed() {
				t.Log("if that was meant, run: go test ./internal/archtest -run Surface -update")
			}
		})
	}
}

// without returns the lines that others does not have.
func without(lines, others []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return slices.Contains(others, line) })
}

// surface lists the exported declarations of a package, one a line, sorted.
func surface(t *testing.T, pkg string) []string {
	t.Helper()
	platform := build.Default
	platform.GOOS, platform.GOARCH, platform.CgoEnabled = "linux", "amd64", false
	var lines []string
	for _, s := range sources(t) {
		if s.pkg != pkg || s.test {
			continue
		}
		match, err := platform.MatchFile(filepath.Join(root, pkg), filepath.Base(s.path))
		require.NoError(t, err)
		if !match {
			continue
		}
		for _, d := range s.ast.Decls {
			lines = append(lines, declared(s.fset, d)...)
			lines = append(lines, borrowed(t, s, d)...)
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// declared lists the exported names of one declaration.
func declared(fset *token.FileSet, d ast.Decl) []string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if !d.Name.IsExported() || !exportedReceiver(d) {
			return nil
		}
		sig := *d
		sig.Doc, sig.Body = nil, nil
		if d.Recv != nil {
			sig.Recv = &ast.FieldList{List: []*ast.Field{{Type: d.Recv.List[0].Type}}}
		}
		return []string{text(fset, &sig)}
	case *ast.GenDecl:
		var lines []string
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					if name.IsExported() {
						lines = append(lines, d.Tok.String()+" "+name.Name)
					}
				}
			case *ast.TypeSpec:
				if spec.Name.IsExported() {
					lines = append(lines, typeLines(fset, spec)...)
				}
			}
		}
		return lines
	}
	return nil
}

// borrowed lists the members of the internal types that a declaration makes
// public by an alias.
func borrowed(t *testing.T, s *source, d ast.Decl) []string {
	t.Helper()
	var lines []string
	for _, spec := range typeSpecs(d) {
		from, ok := spec.Type.(*ast.SelectorExpr)
		if !ok || !spec.Assign.IsValid() || !spec.Name.IsExported() {
			continue
		}
		pkg, _ := strings.CutPrefix(importNames(s)[text(s.fset, from.X)], module)
		for _, other := range sources(t) {
			if other.pkg != pkg || other.test {
				continue
			}
			for _, d := range other.ast.Decls {
				for _, original := range typeSpecs(d) {
					if original.Name.Name == from.Sel.Name {
						renamed := *original
						renamed.Name = spec.Name
						lines = append(lines, typeLines(other.fset, &renamed)...)
					}
				}
			}
		}
	}
	return lines
}

// typeSpecs returns the types that d declares.
func typeSpecs(d ast.Decl) []*ast.TypeSpec {
	g, ok := d.(*ast.GenDecl)
	if !ok {
		return nil
	}
	var specs []*ast.TypeSpec
	for _, spec := range g.Specs {
		if spec, ok := spec.(*ast.TypeSpec); ok {
			specs = append(specs, spec)
		}
	}
	return specs
}

func exportedReceiver(f *ast.FuncDecl) bool {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return true
	}
	x := f.Recv.List[0].Type
	if star, ok := x.(*ast.StarExpr); ok {
		x = star.X
	}
	if generic, ok := x.(*ast.IndexExpr); ok {
		x = generic.X
	}
	id, ok := x.(*ast.Ident)
	return ok && id.IsExported()
}

// typeLines lists a type and its exported fields or methods.
func typeLines(fset *token.FileSet, spec *ast.TypeSpec) []string {
	head := "type " + spec.Name.Name
	var members *ast.FieldList
	switch x := spec.Type.(type) {
	case *ast.StructType:
		head, members = head+" struct", x.Fields
	case *ast.InterfaceType:
		head, members = head+" interface", x.Methods
	default:
		if spec.Assign.IsValid() {
			head += " ="
		}
		return []string{head + " " + text(fset, spec.Type)}
	}
	lines := []string{head}
	for _, m := range members.List {
		of := text(fset, m.Type)
		if len(m.Names) == 0 && ast.IsExported(of[strings.LastIndexAny(of, "*.")+1:]) {
			lines = append(lines, head+", "+of)
		}
		for _, name := range m.Names {
			if name.IsExported() {
				lines = append(lines, head+", "+name.Name+" "+strings.TrimPrefix(of, "func"))
			}
		}
	}
	return lines
}

// text prints a node on one line, without comments.
func text(fset *token.FileSet, n any) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, fset, n); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
