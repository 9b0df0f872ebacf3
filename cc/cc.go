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
	ECN          bool          // what is sent can be marked
	InFlight     int           // bytes in flight after this ACK
	Unsent       int           // bytes waiting to be sent
	DeliveryRate float64       // bytes/s; 0 if unknown
	AppLimited   bool          // DeliveryRate is only a lower bound
	SentInFlight int           // bytes in flight when the latest data of Delivered was sent, it included
	LostSince    int           // bytes marked lost since then
	GotSince     int           // bytes delivered since then, Delivered included
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
	// The OnAck of an ACK that brought it follows.
	OnLoss(l Loss, s *Sample)
	// Undo takes back the last OnLoss, which proved spurious.
	Undo()
	// State returns the outputs now in force. They change in calls of the other
	// methods of the same controller only: one that is coupled with others takes
	// what they did into account when it is called next.
	State() State
}

// ECN is how a congestion control uses Explicit Congestion Notification.
type ECN uint8

// Uses of ECN.
const (
	ECNAsSet   ECN = iota // as the connection is configured
	ECNClassic            // wanted, as RFC 3168 has it
	// ECNExact: wanted, and each change of CE is echoed at once, so that the
	// peer learns what share of its bytes was marked (RFC 8257, Section 3.2).
	ECNExact
)

// ECNUser is implemented by groups whose algorithm lives on marks. Both ends
// need it: what a controller learns of marks is what the peer echoes.
type ECNUser interface {
	// ECN is asked before the first subflow is opened.
	ECN() ECN
}

// Group makes the controllers of one connection.
type Group interface {
	// Add returns the controller of a new subflow.
	Add(p Params) Controller
	// Remove forgets a controller that Add returned.
	Remove(c Controller)
}

// Heir is implemented by controllers whose place on a path may be taken by
// another one's on the same path.
type Heir interface {
	Controller
	// Bequeath gives away what the subflow has beyond inFlight bytes.
	Bequeath(inFlight int) Estate
	// Inherit takes what another controller gave away.
	Inherit(e Estate)
}

// Estate is what one controller leaves to another.
type Estate struct {
	Window float64 // bytes
	Places int     // of subflows, one at least
	Slow   int     // how many of them are in slow start

	debtors []*debt // who still leave what they have in flight
}

// Factory makes the group of a new connection.
type Factory func() Group
