// Package simnet joins Stacks of package mptcp by emulated links, so that the
// blocking API can be tested without any other network. Packets are copied
// where they are sent, queued and delayed by the model of internal/link, and
// delivered by timers of package time: within a testing/synctest bubble time
// is virtual, otherwise it is real. A link without delay and limits delivers
// on the sender's goroutine, from within Network.Send.
//
// Runs are not repeatable to the byte, unlike those of internal/sim: keys and
// the order of goroutines are left to chance.
package simnet
