package netstack

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"net"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"gvisor.dev/gvisor/pkg/tcpip"
)

// errorTypes reads from gVisor's source which errors there are.
func errorTypes(t *testing.T) []string {
	pkg, err := build.Import("gvisor.dev/gvisor/pkg/tcpip", ".", build.FindOnly)
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(pkg.Dir, "errors.go"), nil, 0)
	require.NoError(t, err)
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		if ts, ok := n.(*ast.TypeSpec); ok && strings.HasPrefix(ts.Name.Name, "Err") && ts.Name.Name != "Error" {
			names = append(names, ts.Name.Name)
		}
		return true
	})
	return names
}

func TestEveryErrorOfGVisorIsMapped(t *testing.T) {
	var mapped []string
	for _, row := range errorTable {
		mapped = append(mapped, reflect.TypeOf(row.cause).Elem().Name())
	}
	require.ElementsMatch(t, errorTypes(t), mapped)
}

func TestErrorsSurviveTheRoundTrip(t *testing.T) {
	for _, row := range errorTable {
		err := fmt.Errorf("link: %w", toError(row.cause))
		require.ErrorIs(t, err, row.is)
		require.ErrorContains(t, err, row.cause.String())
		require.Equal(t, row.cause, fromError(err))
	}
	require.NoError(t, toError(nil))
	require.Nil(t, fromError(nil))
}

func TestErrorsOfGoBecomeThoseOfGVisor(t *testing.T) {
	require.Equal(t, tcpip.Error(&tcpip.ErrConnectionRefused{}), fromError(syscall.ECONNREFUSED))
	require.Equal(t, tcpip.Error(&tcpip.ErrNoBufferSpace{}), fromError(&net.OpError{Op: "write", Err: syscall.ENOBUFS}))
	require.Equal(t, tcpip.Error(&tcpip.ErrInvalidEndpointState{}), fromError(errors.New("unheard of")))
}
