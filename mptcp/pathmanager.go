package mptcp

import "github.com/gomptcp/gomptcp/internal/pathmgr"

// PathManager decides which subflows a connection has: it answers events with
// commands. It is made for each connection and called under its lock: it must
// be quick, must not wait, and must not call methods of a Conn, Listener or
// Stack.
type PathManager = pathmgr.Policy

// PathManagerFactory makes the path manager of a new connection.
type PathManagerFactory = pathmgr.Factory

// PathManagerByName returns the path manager called name.
func PathManagerByName(name string) (PathManagerFactory, error) { return pathmgr.ByName(name) }

// PathManagerNames returns the names that PathManagerByName knows, sorted.
func PathManagerNames() []string { return pathmgr.Names() }

// FlowSizePathConfig are the options of the path manager "flowsize".
type FlowSizePathConfig = pathmgr.FlowSizeConfig

// FlowSizePaths returns the path manager "flowsize" with options: a connection
// has as many of the fastest paths as the size of its flow deserves (MPTCP-FSFS).
// See Dialer.FlowSize and Conn.SetFlowSize.
func FlowSizePaths(cfg FlowSizePathConfig) PathManagerFactory { return pathmgr.FlowSize(cfg) }

// FreewayPathConfig are the options of the path manager "freeway".
type FreewayPathConfig = pathmgr.FreewayConfig

// FreewayPaths returns the path manager "freeway" with options: short flows have
// other links than long ones, as many as they need (adaptive path isolation; a
// reconstruction). See Dialer.FlowSize and Conn.SetFlowSize.
func FreewayPaths(cfg FreewayPathConfig) PathManagerFactory { return pathmgr.Freeway(cfg) }

// What path managers see and say.
type (
	PathView        = pathmgr.View
	PathLimits      = pathmgr.Limits
	PathSubflow     = pathmgr.Subflow
	PathRemote      = pathmgr.Remote
	PathMeasurement = pathmgr.Measurement
	PathEvent       = pathmgr.Event
	PathCommand     = pathmgr.Command
)

// Kinds of PathEvent.
const (
	PathChooseInitial    = pathmgr.ChooseInitial
	PathEstablished      = pathmgr.Established
	PathAddrAnnounced    = pathmgr.AddrAnnounced
	PathAddrWithdrawn    = pathmgr.AddrWithdrawn
	PathLocalAddrUp      = pathmgr.LocalAddrUp
	PathLocalAddrDown    = pathmgr.LocalAddrDown
	PathSubflowUp        = pathmgr.SubflowUp
	PathSubflowLost      = pathmgr.SubflowLost
	PathPriorityChanged  = pathmgr.PriorityChanged
	PathDataQueued       = pathmgr.DataQueued
	PathSharedBottleneck = pathmgr.SharedBottleneck
	PathTick             = pathmgr.Tick
)

// Verbs of PathCommand.
const (
	PathOpenSubflow  = pathmgr.OpenSubflow
	PathCloseSubflow = pathmgr.CloseSubflow
	PathAnnounceAddr = pathmgr.AnnounceAddr
	PathWithdrawAddr = pathmgr.WithdrawAddr
	PathSetBackup    = pathmgr.SetBackup
	PathBequeath     = pathmgr.Bequeath
	PathWake         = pathmgr.Wake
	PathWatch        = pathmgr.Watch
	PathMeasure      = pathmgr.Measure
	PathWithhold     = pathmgr.Withhold
)
