package archtest

import (
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The layers that whole rows of the list below may use.
var (
	policy = []string{"cc", "scheduler", "internal/pathmgr"}
	ground = append([]string{"internal/seq", "internal/mono", "internal/reason", "internal/interval"}, policy...)
	parts  = []string{"internal/wire", "internal/key", "internal/timer", "internal/stream"}
)

// allowed is the import DAG: what the non-test files of a package may import
// of this module. Its order is that of the layers.
var allowed = []struct {
	pkg string
	may []string
}{
	{"internal/seq", nil},
	{"internal/mono", nil},
	{"internal/reason", nil},
	{"internal/interval", nil},
	{"cc", nil},
	{"scheduler", nil},
	{"internal/pathmgr", []string{"internal/reason"}},

	{"internal/wire", []string{"internal/seq", "internal/reason"}},
	{"internal/key", []string{"internal/seq"}},
	{"internal/timer", []string{"internal/mono"}},
	{"internal/stream", []string{"internal/interval"}},
	{"internal/link", []string{"internal/mono"}},

	{"internal/subflow", slices.Concat(ground, parts)},
	{"internal/mpconn", slices.Concat(ground, parts, []string{"internal/subflow"})},
	{"internal/host", slices.Concat(ground, parts, []string{"internal/subflow", "internal/mpconn"})},

	{"mptcp/qlog", []string{"mptcp"}},
	{"mptcp", []string{
		"internal/host", "internal/mpconn", "internal/pathmgr", "internal/wire", "internal/stream",
		"internal/mono", "internal/reason", "cc", "scheduler",
	}},
	{"internal/sim", []string{
		"internal/host", "internal/mpconn", "internal/subflow", "internal/pathmgr", "internal/link", "internal/wire",
		"internal/stream", "internal/mono", "internal/reason", "internal/interval", "cc", "scheduler",
		"internal/seq", // for the middleboxes that rewrite sequence numbers
	}},

	{"netstack", []string{
		"mptcp", "internal/link", "internal/wire", "internal/stream", "internal/mono", "internal/reason",
	}},
	{"internal/simnet", []string{"mptcp", "internal/link", "internal/wire", "internal/stream", "internal/mono"}},

	{"internal/spec", []string{
		"internal/sim", "internal/host", "internal/mpconn", "internal/pathmgr", "internal/wire", "internal/key",
		"internal/stream", "internal/seq", "internal/mono", "internal/reason",
	}},

	{"examples/mptcpspec", []string{"internal/spec"}},
	{"examples", []string{"mptcp", "mptcp/qlog", "netstack", "scheduler", "cc", "examples"}},
	{"bench", []string{
		"mptcp", "mptcp/qlog", "netstack", "scheduler", "cc", "bench", "internal",
	}},
	{"internal/interop", nil},
	{"internal/archtest", nil},
}

// core are the packages of state machines, which know no clock, no lock and no
// network.
var core = slices.Concat(ground, parts, []string{"internal/subflow", "internal/mpconn", "internal/host"})

// foreign says which packages may import which modules that are not the
// standard library; tests may import any.
var foreign = []struct {
	prefix string
	may    []string
}{
	{"gvisor.dev/gvisor", []string{"netstack", "bench", "examples", "internal/interop"}},
	{"golang.zx2c4.com/wireguard", []string{"netstack", "examples"}},
	{"github.com/google/gopacket", []string{"netstack", "internal/sim", "bench"}},
	{"golang.org/x/sys", []string{"netstack", "bench", "examples", "internal/spec"}},
	{"gonum.org/v1", []string{"bench"}},
}

func TestImportsFollowTheLayers(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		may, known := mayImport(s.pkg)
		if !known {
			t.Errorf("%s: package %s is not in the plan", s.path, s.pkg)
			continue
		}
		s.imports(func(path string, at token.Position) {
			own, ok := strings.CutPrefix(path, module)
			switch {
			case ok && !slices.ContainsFunc(may, func(dir string) bool { return permits(dir, own) }):
				t.Errorf("%s: %s must not import %s", at, s.pkg, own)
			case !ok && strings.Contains(strings.SplitN(path, "/", 2)[0], "."):
				checkForeign(t, s, path, at)
			}
		})
	}
}

// mayImport returns the row of the list for pkg: its own or that of the
// nearest directory above.
func mayImport(pkg string) (may []string, known bool) {
	for _, row := range allowed {
		if within(pkg, row.pkg) {
			return row.may, true
		}
	}
	return nil, false
}

// permits reports whether the allowance dir covers the import own. Only the
// rows of products name a directory for all that lies below it.
func permits(dir, own string) bool {
	switch dir {
	case "examples", "bench", "internal":
		return within(own, dir)
	}
	return own == dir
}

func checkForeign(t *testing.T, s *source, path string, at token.Position) {
	t.Helper()
	for _, row := range foreign {
		if !within(path, row.prefix) {
			continue
		}
		if !slices.ContainsFunc(row.may, func(dir string) bool { return within(s.pkg, dir) }) {
			t.Errorf("%s: %s must not import %s", at, s.pkg, path)
		}
		return
	}
	t.Errorf("%s: %s is a dependency that the plan does not have", at, path)
}

func TestGVisorIsSeenInFewPackages(t *testing.T) {
	for _, s := range sources(t) {
		s.imports(func(path string, at token.Position) {
			if within(path, "gvisor.dev/gvisor") && !slices.ContainsFunc(foreign[0].may, func(dir string) bool { return within(s.pkg, dir) }) {
				t.Errorf("%s: %s must not see gVisor, its tests included", at, s.pkg)
			}
		})
	}
}

func TestPackagesAndDirectoriesAreThePlanned(t *testing.T) {
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") || e.Name() == "out" {
			continue
		}
		known := []string{"bench", "cc", "examples", "internal", "mptcp", "netstack", "scheduler"}
		if !slices.Contains(known, e.Name()) {
			t.Errorf("directory %s is not in the plan", e.Name())
		}
	}
	for _, s := range sources(t) {
		name := s.path[strings.LastIndexByte(s.path, '/')+1:]
		if slices.Contains([]string{"types.go", "helpers.go", "utils.go", "util.go", "constants.go", "misc.go"}, name) {
			t.Errorf("%s: name files by concern, not by kind", s.path)
		}
		if slices.Contains([]string{"util", "utils", "common", "base", "misc", "helpers"}, s.ast.Name.Name) {
			t.Errorf("%s: package %s says nothing of its duty", s.path, s.ast.Name.Name)
		}
	}
}
