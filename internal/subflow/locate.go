package subflow

import "github.com/gomptcp/gomptcp/internal/seq"

// SentOffset returns the offset, in what we send, of a sequence number near
// those being sent. It is negative before the first byte.
func (s *Subflow) SentOffset(n seq.SSN) int64 { return int64(relative(n, s.snd.iss, s.snd.nxt)) - 1 }

// ReceivedOffset is SentOffset for what the peer sends.
func (s *Subflow) ReceivedOffset(n seq.SSN) int64 {
	return int64(relative(n, s.rcv.irs, s.rcv.nxt)) - 1
}
