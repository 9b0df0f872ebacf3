//go:build !linux

package netstack

import (
	"errors"
	"fmt"
	"runtime"
)

func openDevice(string, int) (device, string, int, error) {
	return nil, "", 0, fmt.Errorf("no tun links on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
