package host_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/internal/reason"
)

// stops returns a configuration of a host that notes which limits stopped joins.
func stops(told *[]reason.Limit) host.Config {
	return host.Config{Observe: func(_ mono.Time, _ *host.Conn, e mpconn.Event) {
		if e.Kind == mpconn.EventJoinStopped {
			*told = append(*told, e.Limit)
		}
	}}
}

// Whatever stops a join, a connection says what it was, once for each limit,
// and its host counts it.
func TestLimitsThatStopJoinsAreTold(t *testing.T) {
	var (
		spare  = netip.MustParseAddr("10.0.9.1")
		joiner = func(port uint16) netip.AddrPort { return netip.AddrPortFrom(clientAddr2, port) }
		syn    = func(l *lab, s *host.Conn, from netip.AddrPort) { l.server.deliver(joinSYN(from, uint32(s.Token()))) }
		open   = func(l *lab, c *host.Conn, a mpconn.OpenArgs) {
			_, err := l.client.Open(l.now, c, a)
			require.Error(l.t, err)
		}
		announce = func(l *lab, c *host.Conn, n int) {
			for i := range n {
				c.Announce(l.now, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 3, byte(i)}), 0))
				l.run()
				l.advance(2 * time.Second)
			}
		}
	)
	for _, tt := range []struct {
		limit  reason.Limit
		server bool // who is stopped
		change func(cfg *host.ConnConfig, server *host.ConnConfig)
		do     func(l *lab, c, s *host.Conn)
	}{
		{reason.LimitSubflows, true, func(_, s *host.ConnConfig) { s.Limits.Subflows = 1 }, func(l *lab, _, s *host.Conn) {
			syn(l, s, joiner(1))
			syn(l, s, joiner(2))
		}},
		{reason.LimitSubflows, false, func(c, _ *host.ConnConfig) {
			c.Limits.Subflows = 1
			c.PathManager = policy("fullmesh")
		}, nil},
		{reason.LimitAddresses, true, func(_, s *host.ConnConfig) {
			s.Limits.Accepted = 1
			s.PathManager = policy("signal")
		}, func(l *lab, _, s *host.Conn) {
			for i := range byte(3) {
				a := netip.AddrFrom4([4]byte{10, 0, 9, i + 1})
				l.server.locals = append(l.server.locals, pathmgr.Local{Addr: a})
				l.server.AddrUp(l.now, s, a)
			}
		}},
		{reason.LimitAddresses, false, func(c, _ *host.ConnConfig) { c.Limits.Accepted = 1 }, func(l *lab, _, s *host.Conn) { announce(l, s, 3) }},
		{reason.LimitAddrRate, false, func(c, s *host.ConnConfig) { c.Limits.Accepted, s.Limits.Accepted = 100, 100 }, func(l *lab, _, s *host.Conn) {
			for i := range 20 {
				s.Announce(l.now, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 3, byte(i)}), 0))
			}
			l.advance(time.Second)
		}},
		{reason.LimitAddress, false, nil, func(l *lab, _, s *host.Conn) {
			s.Announce(l.now, netip.AddrPortFrom(netip.MustParseAddr("224.0.0.1"), 0))
			l.run()
		}},
		{reason.LimitWithdrawn, false, nil, func(l *lab, c, s *host.Conn) {
			s.Announce(l.now, netip.AddrPortFrom(spare, 0))
			l.run()
			l.advance(2 * time.Second)
			s.Withdraw(l.now, spare)
			l.advance(2 * time.Second)
			open(l, c, mpconn.OpenArgs{Remote: netip.AddrPortFrom(spare, 80)})
		}},
		{reason.LimitDenied, false, func(_, s *host.ConnConfig) { s.DenyJoinInitial = true }, func(l *lab, c, _ *host.Conn) {
			open(l, c, mpconn.OpenArgs{Remote: service})
		}},
		{reason.LimitState, true, nil, func(l *lab, _, _ *host.Conn) {
			_, s := l.connect(config(l.t), l.listener) // which no DSS has proven yet
			syn(l, s, joiner(1))
		}},
		{reason.LimitJoins, true, func(_, s *host.ConnConfig) { s.Limits.Subflows = 32 }, func(l *lab, _, s *host.Conn) {
			for i := range uint16(20) {
				syn(l, s, joiner(i+1))
			}
		}},
		{reason.LimitRoute, false, nil, func(l *lab, c, _ *host.Conn) {
			open(l, c, mpconn.OpenArgs{Remote: netip.AddrPortFrom(unroutable, 80)})
		}},
		{reason.LimitPort, false, nil, func(l *lab, c, _ *host.Conn) {
			open(l, c, mpconn.OpenArgs{Local: c.LocalAddr(), Remote: service})
		}},
	} {
		t.Run(tt.limit.String(), func(t *testing.T) {
			var told []reason.Limit
			l := newLab(t, stops(&told))
			cfg, srv := config(t), config(t)
			if tt.change != nil {
				tt.change(&cfg, &srv)
			}
			c, s := l.connect(cfg, l.listen(srv, 0))
			l.exchange(c, s)
			if tt.do != nil {
				tt.do(l, c, s)
			}
			l.run()
			require.Equal(t, []reason.Limit{tt.limit}, told)
			n := l.client
			if tt.server {
				n = l.server
			}
			want := [reason.NumLimits]uint64{}
			want[tt.limit] = 1
			require.Equal(t, want, n.Counters().JoinsStopped)
		})
	}
}

// policy returns a path manager.
func policy(name string) pathmgr.Factory {
	f, err := pathmgr.ByName(name)
	if err != nil {
		panic(err)
	}
	return f
}

// The bound on joins of all connections of a host together.
func TestHostWideLimitOfJoinsIsTold(t *testing.T) {
	var told []reason.Limit
	cfg := stops(&told)
	cfg.MaxHalfOpen = 1
	l := newLab(t, cfg)
	c, s := l.connect(config(t), l.listen(config(t), 0))
	l.exchange(c, s)
	for i := range uint16(3) {
		l.server.deliver(joinSYN(netip.AddrPortFrom(clientAddr2, i+1), uint32(s.Token())))
	}
	l.run()
	require.Equal(t, []reason.Limit{reason.LimitHalfOpen}, told)
}

// A limit is told again once there was room: the first subflow that is lost
// makes some.
func TestLimitsAreToldAgain(t *testing.T) {
	var told []reason.Limit
	l := newLab(t, stops(&told))
	srv := config(t)
	srv.Limits.Subflows = 2
	c, s := l.connect(config(t), l.listen(srv, 0))
	l.exchange(c, s)
	join := func() int {
		id, err := l.client.Open(l.now, c, mpconn.OpenArgs{Local: netip.AddrPortFrom(clientAddr2, 0), Remote: service})
		require.NoError(t, err)
		l.run()
		return id
	}
	id := join()
	join()
	join()
	require.Equal(t, []reason.Limit{reason.LimitSubflows}, told)
	require.True(t, c.CloseSubflow(l.now, id, reason.ResetUnspecified))
	l.advance(time.Second)
	join()
	join()
	require.Equal(t, []reason.Limit{reason.LimitSubflows, reason.LimitSubflows}, told)
	require.True(t, slices.ContainsFunc(s.AppendSubflows(nil), func(f mpconn.SubflowInfo) bool { return f.ID > id && f.Up }))
}
