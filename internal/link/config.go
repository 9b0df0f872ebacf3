package link

import (
	"fmt"
	"math"
	"time"
)

// Bounds of a Config. They keep the model's arithmetic in nanoseconds from
// overflowing: the fullest queue at the least rate empties within 2^63 ns.
const (
	maxRate     = 1e13 // bits/s
	maxDuration = time.Hour
	maxQueue    = 1 << 30 // bytes
	maxOverhead = 1 << 16 // bytes

	leastDefaultQueue = 64 << 10 // bytes
	leastReorderBy    = time.Millisecond
)

// Validate reports the first field that is out of range: Rate is 0 or 1 bit/s
// to 10 Tb/s, durations are 0 to one hour, QueueBytes and what
// marks are at most 1 GiB, Overhead at most 64 KiB, probabilities are 0 to 1.
func (c *Config) Validate() error {
	if c.Rate != 0 && !(c.Rate >= 1 && c.Rate <= maxRate) {
		return fmt.Errorf("link: Rate %v bit/s is neither 0 nor between 1 and %g", c.Rate, float64(maxRate))
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"Delay", c.Delay}, {"Jitter", c.Jitter}, {"ReorderBy", c.ReorderBy}} {
		if d.value < 0 || d.value > maxDuration {
			return fmt.Errorf("link: %s %v is not between 0 and %v", d.field, d.value, maxDuration)
		}
	}
	for _, n := range []struct {
		field       string
		value, most int
	}{{"QueueBytes", c.QueueBytes, maxQueue}, {"MarkBytes", c.MarkBytes, maxQueue}, {"RED.Min", c.RED.Min, maxQueue}, {"RED.Max", c.RED.Max, maxQueue}, {"Overhead", c.Overhead, maxOverhead}} {
		if n.value < 0 || n.value > n.most {
			return fmt.Errorf("link: %s %d is not between 0 and %d bytes", n.field, n.value, n.most)
		}
	}
	for _, p := range []struct {
		field string
		value float64
	}{{"Loss", c.Loss}, {"Reorder", c.Reorder}, {"Duplicate", c.Duplicate}, {"Corrupt", c.Corrupt}, {"RED.MaxP", c.RED.MaxP}, {"RED.Weight", c.RED.Weight}} {
		if math.IsNaN(p.value) || p.value < 0 || p.value > 1 {
			return fmt.Errorf("link: %s %v is not a probability", p.field, p.value)
		}
	}
	if c.RED.Max > 0 && c.RED.Min >= c.RED.Max {
		return fmt.Errorf("link: RED.Min %d is not less than RED.Max %d", c.RED.Min, c.RED.Max)
	}
	return nil
}

// withDefaults returns c with the zero fields that mean "by default" filled
// in as their comments say.
func (c Config) withDefaults() Config {
	if c.QueueBytes == 0 {
		bdp := c.Rate / 8 * 2 * c.Delay.Seconds()
		c.QueueBytes = max(int(min(bdp, maxQueue)), leastDefaultQueue)
	}
	if c.RED.Max > 0 && c.RED.MaxP == 0 {
		c.RED.MaxP = defaultMaxP
	}
	if c.RED.Max > 0 && c.RED.Weight == 0 {
		c.RED.Weight = defaultWeight
	}
	if c.ReorderBy == 0 {
		c.ReorderBy = leastReorderBy
		if c.Rate > 0 {
			four := time.Duration(4 * 1500 * 8 / c.Rate * float64(time.Second))
			c.ReorderBy = min(max(four, leastReorderBy), maxDuration)
		}
	}
	return c
}
