// Package spec is a conformance test of MPTCP and TCP stacks, by what the wire
// shows. It plays a peer that has no TCP machine of its own: every segment that
// it sends is written by a script, and every one that the target sends is
// judged by it.
//
// A [Target] is the stack under test and the application on top of it: a
// host.Host of this module in virtual time ([NewSelf]), or the Linux kernel
// behind a TUN device in a network namespace ([NewKernel]). The items ([Items])
// are scripts, each with the requirement of RFC 8684, 9293, 5961, 7323, 2018 or
// 6298 that it checks. [Run] plays items and reports.
//
// The peer may do what no stack would, but it does not guess: where the RFCs
// leave a choice to the target, a script accepts each of them.
package spec
