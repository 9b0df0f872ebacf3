package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// bannedImports are what the core must not see, with the reason.
var bannedImports = map[string]string{
	"sync":        "the driver holds the locks",
	"sync/atomic": "the driver holds the locks",
	"context":     "the core does not block",
	"log":         "the core reports events and reasons",
	"log/slog":    "the core reports events and reasons",
	"net":         "addresses are net/netip's",
	"os":          "the core has no environment",
	"runtime":     "the core has no goroutines",
	"crypto/rand": "the random source is injected",
}

// bannedCalls are functions of packages that the core may otherwise use.
var bannedCalls = map[string][]string{
	"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"},
	"fmt":  {"Print", "Println", "Printf"},
}

// sourcesOfRand are the functions of math/rand that make a source of their
// own; all others draw from the process-wide one.
var sourcesOfRand = []string{"New", "NewPCG", "NewChaCha8", "NewSource", "NewZipf", "Rand", "Source", "Source64", "PCG", "ChaCha8", "Zipf"}

func inCore(s *source) bool {
	return !s.test && slices.ContainsFunc(core, func(dir string) bool { return within(s.pkg, dir) })
}

func TestCoreImportsNoClockNoLockNoNetwork(t *testing.T) {
	for _, s := range sources(t) {
		if !inCore(s) {
			continue
		}
		s.imports(func(path string, at token.Position) {
			if why, banned := bannedImports[path]; banned {
				t.Errorf("%s: %s must not import %s: %s", at, s.pkg, path, why)
			}
		})
	}
}

func TestCoreHasNoGoroutineNoChannelNoTime(t *testing.T) {
	for _, s := range sources(t) {
		if !inCore(s) {
			continue
		}
		names := importNames(s)
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if why := bannedNode(n, names); why != "" {
				t.Errorf("%s: %s: %s", s.fset.Position(n.Pos()), s.pkg, why)
			}
			return true
		})
	}
}

// bannedNode says what is wrong with a node of the core's syntax; "" is
// nothing.
func bannedNode(n ast.Node, names map[string]string) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "starts a goroutine"
	case *ast.ChanType:
		return "has a channel"
	case *ast.SelectStmt:
		return "selects on channels"
	case *ast.SelectorExpr:
		x, ok := n.X.(*ast.Ident)
		if !ok {
			return ""
		}
		from := names[x.Name]
		if slices.Contains(bannedCalls[from], n.Sel.Name) {
			return "uses " + from + "." + n.Sel.Name
		}
		if within(from, "math/rand") && !slices.Contains(sourcesOfRand, n.Sel.Name) {
			return "uses the process-wide random source"
		}
	}
	return ""
}

func TestBansAreSeen(t *testing.T) {
	const sins = `package p
		import ( "time"; "math/rand/v2"; clock "time"; "fmt" )
		var c chan int
		func f() { go f(); select {}; time.Now(); clock.Sleep(1); rand.IntN(3); fmt.Println() }
		func g(r *rand.Rand, d time.Duration) { rand.New(rand.NewPCG(1, 2)); _ = fmt.Sprint(d) }`
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", sins, parser.SkipObjectResolution)
	require.NoError(t, err)
	names := importNames(&source{ast: file})
	var seen []string
	ast.Inspect(file, func(n ast.Node) bool {
		if why := bannedNode(n, names); why != "" {
			seen = append(seen, why)
		}
		return true
	})
	require.Equal(t, []string{
		"has a channel", "starts a goroutine", "selects on channels", "uses time.Now", "uses time.Sleep",
		"uses the process-wide random source", "uses fmt.Println",
	}, seen)
}

// importNames maps the names that a file gives to its imports to their paths.
func importNames(s *source) map[string]string {
	names := make(map[string]string)
	for _, spec := range s.ast.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(p)
		if strings.HasPrefix(name, "v") && len(name) == 2 { // math/rand/v2
			name = path.Base(path.Dir(p))
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = p
	}
	return names
}

// secrets are the fields that hold what only the peer can know.
var secrets = []string{"HMAC", "FastClose", "SenderKey", "ReceiverKey", "localKey", "remoteKey"}

// What a peer proves itself by is compared by key.Equal, whose time tells nothing.
// Package wire proves nothing: it asks whether segments may be merged.
func TestSecretsAreComparedInConstantTime(t *testing.T) {
	for _, s := range sources(t) {
		if !inCore(s) || within(s.pkg, "internal/wire") {
			continue
		}
		names := importNames(s)
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if comparesSecret(n, names) {
				t.Errorf("%s: %s compares a secret, or bytes, other than by key.Equal", s.fset.Position(n.Pos()), s.pkg)
			}
			return true
		})
	}
}

// comparesSecret reports whether a node compares a secret with something other than
// a literal, which stands for none, or slices of bytes.
func comparesSecret(n ast.Node, names map[string]string) bool {
	isSecret := func(e ast.Expr) bool {
		sel, ok := e.(*ast.SelectorExpr)
		return ok && slices.Contains(secrets, sel.Sel.Name)
	}
	switch n := n.(type) {
	case *ast.BinaryExpr:
		_, none := ast.Unparen(n.Y).(*ast.CompositeLit)
		return (n.Op == token.EQL || n.Op == token.NEQ) && (isSecret(n.X) || isSecret(n.Y)) && !none
	case *ast.SelectorExpr:
		x, ok := n.X.(*ast.Ident)
		return ok && names[x.Name] == "bytes" && n.Sel.Name == "Equal"
	}
	return false
}

func TestComparisonsAreSeen(t *testing.T) {
	const sins = `package p
		import "bytes"
		func f(a, b S) bool { return a.HMAC == b.HMAC || bytes.Equal(a.x, b.x) || a.FastClose != b.y || a.remoteKey == (K{}) }`
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", sins, parser.SkipObjectResolution)
	require.NoError(t, err)
	seen := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if comparesSecret(n, importNames(&source{ast: file})) {
			seen++
		}
		return true
	})
	require.Equal(t, 3, seen)
}
