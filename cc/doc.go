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
// # Your own
//
// Write a type with the four methods of Controller, and a Factory that makes
// its Group; give the Factory to a connection, or put it into a Registry and
// choose it by name. What has parameters here is a struct whose zero value has
// the defaults and whose method Group is a Factory, as DCTCP{G: 1./32}.Group.
package cc
