package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReportIsAsDocumented(t *testing.T) {
	var out, notes bytes.Buffer
	require.NoError(t, run(&out, &notes, options{target: "self", json: true, match: regexp.MustCompile("^M009")}))
	var report struct {
		Target string
		Items  []struct{ ID, Section, Level, Verdict, Note string }
	}
	d := json.NewDecoder(&out)
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&report))
	require.Equal(t, "self", report.Target)
	require.Len(t, report.Items, 1)
	require.Equal(t, "M009", report.Items[0].ID)
	require.Equal(t, "RFC 8684 3.1", report.Items[0].Section)
	require.Equal(t, "pass", report.Items[0].Verdict)
}

func TestTableCounts(t *testing.T) {
	var out, notes bytes.Buffer
	require.NoError(t, run(&out, &notes, options{target: "self", match: regexp.MustCompile("^M0(09|43)")}))
	require.Contains(t, out.String(), "self: 2 items, 2 pass, 0 fail, 0 deviation, 0 skip")
}

func TestListHasEnoughItems(t *testing.T) {
	var out, notes bytes.Buffer
	require.NoError(t, run(&out, &notes, options{list: true}))
	require.GreaterOrEqual(t, strings.Count(out.String(), "\n"), 120)
}

func TestUnknownTarget(t *testing.T) {
	var out, notes bytes.Buffer
	require.ErrorContains(t, run(&out, &notes, options{target: "toaster"}), "toaster")
}
