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
// than a Reno beside it even with one subflow, 1.27, 1.84 and 0.18 of its goodput:
// they, and what couples them, are compared with one TCP of their own kind (rows
// "fairness to its own NAME"), which for wvegas is Vegas with ten segments queued.
//
//	bbr, beside BBR               1.99 (1.92 to 2.06)
//	vegas, beside Vegas           1.94 (1.69 to 2.18)
//	cubic, beside CUBIC           1.91 (1.71 to 2.10)
//	reno, dctcp                   1.87 (1.71 to 2.04)
//	wvegas, beside Vegas          1.13 (0.99 to 1.26)
//	xmp                           1.06 (0.97 to 1.16)
//	default                       1.05 (0.91 to 1.20)
//	lia, lia-exact, lia-dctcp     0.98 (0.89 to 1.06)
//	mdtcp, mptcpd                 0.98 (0.89 to 1.06)
//	coupled                       0.95 (0.79 to 1.12)
//	balia                         0.95 (0.77 to 1.12)
//	olia                          0.93 (0.86 to 1.01)
//	semicoupled                   0.89 (0.81 to 0.96)
//	coupled-bbr, beside BBR       0.88 (0.78 to 0.99)
//	ewtcp                         0.87 (0.79 to 0.94)
//
// The same beside one Reno, and what one TCP of that kind takes beside it (rows "one
// beside Reno NAME"): of a queue that drops, BBR takes more than a Reno, whose losses
// it hardly answers, and Vegas less, which avoids queues. The one of wvegas is Vegas
// with ten segments queued, and Drain.
//
//	             two subflows          one
//	bbr          5.19 (4.70 to 5.68)   1.84 (1.31 to 2.36)
//	coupled-bbr  1.56 (1.48 to 1.64)   as bbr
//	vegas        0.14 (0.04 to 0.23)   0.18 (0.03 to 0.33)
//	wvegas       0.11 (0.08 to 0.15)   0.05 (0.03 to 0.08)
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
//	default      0.23 (0.22 to 0.25)
//	cubic        0.23 (0.21 to 0.25)
//	vegas        0.22 (0.20 to 0.25)
//	wvegas       0.22 (0.20 to 0.25)
//	dctcp        0.22 (0.20 to 0.24)
//	reno         0.22 (0.20 to 0.24)
//	xmp          0.12 (0.11 to 0.14)
//	lia          0.12 (0.11 to 0.14)
//	lia-dctcp    0.12 (0.11 to 0.14)
//	lia-exact    0.12 (0.11 to 0.14)
//	mdtcp        0.12 (0.11 to 0.14)
//	mptcpd       0.12 (0.11 to 0.14)
//	balia        0.12 (0.10 to 0.13)
//	coupled      0.12 (0.10 to 0.13)
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
