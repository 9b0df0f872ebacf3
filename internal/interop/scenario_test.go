//go:build linux

package interop

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/netstack"
)

// side is an end of a connection.
type side int

const (
	client side = iota
	server
)

func (s side) other() side { return 1 - s }

// scenario is one of Linux's self-tests of joins and addresses
// (mptcp_join.sh), with the kernel as one side: half of a transfer passes, then
// each step is taken and its counts awaited, then the rest passes. Addresses
// and endpoints of the kernel are numbered as links are.
type scenario struct {
	name   string
	kernel side

	family    family   // of the first link; 0 = IPv4
	links     []family // of further links of ours
	apart     bool     // each link leads to its own network only; else to all
	backup    int      // link that our host uses as a last resort; 0 = none
	addresses int      // of the kernel, those beyond our links on its loopback; 0 = one a link
	shape     netstack.Shape
	corrupt   int                // link on which a byte of payload is changed; 0 = none
	toUs      bool               // in this direction, else in the other
	limits    string             // of the kernel: subflows, addresses accepted; "" = "8 8"
	endpoints []string           // of the kernel: number and flags
	sysctl    []string           // of the kernel: name=value
	before    func(t *testing.T) // what else is to be done first
	mapped    bool               // the kernel, as client, dials IPv4 from a socket of IPv6
	config    mptcp.Config
	backlog   int          // of our listener
	listening func(r *rig) // what happens once it listens

	amount  int64 // of bytes that cross in each direction; 0 = 1 MiB
	steps   []step
	after   func(t *testing.T, s *session) // what must be at the end
	exact   bool                           // nothing may be repeated beyond what is wanted
	retried bool                           // joins that fail are tried again
	capture bool                           // tshark judges what crossed the links
}

// step is something that happens, and what comes of it.
type step struct {
	do       func(t *testing.T, s *session) // nil = nothing but the connection's own doing
	want     counted                        // since the step before
	subflows int                            // that our side can use then
	check    func(t *testing.T, s *session) // what else must be; nil = nothing
}

// session is a scenario's connection as its steps see it.
type session struct {
	*rig
	*scenario
	conn *mptcp.Conn // our side
}

// counted is what both sides count.
type counted [2]map[string]int

// joins are what comes of SYNs of the client with MP_JOIN: how many it sends,
// how many SYN/ACKs it gets, and how many joins the server lets in.
func joins(syn, synAck, ack int) counted {
	return counted{
		client: {"MPJoinSynTx": syn, "MPJoinSynAckRx": synAck},
		server: {"MPJoinSynRx": syn, "MPJoinAckRx": ack},
	}
}

// adds are addresses that a side announces and the other sends back.
func adds(by side, n int) counted {
	var c counted
	c[by] = map[string]int{"AddAddrTx": n, "EchoAdd": n}
	c[by.other()] = map[string]int{"AddAddr": n, "EchoAddTx": n}
	return c
}

// removes are addresses that a side withdraws, and the subflows that it ends
// for that reason.
func removes(by side, addresses, subflows int) counted {
	var c counted
	c[by] = map[string]int{"RmAddrTx": addresses, "RmSubflow": subflows}
	c[by.other()] = map[string]int{"RmAddr": addresses}
	return c
}

// prios are changes of a subflow's backup flag that a side sends.
func prios(by side, n int) counted {
	var c counted
	c[by] = map[string]int{"MPPrioTx": n}
	c[by.other()] = map[string]int{"MPPrioRx": n}
	return c
}

// count is a counter of one side.
func count(at side, name string, n int) counted {
	var c counted
	c[at] = map[string]int{name: n}
	return c
}

// and adds what else is counted.
func (c counted) and(o counted) counted {
	var sum counted
	for at := range sum {
		sum[at] = maps.Clone(c[at])
		if sum[at] == nil {
			sum[at] = map[string]int{}
		}
		for name, n := range o[at] {
			sum[at][name] += n
		}
	}
	return sum
}

// watched are the counters that must be as a scenario says, 0 if it says
// nothing.
var watched = []string{
	"MPJoinSynTx", "MPJoinSynRx", "MPJoinSynAckRx", "MPJoinAckRx", "MPJoinSynAckHMacFailure", "MPJoinAckHMacFailure",
	"MPJoinNoTokenFound", "AddAddr", "AddAddrTx", "EchoAdd", "EchoAddTx", "RmAddr", "RmAddrTx", "RmSubflow",
	"MPJoinSynBackupRx", "MPJoinSynAckBackupRx", "MPPrioTx", "MPPrioRx", "MPFailTx", "MPFailRx", "MPFastcloseTx", "MPFastcloseRx",
	"InfiniteMapTx", "InfiniteMapRx", "DataCsumErr", "DSSNotMatching",
	"MPCapableFallbackACK", "MPCapableFallbackSYNACK", "MPCapableDataFallback", "MPCapableSYNTXDrop",
}

// patience is how long a count may take to be reached.
const patience = 20 * time.Second

// repeats count what is sent again if no answer, or no proof that it arrived,
// comes within a retransmission timeout or before its subflow is gone: on a busy
// machine that happens.
var repeats = []string{"AddAddr", "AddAddrTx", "EchoAdd", "EchoAddTx", "RmAddr", "RmAddrTx", "MPPrioTx", "MPPrioRx"}

// sends bounds how often both sides send one of them: so we do REMOVE_ADDR and
// MP_PRIO, and Linux ADD_ADDR (its ADD_ADDR_RETRANS_MAX is 3).
const sends = 4

// mayRepeat reports whether a counter may be n where want is wanted.
func (sc *scenario) mayRepeat(name string, n, want int) bool {
	if sc.retried && name == "MPJoinSynTx" {
		return true
	}
	return !sc.exact && n <= sends*want && slices.Contains(repeats, name)
}

// mayLack is mayRepeat for less than wanted: of echoes the kernel has one that
// waits at most, so that on a busy machine the next takes its place.
func (sc *scenario) mayLack(whose, name string, n, want int) bool {
	return sc.exact && whose == "kernel" && name == "EchoAddTx" && 2*n >= want
}

// differences names the watched counters of both sides that are not as wanted.
func (s *session) differences(t *testing.T, want counted) string {
	t.Helper()
	var b strings.Builder
	ours, theirs := s.host.Counters().MIB, kernelCounters(t)
	for _, name := range watched {
		for _, c := range []struct {
			whose   string
			n, want int
		}{
			{"kernel", theirs[name], want[s.kernel][name]},
			{"our", int(ours[name]), want[s.kernel.other()][name]},
		} {
			if c.n < c.want && !s.mayLack(c.whose, name, c.n, c.want) || c.n > c.want && !s.mayRepeat(name, c.n, c.want) {
				fmt.Fprintf(&b, "%s %s is %d, want %d; ", c.whose, name, c.n, c.want)
			}
		}
	}
	return b.String()
}

// await waits until both sides count what is wanted and our connection has so
// many subflows.
func (s *session) await(t *testing.T, want counted, subflows int) {
	t.Helper()
	var wrong string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		wrong = s.differences(t, want)
		if n := s.conn.Info().Subflows; n != subflows {
			wrong += fmt.Sprintf("%d subflows, want %d", n, subflows)
		}
		if wrong == "" {
			return
		}
	}
	logSubflows(t, s.conn)
	require.FailNow(t, wrong)
}

// quick is the shape of links whose speed is of no interest.
var quick = netstack.Shape{Rate: 100e6, Delay: time.Millisecond, QueueBytes: mebi}

// play runs scenarios, several at a time.
func play(t *testing.T, scenarios []scenario) {
	for _, sc := range scenarios {
		t.Run(sc.title(), func(t *testing.T) {
			t.Parallel()
			isolated(t, time.Minute, sc.run)
		})
	}
}

// title is a scenario's name with who is who.
func (sc *scenario) title() string {
	if sc.kernel == server {
		return sc.name + ", kernel serves"
	}
	return sc.name + ", we serve"
}

func (sc *scenario) run(t *testing.T) {
	r := sc.build(t)
	amount := cmp.Or(sc.amount, mebi)
	s := &session{rig: r, scenario: sc}
	var total counted
	var theirs halfCloser // the client's end
	var done <-chan received
	if sc.kernel == server {
		done = kernelServe(t, kernelListen(t, true), true, amount)
		s.conn = r.dial(t, &sc.config)
		theirs = s.conn
	} else {
		var taken <-chan *mptcp.Conn
		taken, done, _ = r.serveWith(t, &mptcp.ListenConfig{Config: &sc.config, Backlog: sc.backlog}, amount)
		if sc.listening != nil {
			sc.listening(r)
		}
		if sc.mapped {
			theirs = kernelDialMapped(t, r.family.addr(1, ours))
		} else {
			theirs = kernelDial(t, true, at(r.family.addr(1, ours)))
		}
		s.conn = <-taken
	}
	within(t, theirs, 50*time.Second)
	defer logSubflows(t, s.conn)
	exchangeCutting(t, theirs, done, amount, func() {
		for i, st := range sc.steps {
			if st.do != nil {
				st.do(t, s)
			}
			total = total.and(st.want)
			t.Logf("step %d", i+1)
			s.await(t, total, st.subflows)
			if st.check != nil {
				st.check(t, s)
			}
		}
	})
	require.Empty(t, s.differences(t, total), "at the end")
	require.Empty(t, s.conn.Info().Fallback)
	if sc.after != nil {
		sc.after(t, s)
	}
	logCounters(t, kernelCounters(t))
	if sc.capture {
		require.NoError(t, r.host.Close())
		require.NoError(t, r.pcap.Flush())
		require.Empty(t, tshark(t, r.capture, malformed+" || "+suspicious), "malformed packets, or with MPTCP warnings")
	}
}

// build makes a scenario's links and tells the kernel its part.
func (sc *scenario) build(t *testing.T) *rig {
	t.Helper()
	for _, line := range sc.sysctl {
		run(t, "sysctl", "-w", line)
	}
	first := max(sc.family, ipv4)
	r := emptyRig(t, first)
	r.mesh = !sc.apart
	families := append([]family{first}, sc.links...)
	for i, f := range families {
		spec := linkSpec{family: f, shape: cmp.Or(sc.shape, quick), backup: i+1 == sc.backup}
		if i+1 == sc.corrupt {
			spec.box = corrupting(sc.toUs, 100<<10)
		}
		r.addLink(t, spec)
	}
	for i := len(families) + 1; i <= sc.addresses; i++ {
		families = append(families, first)
		addKernelAddress(t, first.addr(i, kernel), first.addr(i, kernel).BitLen(), "lo")
	}
	if sc.limits != "" {
		n := strings.Fields(sc.limits)
		ip(t, fmt.Sprintf("mptcp limits set subflows %s add_addr_accepted %s", n[0], n[1]))
	}
	if sc.before != nil {
		sc.before(t)
	}
	for _, e := range sc.endpoints {
		addEndpoint(t, families, e)
	}
	return r
}

// addEndpoint adds an endpoint of the kernel: "2 signal" is its address 2,
// under that id, announced. Addresses that it has not got are of the first
// family.
func addEndpoint(t *testing.T, families []family, endpoint string) {
	t.Helper()
	var id int
	number, flags, _ := strings.Cut(endpoint, " ")
	_, err := fmt.Sscan(number, &id)
	require.NoError(t, err)
	f := families[0]
	if id <= len(families) {
		f = families[id-1]
	}
	ip(t, fmt.Sprintf("mptcp endpoint add %v id %d %s", f.addr(id, kernel), id, flags))
}

// kernelDoes is a step of the kernel's: the rest of a command line after
// "ip mptcp".
func kernelDoes(lines ...string) func(*testing.T, *session) {
	return func(t *testing.T, _ *session) {
		for _, line := range lines {
			ip(t, "mptcp "+line)
		}
	}
}

// linkGoes is a step of our host's: it notices that links go up or down.
func linkGoes(up bool, links ...int) func(*testing.T, *session) {
	return func(t *testing.T, s *session) {
		for _, i := range links {
			require.NoError(t, s.host.SetLinkUp(s.rig.links[i-1].Name(), up))
		}
	}
}

// v4 are n further links.
func v4(n int) []family { return slices.Repeat([]family{ipv4}, n) }
