// Package energy reads what the processor packages of a machine have used, from
// the counters that Linux shows of Intel's and AMD's Running Average Power Limit
// (Documentation/power/powercap/powercap.rst).
package energy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

// ErrAbsent says that a machine shows no counters: it is a virtual one, has
// another processor, or another system.
var ErrAbsent = errors.New("no RAPL counters of processor packages")

// System returns where Linux shows the counters.
func System() fs.FS { return os.DirFS("/sys/class/powercap") }

// Meter adds up the counters of all processor packages. They count all that
// runs on the machine. A Meter is not safe for concurrent use.
type Meter struct {
	root  fs.FS
	zones []zone
}

// zone is the counter of one package, in microjoules.
type zone struct {
	dir  string
	last uint64
	most uint64 // after which it begins at 0 again
	used uint64 // since Open
}

// Open finds the counters below root. Without any the error is ErrAbsent;
// where they are for root alone to read, as is usual, it is fs.ErrPermission.
func Open(root fs.FS) (*Meter, error) {
	m := &Meter{root: root}
	dirs, err := fs.ReadDir(root, ".")
	if err != nil {
		return nil, ErrAbsent
	}
	for _, d := range dirs {
		name, err := fs.ReadFile(root, path.Join(d.Name(), "name"))
		if err != nil || !strings.HasPrefix(string(name), "package-") {
			continue // a part of a package, or all of the board
		}
		z := zone{dir: d.Name()}
		if z.most, err = m.read(z.dir, "max_energy_range_uj"); err != nil {
			return nil, err
		}
		if z.last, err = m.read(z.dir, "energy_uj"); err != nil {
			return nil, err
		}
		m.zones = append(m.zones, z)
	}
	if len(m.zones) == 0 {
		return nil, ErrAbsent
	}
	return m, nil
}

func (m *Meter) read(dir, file string) (uint64, error) {
	text, err := fs.ReadFile(m.root, path.Join(dir, file))
	if err != nil {
		return 0, fmt.Errorf("energy: %w", err)
	}
	v, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("energy: %s of %s: %w", file, dir, err)
	}
	return v, nil
}

// Joules returns what was used since Open. Counters begin anew after some 260
// kJ, 40 minutes at 100 W: it must be called more often than that.
func (m *Meter) Joules() (float64, error) {
	sum := 0.0
	for i := range m.zones {
		z := &m.zones[i]
		now, err := m.read(z.dir, "energy_uj")
		if err != nil {
			return 0, err
		}
		if now < z.last {
			z.used += z.most - z.last + now
		} else {
			z.used += now - z.last
		}
		z.last = now
		sum += float64(z.used) / 1e6
	}
	return sum, nil
}
