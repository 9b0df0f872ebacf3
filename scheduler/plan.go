package scheduler

// ReasonPlan says that the bytes were meant for the subflow when it was
// planned who sends what.
const ReasonPlan Reason = "as planned"

// Plan says, ahead of time, which subflow sends which bytes of the stream. A
// policy that plans makes one with Begin and Give, and returns what Next says
// until it reports that the plan is at its end. The zero value is a plan at its
// end.
type Plan struct {
	shares []share
	ids    []int // of the subflows that have shares
	end    int64 // of the bytes that were planned
}

// share is a range of the stream that is meant for a subflow.
type share struct {
	who      int // index in Plan.ids
	from, to int64
}

// Begin makes a new plan for the bytes from v.First on.
func (p *Plan) Begin(v *View) { p.shares, p.ids, p.end = p.shares[:0], p.ids[:0], v.First }

// Give plans the next bytes for subflow s. At most MaxSubflows can have some.
func (p *Plan) Give(s *Subflow, bytes int64) {
	who := 0
	for who < len(p.ids) && p.ids[who] != s.ID {
		who++
	}
	if bytes <= 0 || who == MaxSubflows {
		return
	}
	if who == len(p.ids) {
		p.ids = append(p.ids, s.ID)
	}
	from := p.end
	p.end += bytes
	if n := len(p.shares); n > 0 && p.shares[n-1].who == who {
		p.shares[n-1].to = p.end
		return
	}
	p.shares = append(p.shares, share{who, from, p.end})
}

// Next returns what the plan says about a question of kind Fresh: send on the
// subflow that has room and what comes first of what is left to send, or wait
// for one. It reports false if the plan is at its end, or can't be followed
// because a subflow of it is not among set: then it is time for another.
func (p *Plan) Next(v *View, set uint64) (Decision, bool) {
	done := 0
	for done < len(p.shares) && p.shares[done].to <= v.First {
		done++
	}
	p.shares = append(p.shares[:0], p.shares[done:]...)
	var place [MaxSubflows]int
	for who, id := range p.ids {
		i := v.index(id)
		if i < 0 || set>>i&1 == 0 {
			p.shares = p.shares[:0]
			break
		}
		place[who] = i
	}
	seen, left := uint64(0), false
	for k := range p.shares {
		sh := &p.shares[k]
		s := &v.Subflows[place[sh.who]]
		from := max(sh.from, v.First)
		if from < s.Reach && s.Reach <= p.end {
			from = s.Reach // it sends its shares in order
		}
		if from >= sh.to || seen>>sh.who&1 != 0 {
			continue
		}
		left = true
		if s.Room > 0 {
			return Decision{
				Send: 1 << place[sh.who], Offset: from - v.First, Bytes: int(min(sh.to-from, 1<<30)), Reason: ReasonPlan,
			}, true
		}
		if seen |= 1 << sh.who; seen == 1<<len(p.ids)-1 {
			break
		}
	}
	return wait(ReasonNoRoom), left
}

// index returns the place of a subflow in the view, -1 if it is not there.
func (v *View) index(id int) int {
	for i := range v.Subflows {
		if v.Subflows[i].ID == id {
			return i
		}
	}
	return -1
}
