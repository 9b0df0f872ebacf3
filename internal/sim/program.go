package sim

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
)

// chunk is how much a Program writes or reads at once, at most.
const chunk = 32 << 10

// Program is an App that sends bytes of a known pattern, reads and checks what
// its peer sends, and closes when both are done.
type Program struct {
	Send, Receive int64
	ReadRate      float64 // bytes/s; 0 = at once
	StayOpen      bool    // keep the connection when both are done
	// MayAlter says that wrong bytes are counted instead of being a violation:
	// a box on the way alters them.
	MayAlter bool

	Sent, Received int64
	Begun          mono.Time    // first write
	FirstByte      mono.Time    // first byte read
	LastByte       mono.Time    // last byte read
	EOF            bool         // the peer's end was read
	Ended          mono.Time    // the connection was over
	Close          reason.Close // how it ended
	Wrong          int64        // bytes read that were not those sent

	out, in pattern
	shut    bool // CloseWrite was called
	closed  bool // Close was called, or Stop
	waking  bool // a Wake is on its way
}

// Delivered reports whether every byte expected was read, and the end after
// them unless the connection is kept.
func (p *Program) Delivered() bool {
	return p.Received == p.Receive && (p.EOF || p.StayOpen)
}

// Goodput returns the bytes/s read between the first and the last.
func (p *Program) Goodput() float64 {
	return float64(p.Received) / p.LastByte.Sub(p.FirstByte).Seconds()
}

// Stop makes the program leave its connection alone from now on.
func (p *Program) Stop() { p.closed = true }

// Ready implements App.
func (p *Program) Ready(now mono.Time, c *Conn) (acted bool) {
	if c.Closed() && p.Ended == 0 {
		p.Ended, p.Close = now, c.Err()
	}
	if !c.Connected() && !c.Held() || p.closed {
		return false
	}
	// What arrived stays to be read after the connection is over.
	acted = p.read(now, c)
	if c.Closed() {
		return acted
	}
	return p.write(now, c) || p.finish(now, c) || acted
}

// write sends what is left to send and finds room.
func (p *Program) write(now mono.Time, c *Conn) (acted bool) {
	for p.Sent < p.Send && c.WriteRoom() > 0 {
		if p.Begun == 0 {
			p.Begun = now
		}
		b := c.node.sim.scratch[:min(int64(chunk), p.Send-p.Sent)]
		if !c.node.sim.fast {
			p.out.fill(b, uint64(p.Sent))
		}
		n := c.Write(now, b)
		if n <= 0 {
			c.node.sim.violate("%s: a write took %d bytes although there was room", c.node.Name, n)
			return acted
		}
		p.Sent += int64(n)
		acted = true
	}
	if p.Sent == p.Send && !p.shut && !p.StayOpen {
		p.shut, acted = true, true
		c.CloseWrite(now)
	}
	return acted
}

// read takes and checks what arrived, at the rate it is meant to be read.
func (p *Program) read(now mono.Time, c *Conn) (acted bool) {
	for c.Readable() > 0 {
		n := p.quota(now, c)
		if n == 0 {
			return acted
		}
		if c.node.sim.fast {
			n = min(n, c.Readable())
			c.Discard(now, n) // there is nothing to see
		} else {
			b := c.node.sim.scratch[:n]
			n = c.Read(now, b)
			p.check(c, b[:n])
		}
		if p.FirstByte == 0 {
			p.FirstByte = now
		}
		p.Received, p.LastByte, acted = p.Received+int64(n), now, true
		if p.Received > p.Receive {
			c.node.sim.violate("%s: %d bytes arrived, %d were sent", c.node.Name, p.Received, p.Receive)
		}
	}
	if c.EOF() && !p.EOF {
		p.EOF, acted = true, true
		if p.Received != p.Receive {
			c.node.sim.violate("%s: the stream ended after %d bytes of %d", c.node.Name, p.Received, p.Receive)
		}
	}
	return acted
}

// check compares what was read with what was sent.
func (p *Program) check(c *Conn, b []byte) {
	for off := uint64(p.Received); ; {
		i := p.in.check(b, off)
		if i < 0 {
			return
		}
		p.Wrong++
		if !p.MayAlter {
			c.node.sim.violate("%s: byte %d of the stream is wrong", c.node.Name, off+uint64(i))
			return
		}
		b, off = b[i+1:], off+uint64(i)+1
	}
}

// quota returns how many bytes may be read now. If none, it sees to being
// called again.
func (p *Program) quota(now mono.Time, c *Conn) int {
	if p.ReadRate == 0 {
		return chunk
	}
	if p.FirstByte == 0 {
		p.FirstByte = now
	}
	const least = 1024
	due := int64(p.ReadRate*now.Sub(p.FirstByte).Seconds()) - p.Received
	if due >= least {
		return int(min(due, chunk))
	}
	if !p.waking {
		p.waking = true
		c.node.sim.After(time.Duration(float64(2*least-due)/p.ReadRate*float64(time.Second)), func() {
			p.waking = false
			c.Wake()
		})
	}
	return 0
}

// finish closes the connection when nothing more is to be done.
func (p *Program) finish(now mono.Time, c *Conn) (acted bool) {
	if p.closed || p.StayOpen || !p.shut || !p.EOF {
		return false
	}
	p.closed = true
	c.Close(now)
	return true
}
