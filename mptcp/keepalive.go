package mptcp

import (
	"net"
	"time"

	"github.com/gomptcp/gomptcp/internal/host"
)

// Keepalive probes by default, as in package net.
const (
	defaultKeepAliveTime  = 15 * time.Second
	defaultKeepAliveCount = 9
)

// keepAlive configures the keepalive probes of a connection.
type keepAlive struct {
	on             bool
	idle, interval time.Duration
	count          int
}

// newKeepAlive returns what Config.KeepAlive means.
func newKeepAlive(d time.Duration) keepAlive {
	k := keepAlive{on: d >= 0, idle: d, interval: d, count: defaultKeepAliveCount}
	if d <= 0 {
		k.idle, k.interval = defaultKeepAliveTime, defaultKeepAliveTime
	}
	return k
}

// apply changes k by the rules of net.KeepAliveConfig.
func (k *keepAlive) apply(c net.KeepAliveConfig) {
	k.on = c.Enable
	change := func(p *time.Duration, d time.Duration) {
		switch {
		case d == 0:
			*p = defaultKeepAliveTime
		case d > 0:
			*p = d
		}
	}
	change(&k.idle, c.Idle)
	change(&k.interval, c.Interval)
	switch {
	case c.Count == 0:
		k.count = defaultKeepAliveCount
	case c.Count > 0:
		k.count = c.Count
	}
}

// forHost writes k into the knobs of subflows.
func (k *keepAlive) forHost(hc *host.ConnConfig) {
	s := &hc.Subflow.KeepAlive
	s.Idle, s.Interval, s.Count = k.idle, k.interval, k.count
	if !k.on {
		s.Idle = -1
	}
}
