package main

import (
	"math"

	"github.com/gomptcp/gomptcp/cc"
)

// scalable is Tom Kelly's Scalable TCP: the window grows by 1/100 of what is
// acknowledged and loses 1/8 upon congestion, so that recovery takes the same
// number of round trips at any speed. It is the controller of one subflow.
type scalable struct {
	cwnd, ssthresh, mss float64    // bytes
	before              [2]float64 // cwnd and ssthresh before the last signal
}

// OnAck opens the window, if it was in full use.
func (c *scalable) OnAck(s *cc.Sample) {
	switch {
	case !s.CwndLimited || s.InRecovery:
	case c.cwnd < c.ssthresh:
		c.cwnd += float64(s.Acked)
	default:
		c.cwnd += float64(s.Acked) / 100
	}
}

// OnLoss closes it.
func (c *scalable) OnLoss(l cc.Loss, _ *cc.Sample) {
	c.before = [2]float64{c.cwnd, c.ssthresh}
	c.ssthresh = max(c.cwnd*7/8, 2*c.mss)
	c.cwnd = c.ssthresh
	if l == cc.LossTimeout {
		c.cwnd = c.mss
	}
}

// Undo takes the last signal back: nothing was lost.
func (c *scalable) Undo() { c.cwnd, c.ssthresh = max(c.cwnd, c.before[0]), c.before[1] }

// State is read before each packet.
func (c *scalable) State() cc.State { return cc.State{Cwnd: c.cwnd, Ssthresh: c.ssthresh} }

// group is that of a connection: its subflows do not know of each other.
type group struct{}

func (group) Add(p cc.Params) cc.Controller {
	c := &scalable{cwnd: p.InitialWindow, ssthresh: p.InitialSsthresh, mss: float64(p.MSS)}
	if c.ssthresh == 0 {
		c.ssthresh = math.Inf(1)
	}
	c.before = [2]float64{c.cwnd, c.ssthresh}
	return c
}

func (group) Remove(cc.Controller) {}
