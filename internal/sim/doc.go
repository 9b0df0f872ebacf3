// Package sim is a deterministic network for the production code: hosts of
// package host joined by links of package link, driven through virtual time
// by one heap of events on one goroutine. One seed gives one run, byte for
// byte; Sim.TraceHash says whether two runs were the same.
//
// Time starts at one second. Nothing in it waits: Run goes from event to
// event until none is left.
//
// A Node is a host with interfaces; Connect joins two of them. Programs on a
// node are Apps, called whenever something may have changed for their
// connection. TwoHosts and Transfer are the common topology and workload.
// Every connection is watched while it runs: see Sim.Violations.
package sim
