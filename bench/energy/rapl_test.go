package energy_test

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/bench/energy"
)

func set(root fstest.MapFS, zone, name, now string) {
	for file, text := range map[string]string{"name": name, "energy_uj": now, "max_energy_range_uj": "10000000"} {
		root[zone+"/"+file] = &fstest.MapFile{Data: []byte(text + "\n")}
	}
}

// Two packages, one of whose counters begins anew at 10 J; the part of a
// package and the whole board are not counted besides.
func TestMeterAddsPackages(t *testing.T) {
	root := fstest.MapFS{}
	set(root, "intel-rapl:0", "package-0", "9000000")
	set(root, "intel-rapl:0:0", "core", "0")
	set(root, "intel-rapl:1", "package-1", "500000")
	set(root, "intel-rapl:2", "psys", "0")
	m, err := energy.Open(root)
	require.NoError(t, err)
	set(root, "intel-rapl:0", "package-0", "2000000")
	set(root, "intel-rapl:0:0", "core", "7000000")
	set(root, "intel-rapl:1", "package-1", "750000")
	set(root, "intel-rapl:2", "psys", "7000000")
	j, err := m.Joules()
	require.NoError(t, err)
	require.InDelta(t, 3.25, j, 1e-9)
	set(root, "intel-rapl:1", "package-1", "1750000")
	j, err = m.Joules()
	require.NoError(t, err)
	require.InDelta(t, 4.25, j, 1e-9)
	set(root, "intel-rapl:1", "package-1", "many")
	_, err = m.Joules()
	require.ErrorContains(t, err, "intel-rapl:1")
}

func TestMeterAbsent(t *testing.T) {
	_, err := energy.Open(fstest.MapFS{})
	require.ErrorIs(t, err, energy.ErrAbsent)
	root := fstest.MapFS{}
	set(root, "dtpm", "dtpm", "0")
	_, err = energy.Open(root)
	require.ErrorIs(t, err, energy.ErrAbsent)
	set(root, "intel-rapl:0", "package-0", "0")
	delete(root, "intel-rapl:0/energy_uj")
	_, err = energy.Open(root)
	require.ErrorIs(t, err, fs.ErrNotExist)
}
