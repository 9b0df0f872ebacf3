// Package cc holds congestion controllers as plain arithmetic on samples.
//
// A Group is made for each connection and gives a Controller to each of its
// subflows; uncoupled algorithms make controllers that do not know of each
// other, coupled ones share their group's view. Controllers and groups are
// called under the connection's lock: they must not block, keep time, or be
// shared between connections.
//
// Windows are in bytes and kept as float64, so that slow growth is not lost
// to rounding.
package cc

import "time"

// Params are what a controller starts from.
type Params struct {
	MSS             int     // payload bytes of a full segment
	InitialWindow   float64 // bytes; 0 means min(10*MSS, max(2*MSS, 14600)) (RFC 6928)
	InitialSsthresh float64 // bytes; 0 means no limit
}

// Sample is what one ACK tells.
type Sample struct {
	Now          time.Duration // since the stack's origin
	RTT          time.Duration // of this ACK; 0 if it gave none
	SRTT         time.Duration // smoothed, with this ACK; 0 before the first
	MinRTT       time.Duration // least of the connection; 0 before the first
	OneWayDelay  time.Duration // relative, from timestamps; 0 if unknown
	MSS          int           // bytes, now in force
	Acked        int           // bytes newly acknowledged cumulatively
	Delivered    int           // bytes newly acknowledged or selectively acknowledged
	Lost         int           // bytes newly marked lost
	Marked       int           // bytes of Delivered whose ACK carried ECE
	InFlight     int           // bytes in flight after this ACK
	Unsent       int           // bytes waiting to be sent
	DeliveryRate float64       // bytes/s; 0 if unknown
	AppLimited   bool          // DeliveryRate is only a lower bound
	CwndLimited  bool          // the window was in full use when the acked data was sent
	InRecovery   bool          // a loss episode is under way: growth is not wanted
	Round        uint64        // counts round trips: rises when data sent after the last rise is acked
}

// Loss is a kind of congestion signal.
type Loss uint8

// Congestion signals. Each is given once an episode (once a window of data).
const (
	LossFast    Loss = iota + 1 // found by SACK, duplicate ACKs or RACK
	LossTimeout                 // retransmission timeout
	LossECN                     // ECE on an ACK
)

// State is what a controller wants.
type State struct {
	Cwnd       float64 // bytes
	Ssthresh   float64 // bytes; +Inf before the first loss
	PacingRate float64 // bytes/s; 0 lets the subflow choose
}

// Controller is the congestion control of one subflow.
type Controller interface {
	// OnAck takes the sample of an ACK that delivered something.
	OnAck(s *Sample)
	// OnLoss takes a congestion signal. s.InFlight is FlightSize when it came.
	OnLoss(l Loss, s *Sample)
	// Undo takes back the last OnLoss, which proved spurious.
	Undo()
	// State returns the outputs now in force.
	State() State
}

// Group makes the controllers of one connection.
type Group interface {
	// Add returns the controller of a new subflow.
	Add(p Params) Controller
	// Remove forgets a controller that Add returned.
	Remove(c Controller)
}

// Factory makes the group of a new connection.
type Factory func() Group
