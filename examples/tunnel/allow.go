package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// rule allows the ports lo to hi of a prefix.
type rule struct {
	prefix netip.Prefix
	lo, hi uint16
}

// allowList is what the server may dial. The empty list allows nothing.
type allowList []rule

// permits reports whether a destination is allowed. An IPv4 address in IPv6
// form is judged as the IPv4 address that it is.
func (l allowList) permits(dst netip.AddrPort) bool {
	for _, r := range l {
		if r.prefix.Contains(dst.Addr().Unmap()) && r.lo <= dst.Port() && dst.Port() <= r.hi {
			return true
		}
	}
	return false
}

// parseRule reads prefix:port, prefix:first-last or prefix:*. The prefix may
// stand in brackets.
func parseRule(s string) (rule, error) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return rule{}, errors.New("want prefix:ports")
	}
	text, ports := s[:i], s[i+1:]
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		text = text[1 : len(text)-1]
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return rule{}, err
	}
	r := rule{prefix: prefix.Masked(), lo: 1, hi: 65535}
	if ports == "*" {
		return r, nil
	}
	first, last, isRange := strings.Cut(ports, "-")
	if !isRange {
		last = first
	}
	if r.lo, err = parsePort(first); err != nil {
		return rule{}, err
	}
	if r.hi, err = parsePort(last); err != nil {
		return rule{}, err
	}
	if r.lo > r.hi {
		return rule{}, fmt.Errorf("ports %s: the first is above the last", ports)
	}
	return r, nil
}

func parsePort(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is no port", s)
	}
	return uint16(n), nil
}
