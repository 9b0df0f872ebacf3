package archtest

import (
	"go/ast"
	"testing"
)

// Sizes in lines. A file of more than longFile lines needs a reason below.
const (
	longFile = 500
	mostFile = 800
	mostFunc = 100
)

// longFiles are the files that may be longer than longFile, with the reason.
var longFiles = map[string]string{}

func TestFilesAreShort(t *testing.T) {
	for _, s := range sources(t) {
		lines := s.fset.Position(s.ast.FileEnd).Line
		if lines > mostFile {
			t.Errorf("%s has %d lines: split it by concern", s.path, lines)
		} else if lines > longFile && longFiles[s.path] == "" && !s.test {
			t.Errorf("%s has %d lines: split it, or give a reason in longFiles", s.path, lines)
		} else if lines <= longFile && longFiles[s.path] != "" {
			t.Errorf("%s has %d lines and needs no place in longFiles", s.path, lines)
		}
	}
}

func TestFunctionsFitAScreen(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, d := range s.ast.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			lines := s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line + 1
			if lines > mostFunc {
				t.Errorf("%s: %s has %d lines", s.fset.Position(f.Pos()), f.Name.Name, lines)
			}
		}
	}
}
