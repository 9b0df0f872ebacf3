// Package sim is a deterministic network for the production code: hosts of
// package host joined by links of package link, driven through virtual time
// by one heap of events on one goroutine. One seed gives one run, byte for
// byte; Sim.TraceHash says whether two runs were the same.
//
// Time starts at one second. Nothing in it waits: Run goes from event to
// event until none is left.
//
// A Node is a host with interfaces, a Router forwards between links; Connect
// joins two of them. Programs on a node are Apps, called whenever something may
// have changed for their connection. Every connection is watched while it runs:
// see Sim.Violations. NewFast makes a simulation without that care, for
// experiments at scale.
//
// Topologies that are used often have builders: TwoHosts (one or more links
// between two hosts), NewBottlenecks (many hosts that share paths) and
// NewFatTree. Others are made by hand:
//
//	s := sim.NewFast(seed)
//	client, server := s.NewNode("client", host.Config{}), s.NewNode("server", host.Config{})
//	r := s.NewRouter("r")
//	fast := link.Config{Rate: 1e9, Delay: time.Millisecond, Overhead: sim.OverheadEthernet}
//	slow := link.Config{Rate: 20e6, Delay: 15 * time.Millisecond, QueueBytes: 75_000, Overhead: sim.OverheadEthernet}
//	s.Connect("", sim.IfaceConfig{Node: client, Addrs: addrs("10.0.0.1")}, sim.IfaceConfig{Router: r}, sim.Symmetric("wifi", slow))
//	s.Connect("", sim.IfaceConfig{Node: client, Addrs: addrs("10.0.1.1")}, sim.IfaceConfig{Router: r}, sim.Symmetric("lte", slow))
//	s.Connect("", sim.IfaceConfig{Node: server, Addrs: addrs("10.0.2.1")}, sim.IfaceConfig{Router: r}, sim.Symmetric("server", fast))
//	s.ComputeRoutes()
//	t := s.StartTransfer(client, server, sim.TransferConfig{AB: 10 << 20, To: netip.MustParseAddrPort("10.0.2.1:80"), ConnA: conn, ConnB: conn})
//	s.RunUntil(time.Minute, t.Delivered)
//
// What a figure shows comes from Direction.Stats of the links, by name of the
// path, from Conn.Info and Conn.AppendSubflows (Node.PathOf names the path of a
// subflow's local address), sampled with Every.
package sim
