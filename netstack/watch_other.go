//go:build !linux

package netstack

func subscribe() lookout { return poller{} }
