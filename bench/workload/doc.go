// Package workload is what users do with a network, in the virtual time of
// package sim: flows that arrive by chance, files, web pages, video, bulk
// transfers, questions and answers. Everything random is drawn from sources
// that the caller gives, so that schemes can be compared on the same arrivals
// and sizes.
//
// A Server listens at a node; a Session is one connection to it, over which
// exchanges follow one another: so many bytes to the server, then so many back.
// The contents are zeros; what the server answers it learns from the Session
// and not from the bytes. The other types are made of these:
//
//	srv, err := workload.NewServer(net.Sim, net.B, addr, conn)
//	flows := workload.Flows{Rate: 100, Sizes: workload.S1(100e6), Rand: rng}
//	flows.Start(net.Sim, until, func(f *workload.Flow) { srv.Send(net.A, netip.AddrPort{}, conn, f, nil) })
//
// Times are mono.Time of the simulation; a time that has not come is zero.
package workload
