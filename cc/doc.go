// Package cc holds congestion controllers as plain arithmetic on samples.
//
// A Group is made for each connection and gives a Controller to each of its
// subflows; uncoupled algorithms make controllers that do not know of each
// other, coupled ones share their group's view. Controllers and groups are
// called under the connection's lock: they must not block, keep time, or be
// shared between connections.
//
// Windows are in bytes and kept as float64, so that slow growth is not lost
// to rounding. Growth counts bytes, and only while the window is in full use.
//
// # The collection
//
// Single path: reno (RFC 5681), cubic (RFC 9438 with HyStart++, RFC 9406),
// vegas, dctcp (RFC 8257), bbr (version 3, draft-ietf-ccwg-bbr-06).
//
// Coupled: lia (RFC 6356), lia-exact (its form of NSDI 2011), olia, balia,
// wvegas, ewtcp, coupled and semicoupled (NSDI 2011), and for networks that
// mark xmp, mdtcp, lia-dctcp and mptcpd; coupled-bbr. The documentation of
// each says where it comes from, and which are reconstructions of our own
// since no text gives the equations: mptcpd, and coupled-bbr on version 3.
//
// In every coupled group a subflow that is alone runs the code of its
// single-path base: Reno, or DCTCP for lia-dctcp, mdtcp and mptcpd, Vegas for
// wvegas, BOS for xmp, BBR for coupled-bbr. Slow start is never coupled.
// Algorithms that live on marks ask for ECN and its exact echo by themselves
// (ECNUser); both ends need them for that.
//
// # One queue
//
// What two subflows take of one queue without marks (10 Mb/s, 40 ms, a
// bandwidth-delay product long), as a multiple of what one TCP takes beside them:
// mean and 95 % interval over seeds 1 to 5 of the same experiment. Coupled ones
// should take what one TCP does (RFC 6356, Section 2), uncoupled ones twice that.
// The TCP is a Reno (rows "fairness NAME"). CUBIC, BBR and Vegas take another share
// than a Reno beside it even with one subflow, 1.27, 2.06 and 0.18 of its goodput:
// they, and what couples them, are compared with one TCP of their own kind (rows
// "fairness to its own NAME"), which for wvegas is Vegas with ten segments queued.
//
//	reno, dctcp                   2.05 (1.86 to 2.25)
//	vegas, beside Vegas           1.98 (1.65 to 2.31)
//	bbr, beside BBR               1.92 (1.86 to 1.97)
//	cubic, beside CUBIC           1.75 (1.58 to 1.93)
//	default                       1.15 (1.07 to 1.22)
//	wvegas, beside Vegas          1.14 (0.96 to 1.31)
//	lia, lia-exact, lia-dctcp     1.07 (0.81 to 1.32)
//	mdtcp, mptcpd                 1.07 (0.81 to 1.32)
//	balia                         1.00 (0.91 to 1.08)
//	xmp                           0.97 (0.90 to 1.03)
//	coupled                       0.97 (0.88 to 1.05)
//	ewtcp                         0.94 (0.79 to 1.10)
//	olia                          0.89 (0.82 to 0.96)
//	coupled-bbr, beside BBR       0.83 (0.78 to 0.88)
//	semicoupled                   0.81 (0.69 to 0.94)
//
// The same beside one Reno, and what one TCP of that kind takes beside it (rows "one
// beside Reno NAME"): of a queue that drops, BBR takes more than a Reno, whose losses
// it hardly answers, and Vegas less, which avoids queues. The one of wvegas is Vegas
// with ten segments queued, and Drain.
//
//	             two subflows          one
//	bbr          5.26 (4.60 to 5.91)   2.06 (1.21 to 2.91)
//	coupled-bbr  1.65 (1.54 to 1.76)   as bbr
//	vegas        0.14 (0.04 to 0.23)   0.18 (0.03 to 0.33)
//	wvegas       0.12 (0.10 to 0.15)   0.05 (0.03 to 0.08)
//
// # Random loss
//
// Share of what framing allows that one connection reaches over two paths of
// 100 Mb/s and 20 ms each that lose 0.1 % of packets at random: mean and 95 %
// interval over seeds 1 to 5, as "go run ./bench/run -exp cc" has it (rows
// "lossy NAME"). For comparison, Linux's MPTCP with its CUBIC was seen to reach
// 0.27.
//
//	bbr          0.91 (0.90 to 0.92)
//	coupled-bbr  0.91 (0.90 to 0.92)
//	default      0.24 (0.22 to 0.25)
//	cubic        0.23 (0.21 to 0.25)
//	wvegas       0.22 (0.20 to 0.25)
//	vegas        0.22 (0.20 to 0.25)
//	dctcp        0.22 (0.20 to 0.24)
//	reno         0.22 (0.20 to 0.24)
//	xmp          0.12 (0.11 to 0.14)
//	lia          0.12 (0.11 to 0.14)
//	lia-dctcp    0.12 (0.11 to 0.14)
//	lia-exact    0.12 (0.11 to 0.14)
//	mdtcp        0.12 (0.11 to 0.14)
//	mptcpd       0.12 (0.11 to 0.14)
//	coupled      0.12 (0.10 to 0.13)
//	balia        0.12 (0.10 to 0.13)
//	olia         0.11 (0.10 to 0.13)
//	ewtcp        0.11 (0.10 to 0.13)
//	semicoupled  0.11 (0.09 to 0.12)
//
// # Your own
//
// Write a type with the four methods of Controller, and a Factory that makes
// its Group; give the Factory to a connection, or put it into a Registry and
// choose it by name. What has parameters here is a struct whose zero value has
// the defaults and whose method Group is a Factory, as DCTCP{G: 1./32}.Group.
package cc
