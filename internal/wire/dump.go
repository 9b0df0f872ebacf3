package wire

import (
	"encoding/hex"
	"net/netip"
	"strconv"
)

// dump builds a line of text. It is for tests and traces and may allocate.
type dump []byte

func (d dump) text(s string) dump     { return append(d, s...) }
func (d dump) number(n uint64) dump   { return strconv.AppendUint(d, n, 10) }
func (d dump) bytes(b []byte) dump    { return hex.AppendEncode(d, b) }
func (d dump) hex16(n uint16) dump    { return d.bytes([]byte{byte(n >> 8), byte(n)}) }
func (d dump) hex32(n uint32) dump    { return d.hex16(uint16(n >> 16)).hex16(uint16(n)) }
func (d dump) addr(a netip.Addr) dump { return a.AppendTo(d) }
func (d dump) when(b bool, s string) dump {
	if b {
		return d.text(s)
	}
	return d
}

// String returns the segment on one line, such as
//
//	10.0.0.1:1000 > 10.0.0.2:80 [S.] seq 1 ack 2 win 65535 len 0 <mss 1460, mptcp capable v1 [H]>
func (s *Segment) String() string {
	d := make(dump, 0, 160)
	d = s.Src.AppendTo(d)
	d = d.text(" > ")
	d = s.Dst.AppendTo(d)
	d = d.text(" [").text(s.Flags.String()).text("] seq ").number(uint64(s.Seq))
	if s.Flags&ACK != 0 {
		d = d.text(" ack ").number(uint64(s.Ack))
	}
	d = d.text(" win ").number(uint64(s.Wnd))
	if s.Flags&URG != 0 {
		d = d.text(" urg ").number(uint64(s.Urgent))
	}
	d = d.text(" len ").number(uint64(s.PayloadLen()))
	if s.SegSize > 0 {
		d = d.text(" in ").number(uint64(s.SegSize))
	}
	switch s.ECN {
	case ECT0:
		d = d.text(" ect0")
	case ECT1:
		d = d.text(" ect1")
	case CE:
		d = d.text(" ce")
	}
	if s.Has|s.Bad != 0 {
		d = d.text(" <").text(s.Options.String()).text(">")
	}
	return string(d)
}

// flagLetters are tcpdump's, by bit.
const flagLetters = "FSRP.UEW"

// String returns tcpdump's letters for the flags, such as "S." for a SYN/ACK,
// or "none".
func (f Flags) String() string {
	var d dump
	for i := range len(flagLetters) {
		if f&(1<<i) != 0 {
			d = append(d, flagLetters[i])
		}
	}
	if len(d) == 0 {
		return "none"
	}
	return string(d)
}

// optionNames are the words for single options, by bit.
var optionNames = [...]string{
	"mss", "wscale", "sack-permitted", "sack", "ts", "fastopen",
	"mptcp capable", "mptcp join", "mptcp dss", "mptcp add-addr", "mptcp remove-addr",
	"mptcp prio", "mptcp fail", "mptcp fastclose", "mptcp rst",
}

// String returns the names of the options in the set, separated by commas.
func (s OptionSet) String() string {
	var d dump
	for i, name := range optionNames {
		if s&(1<<i) != 0 {
			d = d.when(len(d) > 0, ", ").text(name)
		}
	}
	return string(d)
}

// String returns the options, in the order of their bits, separated by commas;
// malformed ones by name.
func (o *Options) String() string {
	d := make(dump, 0, 96)
	for i, name := range optionNames {
		opt := OptionSet(1) << i
		switch {
		case o.Has&opt != 0:
			d = d.when(len(d) > 0, ", ").text(name)
			d = o.dump(d, opt)
		case o.Bad&opt != 0:
			d = d.when(len(d) > 0, ", ").text("bad ").text(name)
		}
	}
	return string(d)
}

// dump adds the fields of one option.
func (o *Options) dump(d dump, opt OptionSet) dump {
	switch opt {
	case OptMSS:
		return d.text(" ").number(uint64(o.MSS))
	case OptWScale:
		return d.text(" ").number(uint64(o.WScale))
	case OptSACK:
		for _, b := range o.SACK[:o.sackBlocks()] {
			d = d.text(" ").number(uint64(b.Left)).text(":").number(uint64(b.Right))
		}
		return d
	case OptTimestamps:
		return d.text(" ").number(uint64(o.TSVal)).text("/").number(uint64(o.TSEcr))
	case OptFastOpen:
		if o.FastOpen.Len == 0 {
			return d.text(" request")
		}
		return d.text(" ").bytes(o.FastOpen.Cookie[:min(int(o.FastOpen.Len), len(o.FastOpen.Cookie))])
	case OptMPCapable:
		return o.Capable.dump(d)
	case OptMPJoin:
		return o.Join.dump(d)
	case OptDSS:
		return o.DSS.dump(d)
	case OptAddAddr:
		return o.AddAddr.dump(d)
	case OptRemoveAddr:
		for _, id := range o.RemoveAddr.IDs[:min(int(o.RemoveAddr.N), len(o.RemoveAddr.IDs))] {
			d = d.text(" ").number(uint64(id))
		}
		return d
	case OptMPPrio:
		return d.when(o.PrioBackup, " backup")
	case OptMPFail:
		return d.text(" dsn ").number(uint64(o.FailDSN))
	case OptFastClose:
		return d.text(" key ").bytes(o.FastClose[:])
	case OptMPTCPRst:
		return d.when(o.TCPRst.Transient, " transient").text(" (").text(o.TCPRst.Reason.String()).text(")")
	}
	return d
}

// dump shows the flags as the letters that RFC 8684 gives them.
func (c *MPCapable) dump(d dump) dump {
	d = d.text(" v").number(uint64(c.Version)).text(" [")
	for i := range 8 {
		if c.Flags&(0x80>>i) != 0 {
			d = append(d, byte('A'+i))
		}
	}
	d = d.text("]")
	if c.Keys >= 1 {
		d = d.text(" key ").bytes(c.SenderKey[:])
	}
	if c.Keys >= 2 {
		d = d.text(" peer ").bytes(c.ReceiverKey[:])
	}
	if c.HasData {
		d = d.text(" len ").number(uint64(c.DataLen))
		if c.HasChecksum {
			d = d.text(" csum ").hex16(c.Checksum)
		}
	}
	return d
}

func (j *MPJoin) dump(d dump) dump {
	if j.Form == JoinACK {
		return d.text(" ack hmac ").bytes(j.HMAC[:])
	}
	if j.Form == JoinSYN {
		d = d.text(" syn id ").number(uint64(j.AddrID)).text(" token ").hex32(j.Token)
	} else {
		d = d.text(" syn/ack id ").number(uint64(j.AddrID)).text(" hmac ").bytes(j.HMAC[:lenShortHMAC])
	}
	return d.text(" nonce ").hex32(j.Nonce).when(j.Backup, " backup")
}

// dump says of each number whether 4 or 8 bytes of it travel.
func (s *DSS) dump(d dump) dump {
	f := s.Flags.Known()
	switch {
	case f&DSSAck8 != 0:
		d = d.text(" ack8 ").number(s.Ack)
	case f&DSSAck != 0:
		d = d.text(" ack4 ").number(uint64(uint32(s.Ack)))
	}
	if f&DSSMap == 0 {
		return d
	}
	if f&DSSDSN8 != 0 {
		d = d.text(" dsn8 ").number(s.DSN)
	} else {
		d = d.text(" dsn4 ").number(uint64(uint32(s.DSN)))
	}
	d = d.text(" ssn ").number(uint64(s.SSN)).text(" len ").number(uint64(s.Len))
	if s.HasChecksum {
		d = d.text(" csum ").hex16(s.Checksum)
	}
	return d.when(f&DSSFin != 0, " fin")
}

func (a *AddAddr) dump(d dump) dump {
	d = d.when(a.Echo, " echo").text(" id ").number(uint64(a.ID)).text(" ")
	if a.Port != 0 {
		d = netip.AddrPortFrom(a.Addr, a.Port).AppendTo(d)
	} else {
		d = d.addr(a.Addr)
	}
	if a.Echo {
		return d
	}
	return d.text(" hmac ").bytes(a.HMAC[:])
}
