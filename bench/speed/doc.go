// Package speed measures this module's stack against others on the very same
// links: gVisor's own TCP in the same process, and the kernel's TCP and MPTCP
// over TUN and veth devices. Everything here reads the clock; what it returns
// means something only beside what another stack did in the same minute, which
// is what experiment "speed" of bench/run makes of it.
package speed
