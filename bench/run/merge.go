package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gomptcp/gomptcp/bench/experiment"
)

// manifest says what a shard is a part of.
type manifest struct {
	Experiments []string `json:"experiments"`
	Profile     string   `json:"profile"`
	Quick       bool     `json:"quick"`
	Seeds       int      `json:"seeds"`
	Shards      int      `json:"shards"`
}

func manifestName(dir string) string { return filepath.Join(dir, unitsDir, "shard.json") }

func writeManifest(o *options) error {
	m := manifest{Profile: o.Profile.String(), Quick: o.Quick, Seeds: o.seeds, Shards: o.shards}
	for _, e := range o.experiments {
		m.Experiments = append(m.Experiments, e.Name)
	}
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return writeFile(manifestName(o.out), append(b, '\n'))
}

// merge copies the outcomes of all shards to the directory of results and sets
// the options to those of the shards.
func merge(o *options) error {
	var first []byte
	for _, dir := range o.merge {
		b, err := os.ReadFile(manifestName(dir))
		switch {
		case err != nil:
			return fmt.Errorf("%s holds no shard: %w", dir, err)
		case first == nil:
			first = b
		case string(b) != string(first):
			return fmt.Errorf("%s and %s are shards of different runs", o.merge[0], dir)
		}
	}
	var m manifest
	if err := json.Unmarshal(first, &m); err != nil {
		return fmt.Errorf("%s: %w", manifestName(o.merge[0]), err)
	}
	var err error
	if o.Profile, err = experiment.ProfileByName(m.Profile); err != nil {
		return err
	}
	o.Quick, o.seeds = m.Quick, m.Seeds
	o.experiments = nil
	for _, name := range m.Experiments {
		list, err := experiment.Select(name)
		if err != nil {
			return err
		}
		o.experiments = append(o.experiments, list...)
	}
	for _, e := range o.experiments {
		if err := mergeStores(o, e); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	return nil
}

// mergeStores makes one store of those of the shards.
func mergeStores(o *options, e *experiment.Experiment) error {
	s, err := newStore(o.out, &job{Experiment: e, options: o.Options, plan: e.Plan(o.Options)})
	if err != nil {
		return err
	}
	var records []record
	for _, dir := range o.merge {
		name := storeName(dir, fileName(e.Name, o.Profile))
		if same(name, s.name) {
			return fmt.Errorf("-out is one of the shards")
		}
		more, _, err := s.read(name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		records = append(records, more...)
	}
	if err := os.MkdirAll(filepath.Dir(s.name), 0o755); err != nil {
		return err
	}
	f, err := os.Create(s.name)
	if err != nil {
		return err
	}
	s.f = f
	_, err = f.Write(s.head)
	for _, rec := range records {
		err = errors.Join(err, s.add(rec))
	}
	return errors.Join(err, f.Close())
}

func same(a, b string) bool {
	x, errX := filepath.Abs(a)
	y, errY := filepath.Abs(b)
	return errX == nil && errY == nil && x == y
}
