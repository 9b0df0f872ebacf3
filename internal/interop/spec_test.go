//go:build linux

package interop

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestConformanceOfTheKernel plays the conformance items against Linux. The
// kernel may differ from the RFCs where it likes; what is tested is that all
// items come to an end, and that those which every stack must pass are passed:
// if they are not, the scripts are wrong.
func TestConformanceOfTheKernel(t *testing.T) {
	if os.Getenv(envGate) != "1" {
		t.Skipf("set %s=1 to run, as root", envGate)
	}
	requireHost(t)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, build(t, "mptcpspec"), "-target", "kernel", "-json").Output()
	require.NoError(t, err)

	var report struct {
		Target string
		Items  []struct{ ID, Verdict, Note string }
	}
	require.NoError(t, json.Unmarshal(out, &report))
	require.Equal(t, "kernel", report.Target)
	require.GreaterOrEqual(t, len(report.Items), 120)
	verdicts := map[string]int{}
	for _, it := range report.Items {
		verdicts[it.Verdict]++
		if it.Verdict != "pass" {
			t.Logf("%s %s: %s", it.ID, it.Verdict, it.Note)
		}
	}
	t.Logf("verdicts: %v", verdicts)
	require.GreaterOrEqual(t, verdicts["pass"], len(report.Items)*7/10)
	for _, it := range report.Items {
		switch it.ID {
		case "M006", "M009", "M010", "M017", "M030", "M043", "M044", "M049", "M081", "M104", "M107", "M120", "T11", "T16":
			require.Equal(t, "pass", it.Verdict, "%s: %s", it.ID, it.Note)
		}
	}
}
