package subflow

// Trim gives up the memory that only data on its way needs, if there is none.
// What comes later gets it anew.
func (s *Subflow) Trim() {
	if s.queue.total > 0 || s.snd.queued() > 0 || len(s.rcv.run.Views) > 0 {
		return
	}
	s.shown = nil
	s.queue.buf, s.queue.head = nil, 0
	s.queue.ranges.Trim()
	s.snd.borders = nil
	s.rcv.run.Views = nil
	if s.rec.phase == phaseOpen && s.rec.undo.armed == undoOff {
		s.rec.episode = &noEpisode
	}
}
