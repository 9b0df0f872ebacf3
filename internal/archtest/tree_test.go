// Package archtest has no code, only tests: they keep the plan of the house.
// Which package may import which, what the core must not use, how large files
// and functions may grow, and which names are public.
package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// module is the path of the module under test.
const module = "github.com/gomptcp/gomptcp/"

// root is the module's directory, seen from this package's.
var root = filepath.Join("..", "..")

// source is one parsed Go file of the module, whatever its build tags.
type source struct {
	path string // slash-separated, from the module's root
	pkg  string // its directory, the same way
	test bool
	fset *token.FileSet
	ast  *ast.File
}

// imports calls f for every import path of the file.
func (s *source) imports(f func(path string, at token.Position)) {
	for _, spec := range s.ast.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err == nil {
			f(path, s.fset.Position(spec.Pos()))
		}
	}
}

var parseOnce = sync.OnceValues(parseTree)

// sources returns all Go files of the module, in order of their paths.
func sources(t *testing.T) []*source {
	t.Helper()
	all, err := parseOnce()
	require.NoError(t, err)
	return all
}

func parseTree() ([]*source, error) {
	var all []*source
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "out") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		s := &source{path: filepath.ToSlash(rel), test: strings.HasSuffix(name, "_test.go"), fset: token.NewFileSet()}
		s.pkg = filepath.ToSlash(filepath.Dir(rel))
		s.ast, err = parser.ParseFile(s.fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		all = append(all, s)
		return nil
	})
	return all, err
}

// within reports whether pkg is dir or lies below it.
func within(pkg, dir string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") }
