//go:build !linux

package speed

import (
	"errors"
	"time"
)

// HasKernel says whether Kernel can be measured on this system.
const HasKernel = false

// Kernel needs Linux.
func Kernel(time.Duration, int) (map[string]float64, error) { return nil, errors.ErrUnsupported }
