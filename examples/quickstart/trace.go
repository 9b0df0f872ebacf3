package main

import (
	"errors"
	"os"
	"time"

	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/mptcp/qlog"
)

// traceFile is the trace of one host.
type traceFile struct {
	file *os.File
	w    *qlog.Writer
}

// trace begins the trace of a host, in the file that -trace and its name make
// up. It returns nil if none is asked for.
func (n *network) trace(o *options, host string, from time.Time) (*mptcp.Trace, error) {
	if o.trace == "" {
		return nil, nil
	}
	f, err := os.Create(o.trace + "." + host + ".sqlog")
	if err != nil {
		return nil, err
	}
	w := qlog.New(f, qlog.Config{Title: "quickstart", VantagePoint: host, Reference: from})
	n.traces = append(n.traces, traceFile{f, w})
	return w.Trace(), nil
}

// closeTraces ends all traces. The hosts must be closed.
func (n *network) closeTraces() error {
	var err error
	for _, t := range n.traces {
		err = errors.Join(err, t.w.Flush(), t.file.Close())
	}
	return err
}
