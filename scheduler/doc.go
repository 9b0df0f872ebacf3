// Package scheduler decides which subflow carries the next range of data.
//
// A Scheduler is made for each connection and is a function of the View it is
// shown and of its own memory. It is called under the connection's lock: it
// must not block, keep time, or be shared between connections. Memory for the
// whole connection is the Scheduler itself; memory for each subflow is
// PerSubflow.
//
// The policies by name, with their source. "Ours" marks those whose source
// gives no algorithm, or none that is complete, and which are reconstructed
// here from what it says.
//
//	minrtt                   least RTT with room; opportunistic retransmission and
//	                         penalisation (Raiciu et al., NSDI 2012; Linux mptcp_sched.c)
//	minrtt-plain             the same without the two
//	roundrobin               in turn (Linux mptcp_rr.c)
//	weighted                 in turn by weight, in bytes
//	redundant                everything on every subflow (ReMP; Linux mptcp_redundant.c)
//	opportunistic-redundant  new data on every subflow with room at that moment (ProgMP)
//	redundant-idle           minrtt-plain; repeats when there is nothing new (ProgMP)
//	blest                    waits when the slow subflow would block the window
//	                         (Ferlin et al., IFIP Networking 2016)
//	ecf                      waits when the fast subflow would finish sooner (Lim et al., CoNEXT 2017)
//	daps                     plans so that data arrives in order (Kuhn et al., ICC 2014)
//	otias                    least arrival time, queueing on full subflows (Yang et al., WAINA 2014)
//	sttf                     least transfer time, slow start included (Hurtig et al., ToN 2019)
//	dems                     two subflows from both ends of a chunk (Guo et al., MobiCom 2017; ours)
//	stms                     the slow subflow sends what is due later (Shi et al., ATC 2018; ours)
//	qaware                   least local queue and delay (Shreedhar et al., IFIP Networking 2018; ours)
//	capacity                 in proportion to capacity without congestion (ours)
//	jitter-aware             least arrival time, jitter included (Chan et al., WCNC 2016; ours)
//	linux                    least time to drain (Linux net/mptcp/protocol.c)
//	ada                      one subflow for the first 100 KiB, then minrtt-plain (DCMPTCP)
//	fsfs                     as many of the fastest subflows as the flow's size deserves (MPTCP-FSFS)
//	sctc-literal             SCTC as its pseudocode says
//	sctc-planned             SCTC as its equations say (ours)
//	sctc-optimal             the exact optimum of SCTC's problem (ours)
//	default                  see Default
//
// Two of the field are no schedulers. Adaptive path isolation ("Freeway") is a
// path manager, mptcp's "freeway". Packet scatter that becomes MPTCP (MMPTCP)
// sends packets of one sequence space over many paths, which no subflow can do:
// only simulations have it (experiment mmptcp of bench/run), where routers spray
// them.
package scheduler
