package figure

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// colours are the palette: on light paper, on dark paper.
var colours = [...][2]string{
	{"#0072b2", "#56a9e0"}, // blue
	{"#c0620a", "#e69f00"}, // orange
	{"#00805d", "#2fc49b"}, // green
	{"#b5468a", "#e08fc0"}, // purple
	{"#2f93c4", "#8fd3f4"}, // sky
	{"#d13b1e", "#ff7b5a"}, // vermilion
	{"#5f6368", "#b8bcc2"}, // grey
	{"#857600", "#f0e442"}, // yellow
}

// dashes tell lines of one colour apart, in the order of their use.
var dashes = [...]string{"", "6 3", "2 2.5", "8 3 2 3", "1 4", "12 4"}

// slots is how many looks there are.
const slots = len(colours) * len(dashes)

// known are names that have a look of their own, each list by itself: what is
// likely to be compared has one of the first eight.
var known = [...][]string{
	{
		"default", "minrtt", "roundrobin", "sctc-planned", "sctc-optimal", "opportunistic-redundant", "tcp", "sctc-literal",
		"blest", "fsfs", "ecf", "minrtt-plain", "redundant", "linux", "single", "daps",
		"stms", "otias", "sttf", "dems", "qaware", "capacity", "jitter-aware",
		"weighted", "redundant-idle", "ada",
	},
	{
		"cubic", "lia", "olia", "balia", "dctcp", "mptcpd", "reno", "bbr",
		"coupled-bbr", "wvegas", "lia-exact", "mdtcp", "xmp", "ewtcp", "vegas", "lia-dctcp",
		"coupled", "semicoupled",
	},
	{"mptcp"},
}

// slot returns the look that a name has in every figure.
func slot(name string) int {
	name = strings.ToLower(name)
	for _, prefix := range [...]string{"path", "subflow"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			if n, err := strconv.Atoi(strings.TrimSpace(rest)); err == nil && n >= 0 {
				return n % slots
			}
		}
	}
	for _, list := range known {
		for i, k := range list {
			if name == k {
				return i
			}
		}
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	return int(h.Sum32() % uint32(len(colours)))
}

// looks gives each name of a panel its look. Where two would look alike the
// later one takes the next that is free.
func looks(names []string) []int {
	used := make(map[int]bool, len(names))
	out := make([]int, len(names))
	for i, name := range names {
		s := slot(name)
		for n := 0; used[s] && n < slots; n++ {
			s = (s + 1) % slots
		}
		used[s] = true
		out[i] = s
	}
	return out
}

func colourClass(slot int) string { return "c" + strconv.Itoa(slot%len(colours)) }
func dash(slot int) string        { return dashes[slot/len(colours)%len(dashes)] }

// Style is the style sheet of every figure. It follows the reader's choice of
// light or dark. A page that holds several figures needs it once.
func Style() string {
	var light, dark strings.Builder
	for i, c := range colours {
		n := strconv.Itoa(i)
		light.WriteString("--c" + n + ":" + c[0] + ";")
		dark.WriteString("--c" + n + ":" + c[1] + ";")
	}
	var b strings.Builder
	b.WriteString(".fig{" + light.String() + "--ink:#1d2126;--soft:#5b626b;--grid:#dfe3e8;--shade:#8b6f00;--paper:#ffffff}\n")
	b.WriteString("@media (prefers-color-scheme:dark){.fig{" + dark.String() + "--ink:#e6e9ed;--soft:#a4acb6;--grid:#363c44;--shade:#f0d060;--paper:#14171b}}\n")
	b.WriteString(".fig text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans',sans-serif;fill:var(--ink)}\n")
	b.WriteString(".fig .t{font-weight:600;font-size:15px}.fig .s{fill:var(--soft);font-size:12px}\n")
	b.WriteString(".fig .bg{fill:var(--paper)}.fig .g{stroke:var(--grid);fill:none}.fig .a{stroke:var(--soft);fill:none}\n")
	b.WriteString(".fig .l{fill:none;stroke-width:1.8;stroke-linejoin:round}.fig .e{stroke:var(--ink);stroke-width:1.2;fill:none}\n")
	b.WriteString(".fig .r{stroke:var(--soft);stroke-width:1.4;fill:none}.fig .sh{fill:var(--shade);opacity:.18}\n")
	for i := range colours {
		n := strconv.Itoa(i)
		b.WriteString(".fig .c" + n + "{stroke:var(--c" + n + ")}.fig .f" + n + "{fill:var(--c" + n + ")}\n")
	}
	return b.String()
}
