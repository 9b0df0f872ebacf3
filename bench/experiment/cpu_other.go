//go:build !linux

package experiment

import "time"

var start = time.Now()

// ThreadCPU stands for the processor time of the calling thread: what passed
// since the program began, as this system does not tell.
func ThreadCPU() time.Duration { return time.Since(start) }
