package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/bench/experiment"
)

// What the README says of the committed results must be what they say.
func TestReadmeListsTheVerdicts(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "README.md"))
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join("results", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		if strings.HasSuffix(f, ".host.json") {
			continue
		}
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		var res experiment.Result
		require.NoError(t, json.Unmarshal(b, &res), f)
		if res.Verdict == "" {
			continue // of another kind
		}
		name := strings.TrimSuffix(filepath.Base(f), ".json")
		require.NotEqual(t, experiment.Smoke, res.Verdict, "%s: only full runs are kept", name)
		row := fmt.Sprintf("| [%s](bench/results/%s.json) | %s |", name, name, res.Verdict)
		require.Contains(t, string(readme), row, "the README's table of verdicts needs this row")
	}
}
