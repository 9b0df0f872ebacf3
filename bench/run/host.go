package main

import (
	"bufio"
	"maps"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gomptcp/gomptcp/bench/experiment"
)

// hostRecord is what differs from one run of the same units to the next.
type hostRecord struct {
	Name       string  `json:"name"`
	CPUSeconds float64 `json:"cpu_seconds"` // of all units, whenever they were run; garbage collection not counted
	Units      int     `json:"units"`
	// Measured are clock readings by case, means over the seeds.
	Measured map[string]map[string]float64 `json:"measured,omitempty"`
	// Energy says where Joules come from, or why there are none. Joules are what
	// all that ran on the machine used during the command, on all experiments.
	Energy   string  `json:"energy"`
	Joules   float64 `json:"joules,omitempty"`
	Command  string  `json:"command"`
	Date     string  `json:"date"`
	Commit   string  `json:"commit"`
	Modified bool    `json:"modified"` // the tree differs from the commit
	Go       string  `json:"go"`
	System   string  `json:"system"`
	CPU      string  `json:"cpu"`
	Cores    int     `json:"cores"`
}

func (r *runner) hostOf(j *job) *hostRecord {
	h := &hostRecord{
		Name: j.Name, Units: len(j.done), Measured: measured(j.done),
		Command: strings.Join(append([]string{"go run ./bench/run"}, r.options.command...), " "),
		Date:    r.begun.UTC().Format(time.RFC3339),
		Go:      runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH,
		CPU: cpuModel(), Cores: runtime.NumCPU(), Commit: r.commit, Modified: r.modified,
	}
	for _, rec := range j.done {
		h.CPUSeconds += rec.CPU
	}
	h.CPUSeconds = math.Round(h.CPUSeconds*1e3) / 1e3
	h.Energy, h.Joules = r.joules()
	return h
}

// joules reads the energy meter. It must be called from time to time, as the
// meter's counters are short.
func (r *runner) joules() (source string, used float64) {
	if r.noEnergy == nil {
		used, r.noEnergy = r.energy.Joules()
	}
	if r.noEnergy != nil {
		return "absent: " + r.noEnergy.Error(), 0
	}
	return "RAPL, processor packages", used
}

// measured returns the means of what units noted with SetHost.
func measured(records []record) map[string]map[string]float64 {
	values := make(map[string]map[string][]float64)
	for _, rec := range records {
		for _, key := range slices.Sorted(maps.Keys(rec.Host)) {
			if values[rec.Case] == nil {
				values[rec.Case] = make(map[string][]float64)
			}
			values[rec.Case][key] = append(values[rec.Case][key], rec.Host[key])
		}
	}
	means := make(map[string]map[string]float64)
	for name, keys := range values {
		means[name] = make(map[string]float64)
		for key, v := range keys {
			means[name][key] = experiment.Mean(v)
		}
	}
	return means
}

// revision asks git for the commit; "" if it does not know.
func revision() (commit string, modified bool) {
	out, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		return "", false
	}
	changes, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no").Output()
	return strings.TrimSpace(string(out)), err == nil && len(changes) > 0
}

// cpuModel returns the name of the processor where the system tells it.
func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if key, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
