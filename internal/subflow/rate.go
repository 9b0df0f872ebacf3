package subflow

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
)

// delivered is what was known about delivery when a record was sent.
type delivered struct {
	bytes   uint64    // delivered in all
	at      mono.Time // when that was last increased
	first   mono.Time // when the first record of that measurement was sent
	limited bool      // the sender had too little to send

	lost     uint64 // marked lost in all
	inFlight int    // bytes, this record included
}

// delivery measures the rate at which the network delivers, after the draft
// "Delivery Rate Estimation" (draft-cheng-iccrg-delivery-rate-estimation): of
// two rates, that of sending and that of acknowledgments, the lower one over
// the time between a record's sending and its delivery.
type delivery struct {
	bytes uint64 // delivered in all
	at    mono.Time
	first mono.Time
	limit uint64 // the sender is limited until so much is delivered; 0 = it is not

	round    uint64 // round trips begun
	roundEnd uint64 // the next begins when a record sent after so much was delivered is

	last     float64 // bytes/s, most recent good measurement
	lossRate float64
	lost     int    // bytes lost in this round
	lostAll  uint64 // bytes lost in all
	untold   int    // bytes lost that the controller was not told of
	before   uint64 // bytes delivered before this round
}

// stamp returns what a record of n bytes that is sent at now carries along.
func (d *delivery) stamp(now mono.Time, inFlight, n int) delivered {
	if inFlight == 0 {
		d.first, d.at = now, now
	}
	return delivered{
		bytes: d.bytes, at: d.at, first: d.first, limited: d.limit != 0,
		lost: d.lostAll, inFlight: inFlight + n,
	}
}

// lose notes n bytes as marked lost.
func (d *delivery) lose(n int) {
	d.lost += n
	d.untold += n
	d.lostAll += uint64(max(n, 0))
}

// deliver notes n payload bytes of a record as delivered by an ACK.
func (d *delivery) deliver(a *ack, r *record, n int) {
	d.bytes += uint64(n)
	d.at = a.now
	if !a.newest.at.Set() || r.at.bytes > a.newest.bytes || r.at.bytes == a.newest.bytes && r.sentAt > a.newestAt {
		a.newest, a.newestAt = r.at, r.sentAt
	}
	d.first = max(d.first, r.sentAt)
}

// measure takes the rate sample of an ACK that delivered something, and
// counts round trips.
func (d *delivery) measure(a *ack, minRTT time.Duration) {
	if d.limit != 0 && d.bytes > d.limit {
		d.limit = 0
	}
	n := &a.newest
	if !n.at.Set() {
		return
	}
	if n.bytes >= d.roundEnd {
		d.round++
		d.roundEnd = d.bytes
		d.endRound()
	}
	span := max(a.newestAt.Sub(n.first), a.now.Sub(n.at))
	// A span below the least round trip comes of compressed ACKs.
	if span <= 0 || span < minRTT {
		return
	}
	a.rate = float64(d.bytes-n.bytes) / span.Seconds()
	// Also while what it measures was on its way the sender may have run dry.
	a.limited = n.limited || d.limit != 0
	if !a.limited || a.rate > d.last {
		d.last = a.rate
	}
}

// endRound smooths the loss rate over about 8 round trips.
func (d *delivery) endRound() {
	if all := float64(d.lost) + float64(d.bytes-d.before); all > 0 {
		d.lossRate += (float64(d.lost)/all - d.lossRate) / 8
	}
	d.lost, d.before = 0, d.bytes
}

// starve notes that there was nothing to send although inFlight bytes would
// have left room for more.
func (d *delivery) starve(inFlight int) { d.limit = max(d.bytes+uint64(inFlight), 1) }
