package sim_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/sim"
	"github.com/gomptcp/gomptcp/internal/wire"
)

func TestStrip(t *testing.T) {
	_ = rand.IntN
	for _, sizes := range []int64{3000, 40000, 200000} {
		for _, paths := range []int{1, 2} {
			for _, loss := range []float64{0, 0.02} {
				for _, dir := range []string{"AB", "BA", "both"} {
					for _, from := range []time.Duration{0, 50 * time.Millisecond, 150 * time.Millisecond} {
						for _, data := range []string{"AB", "BA", "both", "BAlate"} {
							for _, csum := range []bool{false, true} {
								name := fmt.Sprintf("size %d paths=%d loss=%v dir=%s from=%v data=%s csum=%v", sizes, paths, loss, dir, from, data, csum)
								t.Run(name, func(t *testing.T) {
									for seed := uint64(1); seed <= *seeds; seed++ {
										shapes := fastAndSlow()[:paths]
										for i := range shapes {
											shapes[i].AB.Loss, shapes[i].BA.Loss = loss, loss
										}
										p := sim.TwoHosts(sim.PairConfig{Seed: seed, Paths: shapes})
										box := strip(wire.OptMPTCP, func(seg *wire.Segment) bool { return !isSYN(seg) && p.Elapsed() >= from })
										dbg := func(n string, b sim.Box) sim.Box {
											if *oneSeed == 0 {
												return b
											}
											return func(now mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
												fmt.Println(n, p.Elapsed(), seg)
												if b == nil {
													forward(seg)
												} else {
													b(now, seg, forward)
												}
											}
										}
										var bab, bba sim.Box
										if dir != "BA" {
											bab = box
										}
										if dir != "AB" {
											bba = box
										}
										p.Links[0].AB.SetBox(dbg("->", bab))
										p.Links[0].BA.SetBox(dbg("<-", bba))
										cfg := sim.DefaultConn()
										cfg.Checksum = csum
										tc := sim.TransferConfig{ConnA: cfg, ConnB: cfg}
										if data != "BA" && data != "BAlate" {
											tc.AB = sizes
										}
										if data != "AB" {
											tc.BA = sizes
										}
										tr := p.Start(tc)
										if !p.RunUntil(20*time.Minute, func() bool {
											return tr.Delivered() || tr.ConnA.Closed() && (tr.ConnB == nil || tr.ConnB.Closed())
										}) {
											b := tr.ConnA.Info()
											if tr.ConnB != nil {
												b = tr.ConnB.Info()
											}
											t.Errorf("stuck\nA %+v\nB %+v", tr.ConnA.Info(), b)
											stats(tr.ConnA)
											stats(tr.ConnB)
											return
										}
										if v := p.Violations(); len(v) > 0 {
											t.Error(v)
											return
										}
										if !tr.Delivered() && (from == 0 || paths == 2) {
											t.Error("not delivered", tr.ConnA.Err(), tr.ConnB.Err(), tr.ProgramA.Received, tr.ProgramB.Received, tr.ConnA.Fallback(), tr.ConnB.Fallback())
											return
										}
									}
								})
							}
						}
					}
				}
			}
		}
	}
}
