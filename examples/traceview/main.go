// Traceview makes a page that draws the traces of a connection, of one end or
// of both, as mptcp/qlog writes them:
//
//	go run ./examples/quickstart -trace out/run
//	go run ./examples/traceview -o out/run.html out/run.client.sqlog out/run.server.sqlog
//
// The page needs no other file and no network. Without files it is empty and
// opens those that are dropped on it.
package main

import (
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

//go:embed viewer.html
var viewer string

// slot is where the page takes its traces from.
const slot = "/*TRACES*/[]"

func main() {
	out := flag.String("o", "trace.html", "write the page to this `file`")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: traceview [-o FILE] [TRACE.sqlog ...]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := run(*out, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "traceview:", err)
		os.Exit(1)
	}
}

func run(out string, files []string, w io.Writer) error {
	traces := []string{}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if !strings.HasPrefix(string(b), "\x1e{") {
			return fmt.Errorf("%s is no JSON text sequence", name)
		}
		traces = append(traces, string(b))
	}
	page, err := pageOf(traces)
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, page, 0o644); err != nil {
		return err
	}
	fmt.Fprintln(w, out)
	return nil
}

// pageOf puts traces into the page. JSON's escapes keep them from ending the
// script.
func pageOf(traces []string) ([]byte, error) {
	b, err := json.Marshal(traces)
	if err != nil {
		return nil, err
	}
	return []byte(strings.Replace(viewer, slot, string(b), 1)), nil
}
