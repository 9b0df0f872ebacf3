//go:build !linux && !darwin && !windows && !freebsd && !openbsd

package netstack

import (
	"errors"
	"fmt"
	"runtime"
)

func openDevice(*TUNConfig) (device, opened, error) {
	return nil, opened{}, fmt.Errorf("no tun links on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
