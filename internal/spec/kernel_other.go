//go:build !linux

package spec

// NewKernel reports that there is no such target here.
func NewKernel(Setup) (Target, error) { return nil, ErrUnsupported }
