package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/gomptcp/gomptcp/bench/experiment"
)

// A store is the file of one experiment's outcomes, one a line, the first line
// being a heading. It grows by a line whenever a unit is done, so that an
// interrupted run loses nothing. Outcomes of another program, or of other
// options, are never mixed with new ones.
type store struct {
	name string // of the file
	head []byte // the heading, with its newline
	f    *os.File
}

// heading is the first line of a store: what must agree for outcomes to belong
// together.
type heading struct {
	Experiment string         `json:"experiment"`
	Profile    string         `json:"profile"`
	Quick      bool           `json:"quick"`
	Params     map[string]any `json:"params"`
	Cases      []string       `json:"cases"`
	Build      string         `json:"build"` // of the program
}

// record is a line of a store.
type record struct {
	experiment.Outcome
	CPU float64 `json:"cpu_s"` // processor time of the unit
}

// unitsDir is where the stores are, in the directory of results.
const unitsDir = "units"

func storeName(dir, file string) string { return filepath.Join(dir, unitsDir, file+".jsonl") }

// build identifies the running program by a hash of its file.
var build = sync.OnceValues(func() (string, error) {
	name, err := os.Executable()
	if err != nil {
		return "", err
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
})

// newStore describes the store of an experiment without touching its file.
func newStore(dir string, j *job) (*store, error) {
	b, err := build()
	if err != nil {
		return nil, err
	}
	h := heading{
		Experiment: j.Name, Profile: j.options.Profile.String(), Quick: j.options.Quick,
		Params: j.plan.Params, Build: b,
	}
	for _, c := range j.plan.Cases {
		h.Cases = append(h.Cases, c.Name)
	}
	head, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("%s: parameters: %w", j.Name, err)
	}
	return &store{name: storeName(dir, j.file()), head: append(head, '\n')}, nil
}

// errOtherHeading says that a store holds something else.
var errOtherHeading = errors.New("written by another build of this program or with other options")

// read returns the outcomes of a store and how many bytes of its file they
// take, heading included. A line that was cut off is left out.
func (s *store) read(name string) ([]record, int64, error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(b) == 0 {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if !bytes.HasPrefix(b, s.head) {
		return nil, 0, errOtherHeading
	}
	var records []record
	at := len(s.head)
	for {
		n := bytes.IndexByte(b[at:], '\n')
		if n < 0 {
			return records, int64(at), nil
		}
		var r record
		if err := json.Unmarshal(b[at:at+n], &r); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", name, err)
		}
		records = append(records, r)
		at += n + 1
	}
}

// open opens the file to go on with it and returns what it holds. A file of
// something else is renamed.
func (s *store) open() (records []record, aside bool, err error) {
	if err := os.MkdirAll(filepath.Dir(s.name), 0o755); err != nil {
		return nil, false, err
	}
	records, size, err := s.read(s.name)
	if errors.Is(err, errOtherHeading) {
		aside = true
		err = os.Rename(s.name, s.name+".old")
	}
	if err != nil {
		return nil, false, err
	}
	if s.f, err = os.OpenFile(s.name, os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return nil, false, err
	}
	if size == 0 {
		size = int64(len(s.head))
		_, err = s.f.WriteAt(s.head, 0)
	}
	err = errors.Join(err, s.f.Truncate(size))
	if err == nil {
		_, err = s.f.Seek(size, io.SeekStart)
	}
	return records, aside, err
}

// forget removes the file.
func (s *store) forget() error {
	if err := os.Remove(s.name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// add appends an outcome.
func (s *store) add(r record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = s.f.Write(append(b, '\n'))
	return err
}

func (s *store) close() error { return s.f.Close() }
