package workload

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/sim"
)

// Video is a client of adaptive streaming over HTTP (DASH) that chooses the
// bitrate of each segment by the throughput of those before.
type Video struct {
	Ladder  []float64     // bitrates in bits/s, rising
	Segment time.Duration // play time of a segment; 0 = 4 s
	Buffer  time.Duration // play time that is fetched ahead at most; 0 = 60 s
	// Safety is the share of the measured throughput that a bitrate may have;
	// 0 = 0.8.
	Safety float64
	// Weight is that of the last segment in the moving average of throughput; 0
	// = 0.3.
	Weight float64

	Chosen   []int         // index into Ladder of each segment that is there
	Stalled  time.Duration // time without video, the start-up included
	Stalls   int           // times that it stopped after it had begun
	StartUp  time.Duration // from Start to the first picture
	Failed   bool          // the session ended
	measured float64       // bits/s; 0 = nothing yet

	sim     *sim.Sim
	session *Session
	began   mono.Time
	empty   mono.Time // when the buffer will have run out
	until   mono.Time
}

// VideoLadder are bitrates of 360p, 480p, 720p, 1080p and 1080p60, in bits/s.
var VideoLadder = []float64{0.4e6, 0.75e6, 1.3e6, 2.5e6, 4e6}

// Start begins to play, for so much time.
func (v *Video) Start(s *sim.Sim, session *Session, length time.Duration) {
	if v.Segment == 0 {
		v.Segment = 4 * time.Second
	}
	if v.Buffer == 0 {
		v.Buffer = time.Minute
	}
	if v.Safety == 0 {
		v.Safety = 0.8
	}
	if v.Weight == 0 {
		v.Weight = 0.3
	}
	v.sim, v.session, v.began = s, session, s.Now()
	v.empty, v.until = s.Now(), s.Now().Add(length)
	v.fetch()
}

// rung returns the highest bitrate that the throughput allows.
func (v *Video) rung() int {
	best := 0
	for i, rate := range v.Ladder {
		if rate <= v.Safety*v.measured {
			best = i
		}
	}
	return best
}

func (v *Video) fetch() {
	if v.sim.Now() >= v.until {
		v.session.Close()
		return
	}
	rung := v.rung()
	bytes := int64(v.Ladder[rung] * v.Segment.Seconds() / 8)
	v.session.Do(RequestSize, bytes, func(e *Exchange) {
		if v.Failed = e.Failed; v.Failed {
			return
		}
		v.arrived(rung, float64(bytes)*8/e.Duration().Seconds())
	})
}

// arrived plays a segment that is there, and asks for the next when there is
// room.
func (v *Video) arrived(rung int, throughput float64) {
	now := v.sim.Now()
	if v.measured == 0 {
		v.measured = throughput
	}
	v.measured += v.Weight * (throughput - v.measured)
	if now > v.empty || len(v.Chosen) == 0 {
		v.Stalled += now.Sub(v.empty)
		if len(v.Chosen) == 0 {
			v.StartUp = now.Sub(v.began)
		} else {
			v.Stalls++
		}
		v.empty = now
	}
	v.Chosen = append(v.Chosen, rung)
	v.empty = v.empty.Add(v.Segment)
	ahead := v.empty.Sub(now)
	v.sim.After(max(0, ahead+v.Segment-v.Buffer), v.fetch)
}

// MeanBitrate returns the mean bitrate of the segments that are there, in
// bits/s.
func (v *Video) MeanBitrate() float64 {
	if len(v.Chosen) == 0 {
		return 0
	}
	var sum float64
	for _, rung := range v.Chosen {
		sum += v.Ladder[rung]
	}
	return sum / float64(len(v.Chosen))
}
