package netstack

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain fails when goroutines of tests survive them.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		code = checkLeaks()
	}
	os.Exit(code)
}

// checkLeaks gives goroutines a second to end and reports the rest.
func checkLeaks() int {
	var left []string
	for range 100 {
		if left = goroutines(); len(left) == 0 {
			return 0
		}
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Printf("%d goroutines leaked:\n\n%s\n", len(left), strings.Join(left, "\n\n"))
	return 1
}

// goroutines returns the stacks of goroutines other than this one and those of
// the runtime and the testing package.
func goroutines() []string {
	buf := make([]byte, 1<<20)
	all := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	var left []string
	for _, g := range all[1:] {
		if !strings.Contains(g, "created by runtime") && !strings.Contains(g, "os/signal.") {
			left = append(left, g)
		}
	}
	return left
}
