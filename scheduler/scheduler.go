package scheduler

import "time"

// MaxSubflows is the number of subflows a View can hold.
const MaxSubflows = 64

// Ask says what a scheduler is asked about.
type Ask uint8

// Questions.
const (
	// Fresh: bytes that were never sent can go out.
	Fresh Ask = iota
	// Lost: a range that was sent before must go out again, because the subflow
	// that carries it failed or does not answer.
	Lost
	// Spare: nothing new may be sent, for want of bytes or of window, though
	// subflows have room. Bytes that are not acknowledged may be repeated. It
	// is only asked of connections with several subflows.
	Spare
)

// Subflow is what a scheduler sees of a subflow that may carry data.
type Subflow struct {
	ID           int // the same for the subflow's life, never used again
	SRTT         time.Duration
	RTTVar       time.Duration
	MinRTT       time.Duration
	Cwnd         int     // bytes
	Ssthresh     int     // bytes; huge before the first loss
	InFlight     int     // bytes
	Queued       int     // bytes given to the subflow and not yet sent
	Room         int     // bytes that it could send now; 0 when cwnd, window or pacing forbid
	QueueRoom    int     // bytes that it takes with Decision.Queue, Room included: up to a second window
	MSS          int     // payload bytes of a full segment
	Whole        int     // of a super-segment, where the path takes those; else MSS
	PacingRate   float64 // bytes/s; 0 when not paced
	DeliveryRate float64 // bytes/s; 0 when unknown
	LossRate     float64 // 0 to 1, smoothed
	LastSend     time.Duration
	OldestSend   time.Duration // when the oldest byte in flight was sent; 0 when none is
	Reach        int64         // stream offset behind the byte it was given last; 0 before the first
	Backup       bool          // one side asked for data here only when nothing else works
	Stale        bool          // a retransmission timeout is unanswered
	Recovering   bool          // a loss is being repaired
}

// View is what a scheduler sees of its connection. It is valid during the
// call only, and must not be changed. Bytes of the outgoing stream are named by
// their offset in it, which begins at 0.
type View struct {
	Ask      Ask
	Now      time.Duration // since the stack's origin
	Subflows []Subflow     // in order of their IDs

	Acked int64 // offset of the first byte not DATA_ACKed
	First int64 // offset of the first byte never sent; with Lost, of the range
	Run   int64 // bytes from First on that may go out in one piece
	Sent  int64 // offset behind the last byte that was ever sent

	Unsent     int64 // bytes written and never sent
	Unacked    int64 // bytes from Acked to Sent
	SendWindow int64 // bytes beyond Sent that the peer's window allows
	SendBuffer int64 // bytes that the send buffer may hold now
	BufferMax  int64 // bytes that it may grow to
	FlowSize   int64 // bytes of the whole flow, declared or learnt; 0 unknown
	Hint       int64 // what the application told the policy; 0 unless it did

	// Carried says who carries the byte at First (Lost) or at Acked (Spare):
	// bit i is set if Subflows[i] was given it and has not acknowledged it.
	Carried uint64
	// Holders tells the same of the byte at any offset, and for how many bytes
	// from there it stays so, 0 if that is not known. It takes time in
	// proportion to the bytes in flight. It is nil in views that no connection
	// made.
	Holders func(off int64) (set uint64, n int64)
}

// Reason explains a decision in traces. Policies define their own.
type Reason string

// Decision is a scheduler's answer: to send a range, or to wait. The zero
// Decision waits.
type Decision struct {
	Send uint64 // bit i = Subflows[i]; several bits = send on each
	// Offset is where the range begins: so many bytes behind View.First, or
	// with Again behind View.Acked. Bytes there that were sent already are
	// skipped. It counts as 0 with Lost, and while there is one subflow.
	Offset int64
	Bytes  int // length of the range; 0 means as much as fits
	// Again repeats bytes that were sent: those, at Offset, that the subflow
	// does not carry. Without it an answer to Spare means to wait.
	Again bool
	// Queue lets a subflow take the range beyond its Room, as far as its
	// QueueRoom goes. What is queued there stays there.
	Queue bool
	// Penalise halves the windows of these subflows, as bits like Send; they
	// grow back as in congestion avoidance, or in slow start if they were in it.
	Penalise uint64

	Wait bool // nothing now: ask again at the next event or at Until
	// Until is, with Wait, when to ask again at the latest; 0 = at the next
	// event. With bytes that were never sent it may say that nothing will have to be
	// repeated before, which spares the question (Spare) that would follow at once.
	Until  time.Duration
	Reason Reason
}

// Scheduler picks subflows for one connection.
type Scheduler interface {
	// Pick is called while there is something to send and some subflow has
	// room: with Lost first, then with Fresh, and with Spare if there is
	// nothing of either. A Decision without Send waits.
	//
	// Waiting can't stop a connection. Pick is called again at each event:
	// bytes written, an ACK, a window update, a timer, a subflow that comes,
	// goes or has room again. If no such event is on its way, because nothing
	// is in flight on a subflow that answers, the connection waits until Until,
	// at most for a retransmission timeout, and sends by LeastRTT then.
	Pick(v *View) Decision
}

// Factory makes the scheduler of a new connection.
type Factory func() Scheduler

// Func makes a policy of a function that needs no memory.
type Func func(v *View) Decision

// Pick calls f.
func (f Func) Pick(v *View) Decision { return f(v) }
