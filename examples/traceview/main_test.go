package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPageHoldsTheTraces(t *testing.T) {
	dir := t.TempDir()
	trace, page := filepath.Join(dir, "a.sqlog"), filepath.Join(dir, "a.html")
	require.NoError(t, os.WriteFile(trace, []byte("\x1e{\"title\":\"</script>\"}\n"), 0o600))
	require.NoError(t, run(page, []string{trace}, &bytes.Buffer{}))
	b, err := os.ReadFile(page)
	require.NoError(t, err)
	html := string(b)
	require.Contains(t, html, `["\u001e{\"title\":\"\u003c/script\u003e\"}\n"]`)
	require.Equal(t, 1, strings.Count(html, "</script>"), "a trace cannot end the script")
	for _, outside := range []string{"src=", "<link", "@import", "url(", "fetch("} {
		require.NotContains(t, html, outside, "the page needs no other file")
	}

	require.NoError(t, run(page, nil, &bytes.Buffer{}), "an empty page opens what is dropped on it")
	require.Error(t, run(page, []string{filepath.Join(dir, "none")}, &bytes.Buffer{}))
	require.NoError(t, os.WriteFile(trace, []byte("pcap"), 0o600))
	require.ErrorContains(t, run(page, []string{trace}, &bytes.Buffer{}), "no JSON text sequence")
}
