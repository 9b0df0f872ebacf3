// Package stream holds the two byte queues of a connection, both addressed by
// 64-bit number: SendQ keeps what was written until nobody needs it again,
// RecvQ puts what arrived in order. Neither copies a byte more than it must:
// SendQ copies once, from the writer into blocks that packets share, and
// RecvQ keeps views of the packets themselves.
//
// Numbers are compared modulo 2^64, so a queue may run across the wrap of the
// data sequence space. The queues know nothing of windows or buffer limits:
// the caller bounds what it puts in, and Memory tells what that costs.
package stream
