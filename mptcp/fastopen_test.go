package mptcp_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/mptcp"
)

// fast is a pair with links of 20 ms round trip that opens fast.
func fast(edit ...func(*mptcp.Config)) setup {
	cfg := &mptcp.Config{FastOpen: true}
	for _, f := range edit {
		f(cfg)
	}
	return setup{client: cfg, server: cfg, links: []link.Config{delayed, delayed}}
}

// answer accepts connections and answers n bytes with as many.
func (p *pair) answer(l *mptcp.Listener, n int) {
	go func() {
		for {
			c, err := l.AcceptMPTCP()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				b := make([]byte, n)
				if _, err := io.ReadFull(c, b); err != nil {
					return
				}
				c.Write(b)
				io.Copy(io.Discard, c)
			}()
		}
	}()
}

// ask dials, sends what and reads the answer.
func (p *pair) ask(what string) (c *mptcp.Conn, took time.Duration) {
	p.Helper()
	begun := time.Now()
	c = p.dial()
	require.NoError(p, write(c, what))
	b := make([]byte, len(what))
	_, err := io.ReadFull(c, b)
	require.NoError(p, err)
	require.Equal(p, what, string(b))
	return c, time.Since(begun)
}

// The first connection takes a round trip for its handshake and one for the
// question; later ones take one for both.
func TestFastOpenSavesARoundTrip(t *testing.T) {
	const rtt = 20 * time.Millisecond
	for name, edit := range map[string]func(*mptcp.Config){
		"mptcp":    func(*mptcp.Config) {},
		"checksum": func(c *mptcp.Config) { c.Checksum = true },
		"plain":    func(c *mptcp.Config) { c.Plain = true },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, fast(edit), func(p *pair) {
				l := p.listen()
				defer l.Close()
				p.answer(l, 5)
				c, took := p.ask("first")
				require.Equal(p, 2*rtt, took)
				require.Zero(p, c.Info().SYNData)
				for range 3 {
					c, took = p.ask("again")
					require.Equal(p, rtt, took)
					require.Equal(p, 5, c.Info().SYNData)
				}
				require.EqualValues(p, 3, p.client.Counters().MIB["TCPFastOpenActive"])
				require.EqualValues(p, 3, p.server.Counters().MIB["TCPFastOpenPassive"])
				require.EqualValues(p, 1, p.server.Counters().MIB["TCPFastOpenCookieReqd"])
				settle(time.Second)
				is, err := c.MultipathTCP()
				require.NoError(p, err)
				require.Equal(p, name != "plain", is)
				if is {
					require.Equal(p, 2, c.Info().Subflows, "joins follow as ever")
				}
			})
		})
	}
}

// A dial returns at once and sends nothing; a call of Read, of CloseWrite or of
// AddSubflow sends the SYN all the same.
func TestFastOpenDialWaitsForData(t *testing.T) {
	for name, begin := range map[string]struct {
		call  func(c *mptcp.Conn)
		after time.Duration // when the server has the connection
	}{
		"nothing":    {func(*mptcp.Conn) {}, 0},
		"read":       {func(c *mptcp.Conn) { go c.Read(make([]byte, 1)) }, 15 * time.Millisecond},
		"write to":   {func(c *mptcp.Conn) { go c.WriteTo(io.Discard) }, 15 * time.Millisecond},
		"half close": {func(c *mptcp.Conn) { c.CloseWrite() }, 10 * time.Millisecond},
		"join":       {func(c *mptcp.Conn) { go c.AddSubflow(context.Background(), mptcp.SubflowConfig{}) }, 10 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, fast(), func(p *pair) {
				l := p.listen()
				defer l.Close()
				p.dial().Close()
				old, err := l.Accept()
				require.NoError(p, err)
				old.Close()
				settle(time.Second)
				begun := time.Now()
				c := p.dial()
				require.Zero(p, time.Since(begun))
				require.Equal(p, "OPENING", c.Info().State)
				begin.call(c)
				l.SetDeadline(time.Now().Add(time.Minute))
				s, err := l.AcceptMPTCP()
				if begin.after == 0 {
					require.ErrorIs(p, err, os.ErrDeadlineExceeded)
					return
				}
				require.NoError(p, err)
				p.conns = append(p.conns, s)
				require.Equal(p, begin.after, time.Since(begun), "before the third ACK")
			})
		})
	}
}

// A goroutine that reads first does not cost the one that writes its place on
// the SYN.
func TestFastOpenReaderGivesWriterTime(t *testing.T) {
	inBubble(t, fast(), func(p *pair) {
		l := p.listen()
		defer l.Close()
		p.answer(l, 5)
		p.ask("first")
		c := p.dial()
		got := make(chan error)
		go func() {
			_, err := io.ReadFull(c, make([]byte, 5))
			got <- err
		}()
		time.Sleep(time.Millisecond)
		require.NoError(p, write(c, "again"))
		require.NoError(p, <-got)
		require.Equal(p, 5, c.Info().SYNData)
	})
}

// What becomes of the handshake is the error of calls after Dial.
func TestFastOpenErrorsComeLate(t *testing.T) {
	inBubble(t, fast(), func(p *pair) {
		l := p.listen()
		p.answer(l, 5)
		p.ask("first")
		require.NoError(p, l.Close())
		c := p.dial()
		require.NoError(p, write(c, "again"))
		_, err := c.Read(make([]byte, 5))
		require.ErrorIs(p, err, syscall.ECONNREFUSED)
		_, err = c.Write([]byte("x"))
		require.ErrorIs(p, err, syscall.ECONNREFUSED)

		c = p.dial()
		c.SetReadDeadline(time.Now().Add(time.Millisecond))
		_, err = c.Read(make([]byte, 5))
		require.ErrorIs(p, err, os.ErrDeadlineExceeded)
		require.NoError(p, c.Close())
		_, err = c.Read(make([]byte, 5))
		require.ErrorIs(p, err, net.ErrClosed)
	})
}

// Bytes written before Close are delivered although nothing was sent before.
func TestFastOpenWriteAndClose(t *testing.T) {
	inBubble(t, fast(), func(p *pair) {
		l := p.listen()
		defer l.Close()
		for i := range 2 {
			c := p.dial()
			want := fmt.Sprintf("message %d", i)
			require.NoError(p, write(c, want))
			require.NoError(p, c.Close())
			s, err := l.Accept()
			require.NoError(p, err)
			got, err := io.ReadAll(s)
			require.NoError(p, err)
			require.Equal(p, want, string(got))
			s.Close()
		}
		require.EqualValues(p, 1, p.client.Counters().MIB["TCPFastOpenActive"])
	})
}

// A client of package net/http, which reads from one goroutine and writes from
// another, opens fast without knowing of it.
func TestFastOpenHTTP(t *testing.T) {
	inBubble(t, fast(), func(p *pair) {
		l := p.listen()
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })}
		served := make(chan error)
		go func() { served <- srv.Serve(l) }()
		d := mptcp.Dialer{Stack: p.client.Stack}
		client := http.Client{Transport: &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true}}
		for range 3 {
			resp, err := client.Get("http://" + p.target().String())
			require.NoError(p, err)
			b, err := io.ReadAll(resp.Body)
			require.NoError(p, err)
			require.NoError(p, resp.Body.Close())
			require.Equal(p, "hello", string(b))
		}
		require.EqualValues(p, 2, p.client.Counters().MIB["TCPFastOpenActive"])
		require.EqualValues(p, 2, p.server.Counters().MIB["TCPFastOpenPassive"])
		srv.Close()
		<-served
	})
}
