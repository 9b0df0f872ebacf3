package wire_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

const synOptions = wire.OptMSS | wire.OptWScale | wire.OptSACKPermitted | wire.OptFastOpen

// all is every option of an OptionSet, one at a time.
var all = func() (s []wire.OptionSet) {
	for o := wire.OptMSS; o <= wire.OptMPTCPRst; o <<= 1 {
		s = append(s, o)
	}
	return s
}()

// mayShare says which two options may stand in one segment, by RFC 8684: MP_CAPABLE
// replaces the DSS (Section 3.1), MP_JOIN precedes all others (3.2), MP_FAIL goes
// with a RST or an infinite mapping (3.7), MP_FASTCLOSE may explain a RST (3.5).
func mayShare(a, b wire.OptionSet) bool {
	if a > b {
		a, b = b, a
	}
	syn := func(o wire.OptionSet) bool { return synOptions&o != 0 }
	mptcp := func(o wire.OptionSet) bool { return wire.OptMPTCP&o != 0 }
	switch {
	case a == wire.OptTimestamps || b == wire.OptTimestamps:
		return true
	case a == wire.OptFastOpen && b == wire.OptMPJoin:
		// RFC 8684, Appendix B.2: "TFO data is always only sent on the initial
		// subflow".
		return false
	case syn(a) && mptcp(b):
		return b == wire.OptMPCapable || b == wire.OptMPJoin
	case a == wire.OptSACK || b == wire.OptSACK:
		return !syn(a) && !syn(b)
	case !mptcp(a) || !mptcp(b):
		return true
	}
	switch a | b {
	case wire.OptDSS | wire.OptAddAddr, wire.OptDSS | wire.OptRemoveAddr, wire.OptDSS | wire.OptMPPrio,
		wire.OptDSS | wire.OptMPFail, wire.OptMPPrio | wire.OptAddAddr, wire.OptMPPrio | wire.OptRemoveAddr,
		wire.OptMPFail | wire.OptMPTCPRst, wire.OptFastClose | wire.OptMPTCPRst:
		return true
	}
	return false
}

var (
	ipv4 = netip.MustParseAddr("10.0.0.2")
	ipv6 = netip.MustParseAddr("2001:db8::2")
)

// profiles are Options with every field set: small, middling and large forms.
func profiles() map[string]wire.Options {
	small := wire.Options{
		MSS: 536, WScale: 1, NumSACK: 1, TSVal: 1, TSEcr: 2,
		Capable:    wire.MPCapable{Version: 1, Flags: wire.CapHMACSHA256},
		Join:       wire.MPJoin{Form: wire.JoinSYN, AddrID: 1, Token: 2, Nonce: 3},
		DSS:        wire.DSS{Flags: wire.DSSAck, Ack: 9},
		AddAddr:    wire.AddAddr{Echo: true, ID: 2, Addr: ipv4},
		RemoveAddr: wire.RemoveAddr{N: 1, IDs: [37]uint8{2}},
		FailDSN:    4,
	}
	for i := range small.SACK {
		small.SACK[i] = wire.SACKBlock{Left: 100, Right: 200}
	}
	middle := small
	middle.NumSACK = 3
	middle.FastOpen = wire.FastOpen{Len: 8}
	middle.Capable.Keys = 1
	middle.Join = wire.MPJoin{Form: wire.JoinSYNACK, Nonce: 3}
	middle.DSS = wire.DSS{Flags: wire.DSSAck | wire.DSSMap, Ack: 9, DSN: 8, SSN: 1, Len: 2}
	middle.AddAddr = wire.AddAddr{ID: 2, Addr: ipv4}
	middle.RemoveAddr = wire.RemoveAddr{N: 3, IDs: [37]uint8{2, 9, 3}}
	large := middle
	large.NumSACK = 4
	large.FastOpen = wire.FastOpen{Len: 16}
	large.Capable = wire.MPCapable{Version: 1, Keys: 2, HasData: true, HasChecksum: true, DataLen: 5}
	large.Join = wire.MPJoin{Form: wire.JoinACK}
	large.DSS.Flags |= wire.DSSAck8 | wire.DSSDSN8 | wire.DSSFin
	large.DSS.HasChecksum = true
	large.AddAddr = wire.AddAddr{ID: 2, Addr: ipv6, Port: 80}
	large.RemoveAddr.N = 37
	ackOnly := large
	ackOnly.DSS = wire.DSS{Flags: wire.DSSAck | wire.DSSAck8, Ack: 9}
	ackOnly.AddAddr.Port = 0
	return map[string]wire.Options{"small": small, "middle": middle, "large": large, "ack only": ackOnly}
}

// Every combination of options in several forms, with and without payload: the
// header has at most 60 bytes and whole words, says exactly what Fit kept, holds
// no two options that must not share, and nothing was left out without need.
// Guards: fit's count of the room left, and conflicts.
func TestFitAndBuildEveryCombination(t *testing.T) {
	for name, profile := range profiles() {
		for _, payload := range [][][]byte{nil, {[]byte("x")}} {
			for has := wire.OptionSet(0); has < 1<<len(all); has++ {
				checkFit(t, name, profile, has, payload)
				if t.Failed() {
					return
				}
			}
		}
	}
}

func checkFit(t *testing.T, name string, profile wire.Options, has wire.OptionSet, payload [][]byte) {
	asked := wire.Segment{Options: profile, Payload: payload}
	asked.Has = has
	var b [wire.MaxHeader]byte
	n := wire.Build(&b, &asked)
	kept := asked.Options
	dropped := wire.Fit(&kept, payload != nil)

	var got wire.Segment
	drop := wire.Parse(b[:n], &got)
	switch {
	case n < wire.HeaderSize || n > wire.MaxHeader || n%4 != 0:
		t.Errorf("%s %v: header length %d", name, has, n)
	case drop != reason.DropNone || !got.Options.Equal(&kept):
		t.Errorf("%s %v: built %v, kept %v", name, has, &got.Options, &kept)
	case kept.Has|dropped != has || kept.Has&dropped != 0:
		t.Errorf("%s %v: kept %v, dropped %v", name, has, kept.Has, dropped)
	case kept.Size() != n-wire.HeaderSize:
		t.Errorf("%s %v: size %d, built %d", name, has, kept.Size(), n-wire.HeaderSize)
	}
	for i, a := range all {
		for _, o := range all[:i] {
			if kept.Has&a != 0 && kept.Has&o != 0 && !mayShare(a, o) {
				t.Errorf("%s %v: kept %v beside %v", name, has, a, o)
			}
		}
		if dropped&a == 0 {
			continue
		}
		barred := false
		for _, o := range all {
			barred = barred || kept.Has&o != 0 && !mayShare(a, o)
		}
		more := kept
		more.Has |= a
		more.NumSACK = max(more.NumSACK, 1)
		if !barred && more.Size() <= wire.MaxOptions {
			t.Errorf("%s %v: dropped %v without need, kept %v", name, has, a, kept.Has)
		}
	}
}

func TestFitDecides(t *testing.T) {
	const (
		ts, sack = wire.OptTimestamps, wire.OptSACK
		ack      = wire.DSSAck | wire.DSSAck8
		mapping  = wire.DSSMap | wire.DSSDSN8
	)
	for name, c := range map[string]struct {
		profile string
		has     wire.OptionSet
		dss     wire.DSSFlags
		payload bool
		kept    wire.OptionSet
		sacks   uint8
	}{
		"the largest DSS and timestamps fill the room":    {"large", ts | wire.OptDSS, ack | mapping, true, ts | wire.OptDSS, 0},
		"SACK gives way to the largest DSS":               {"large", ts | sack | wire.OptDSS, ack | mapping, true, ts | wire.OptDSS, 0},
		"SACK is shortened beside a DATA_ACK":             {"ack only", ts | sack | wire.OptDSS, ack, false, ts | sack | wire.OptDSS, 1},
		"SACK is shortened beside timestamps":             {"large", ts | sack, 0, false, ts | sack, 3},
		"four blocks need the room for themselves":        {"large", sack, 0, false, sack, 4},
		"signals give way to SACK on data":                {"middle", ts | sack | wire.OptAddAddr, 0, true, ts | sack, 3},
		"SACK gives way to signals without data":          {"middle", ts | sack | wire.OptAddAddr, 0, false, ts | sack | wire.OptAddAddr, 1},
		"ADD_ADDR waits for a segment without mapping":    {"middle", ts | wire.OptDSS | wire.OptAddAddr, ack | mapping, true, ts | wire.OptDSS, 0},
		"ADD_ADDR shares with a short DATA_ACK":           {"middle", ts | wire.OptDSS | wire.OptAddAddr, wire.DSSAck, false, ts | wire.OptDSS | wire.OptAddAddr, 0},
		"a DATA_ACK gives way to an IPv6 ADD_ADDR":        {"ack only", ts | wire.OptDSS | wire.OptAddAddr, ack, false, ts | wire.OptAddAddr, 0},
		"a DATA_FIN does not":                             {"ack only", ts | wire.OptDSS | wire.OptAddAddr, mapping | wire.DSSFin, false, ts | wire.OptDSS, 0},
		"an IPv6 ADD_ADDR with port: not with timestamps": {"large", ts | wire.OptAddAddr, 0, false, ts, 0},
		"but without them":                                {"large", wire.OptAddAddr, 0, false, wire.OptAddAddr, 0},
		"MP_CAPABLE replaces the DSS":                     {"large", ts | wire.OptMPCapable | wire.OptDSS, mapping, true, ts | wire.OptMPCapable, 0},
		"MP_JOIN never stands beside a DSS":               {"large", ts | wire.OptMPJoin | wire.OptDSS, ack, false, ts | wire.OptMPJoin, 0},
		"MP_FASTCLOSE and MP_TCPRST share a RST":          {"large", ts | wire.OptFastClose | wire.OptMPTCPRst | wire.OptDSS, ack, false, ts | wire.OptFastClose | wire.OptMPTCPRst, 0},
		"MP_FAIL and MP_TCPRST share a RST":               {"large", ts | wire.OptMPFail | wire.OptMPTCPRst, 0, false, ts | wire.OptMPFail | wire.OptMPTCPRst, 0},
		"a SYN/ACK with all options and MP_JOIN": {
			"middle", synOptions&^wire.OptFastOpen | ts | wire.OptMPJoin, 0, false,
			synOptions&^wire.OptFastOpen | ts | wire.OptMPJoin, 0,
		},
		"fast open is the first to leave a SYN": {
			"middle", synOptions | ts | wire.OptMPCapable, 0, true,
			synOptions&^wire.OptFastOpen | ts | wire.OptMPCapable, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := profiles()[c.profile]
			o.Has, o.DSS.Flags, o.DSS.HasChecksum = c.has, c.dss, c.dss == ack|mapping
			dropped := wire.Fit(&o, c.payload)
			require.Equal(t, c.kept.String(), o.Has.String())
			require.Equal(t, (c.has &^ c.kept).String(), dropped.String())
			require.Equal(t, c.sacks, o.NumSACK)
		})
	}
}

// Options whose fields have no form on the wire are not sent.
func TestFitDropsWhatHasNoForm(t *testing.T) {
	for name, o := range map[string]wire.Options{
		"sack without blocks":       {Has: wire.OptSACK},
		"odd cookie":                {Has: wire.OptFastOpen, FastOpen: wire.FastOpen{Len: 5}},
		"cookie too long":           {Has: wire.OptFastOpen, FastOpen: wire.FastOpen{Len: 200}},
		"capable with three keys":   {Has: wire.OptMPCapable, Capable: wire.MPCapable{Version: 1, Keys: 3}},
		"capable data without keys": {Has: wire.OptMPCapable, Capable: wire.MPCapable{Version: 1, HasData: true}},
		"capable of version 16":     {Has: wire.OptMPCapable, Capable: wire.MPCapable{Version: 16}},
		"join without form":         {Has: wire.OptMPJoin},
		"join of unknown form":      {Has: wire.OptMPJoin, Join: wire.MPJoin{Form: 4}},
		"empty dss":                 {Has: wire.OptDSS},
		"data_fin without mapping":  {Has: wire.OptDSS, DSS: wire.DSS{Flags: wire.DSSFin | wire.DSSAck8}},
		"add_addr without address":  {Has: wire.OptAddAddr},
		"remove_addr without ids":   {Has: wire.OptRemoveAddr},
		"remove_addr of 38 ids":     {Has: wire.OptRemoveAddr, RemoveAddr: wire.RemoveAddr{N: 38}},
	} {
		t.Run(name, func(t *testing.T) {
			var b [wire.MaxHeader]byte
			require.Equal(t, wire.HeaderSize, wire.Build(&b, &wire.Segment{Options: o}))
			has := o.Has
			require.Equal(t, has, wire.Fit(&o, false))
			require.Zero(t, o.Has)
		})
	}
}

// Every cookie length on every SYN and SYN/ACK: the option stands there exactly
// where it fits beside what the others take, counted by hand, and never costs
// another option its place.
func TestFitCookieOnEverySYN(t *testing.T) {
	for _, keys := range []int{-1, 0, 1} { // no MP_CAPABLE; as on a SYN; as on a SYN/ACK
		for _, others := range []struct {
			has wire.OptionSet
			n   int
		}{
			{wire.OptMSS, 4},
			{wire.OptMSS | wire.OptWScale, 8},
			{wire.OptMSS | wire.OptSACKPermitted | wire.OptWScale, 12},
			{wire.OptMSS | wire.OptTimestamps, 16},
			{wire.OptMSS | wire.OptTimestamps | wire.OptWScale, 20},
			{wire.OptMSS | wire.OptTimestamps | wire.OptSACKPermitted | wire.OptWScale, 20},
		} {
			for n := 0; n <= 16; n += 2 {
				if n == 2 {
					continue // no cookie has two bytes
				}
				o := wire.Options{Has: others.has | wire.OptFastOpen, MSS: 1460, FastOpen: wire.FastOpen{Len: uint8(n)}}
				used := others.n
				if keys >= 0 {
					o.Has |= wire.OptMPCapable
					o.Capable = wire.MPCapable{Version: 1, Flags: wire.CapHMACSHA256, Keys: uint8(keys)}
					used += 4 + 8*keys
				}
				fits := used+(2+n+3)/4*4 <= 40
				for _, payload := range []bool{false, true} {
					p := o
					dropped := wire.Fit(&p, payload)
					require.Equal(t, !fits, dropped == wire.OptFastOpen, "%v, %d keys, %d bytes", &o, keys, n)
					require.Equal(t, fits, dropped == 0, "%v, %d keys, %d bytes", &o, keys, n)
				}
			}
		}
	}
	all := wire.OptMSS | wire.OptTimestamps | wire.OptSACKPermitted | wire.OptWScale | wire.OptMPCapable
	for _, c := range []struct {
		name         string
		without      wire.OptionSet
		keys         uint8
		largest, not int
	}{
		{"SYN", 0, 0, 14, 16},
		{"SYN without timestamps", wire.OptTimestamps, 0, 16, 18},
		{"SYN/ACK", 0, 1, 6, 8},
		{"SYN/ACK without timestamps", wire.OptTimestamps, 1, 14, 16},
		{"SYN/ACK without MP_CAPABLE", wire.OptMPCapable, 1, 16, 18},
	} {
		for n, want := range map[int]wire.OptionSet{c.largest: 0, c.not: wire.OptFastOpen} {
			o := wire.Options{Has: all&^c.without | wire.OptFastOpen, FastOpen: wire.FastOpen{Len: uint8(n)}}
			o.Capable = wire.MPCapable{Version: 1, Keys: c.keys}
			require.Equal(t, want, wire.Fit(&o, true), "%s, %d bytes", c.name, n)
		}
	}
}

func TestDSSLen(t *testing.T) {
	// RFC 8684, Section 3.3: "The maximum length of this option, with all flags
	// set, is 28 octets."
	require.Equal(t, 28, wire.DSSLen(0x1f, true))
	require.Equal(t, 26, wire.DSSLen(0x1f, false))
	require.Equal(t, 8, wire.DSSLen(wire.DSSAck, true))
	require.Equal(t, 14, wire.DSSLen(wire.DSSMap, false))
	require.Zero(t, wire.DSSLen(wire.DSSAck8|wire.DSSDSN8|wire.DSSFin, true))
}
