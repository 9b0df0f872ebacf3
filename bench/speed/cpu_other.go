//go:build !unix

package speed

import "time"

// CPUTime is not known here.
func CPUTime() time.Duration { return 0 }
