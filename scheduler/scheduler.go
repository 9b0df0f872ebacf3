// Package scheduler decides which subflow carries the next range of data.
//
// A Scheduler is made for each connection and is a function of the View it is
// shown and of its own memory. It is called under the connection's lock: it
// must not block, keep time, or be shared between connections.
package scheduler

import "time"

// MaxSubflows is the number of subflows a View can hold.
const MaxSubflows = 64

// Subflow is what a scheduler sees of a subflow that may carry data.
type Subflow struct {
	ID           int // the same for the subflow's life, never used again
	SRTT         time.Duration
	RTTVar       time.Duration
	MinRTT       time.Duration
	Cwnd         int     // bytes
	InFlight     int     // bytes
	Queued       int     // bytes given to the subflow and not yet sent
	Room         int     // bytes that it could send now; 0 when cwnd, window or pacing forbid
	MSS          int     // payload bytes of a full segment
	PacingRate   float64 // bytes/s; 0 when not paced
	DeliveryRate float64 // bytes/s; 0 when unknown
	LossRate     float64 // 0 to 1, smoothed
	LastSend     time.Duration
	Backup       bool // one side asked for data here only when nothing else works
	Stale        bool // a retransmission timeout is unanswered
}

// View is what a scheduler sees of its connection. It is valid during the
// call only.
type View struct {
	Now        time.Duration // since the stack's origin
	Subflows   []Subflow     // in order of their IDs
	Unsent     int64         // bytes written and never sent
	Unacked    int64         // bytes sent and not DATA_ACKed
	SendWindow int64         // bytes that the data-level window still allows
	SendBuffer int64         // bytes that the send buffer may hold
	FlowSize   int64         // declared or learnt size of the flow; 0 unknown
	Reinject   bool          // the range was sent before and must go out again
	Carried    uint64        // with Reinject: bit i set if Subflows[i] carries it already
}

// Reason explains a decision in traces. Policies define their own.
type Reason string

// Decision is a scheduler's answer.
type Decision struct {
	Send   uint64        // bit i = Subflows[i]; several bits = send on each
	Offset int64         // of the range, from the first unsent byte
	Bytes  int           // length of the range; 0 means as much as fits
	Wait   bool          // nothing now: ask again at the next event or at Until
	Until  time.Duration // with Wait: when to ask again at the latest; 0 = at the next event
	Reason Reason
}

// Scheduler picks subflows for one connection.
type Scheduler interface {
	// Pick is called while there is something to send and some subflow has
	// room. A Decision without Send waits.
	Pick(v *View) Decision
}

// Factory makes the scheduler of a new connection.
type Factory func() Scheduler
