package pathmgr

import (
	"slices"
	"time"

	"github.com/gomptcp/gomptcp/internal/reason"
)

// Bounds of the time before a pair that failed is tried again. It doubles
// with each failure until a subflow between the pair is established.
const (
	retryFirst = time.Second
	retryMost  = time.Minute
)

// verdict says what the end of a subflow means for opening it again.
type verdict uint8

const (
	shunPair   verdict = iota // not between these addresses
	shunRemote                // not to this address and port, from wherever
	tryAgain                  // after a time
)

// judge tells failures of the path, which pass, from subflows that one of the
// hosts did not want.
func judge(e *Event) verdict {
	switch e.Close {
	case reason.CloseTimeout, reason.CloseKeepalive, reason.CloseUnreachable, reason.CloseAddressGone:
		return tryAgain
	case reason.CloseRemoteReset:
		if e.Transient {
			return tryAgain
		}
	case reason.CloseRefused:
		// A plain RST is how closed ports and firewalls refuse: an answer to
		// our SYN must say more to be worth a repetition.
		if e.Transient && e.Reset != reason.ResetUnspecified {
			return tryAgain
		}
		return shunRemote
	case reason.CloseHandshake:
		// RFC 8684, Section 3.9.3: "if an MP_JOIN fails, it SHOULD NOT attempt
		// to connect to the same IP address and port during the lifetime of
		// the connection, unless the other host refreshes the information
		// with another ADD_ADDR option".
		return shunRemote
	}
	// RFC 8684, Section 3.6: "If the error condition is considered to be
	// Permanent, the receiver of the RST segment SHOULD NOT try to
	// re-establish a subflow for this connection over this path." What was
	// closed in order or by command stays closed too.
	return shunPair
}

// failure is a pair whose last subflow ended.
type failure struct {
	pair     pair
	remoteID uint8
	verdict  verdict
	wait     time.Duration // with tryAgain: how long this time
	until    time.Duration // with tryAgain: when the pair may be tried
}

// failures are the pairs of one connection that are not to be tried now. They
// are few: never more than pairs of addresses that are known.
type failures []failure

// add notes the end of a subflow of the pair. If it was the last of its
// connection and ended by a RST, it shows at once what the RST was worth: the
// peer refuses another if it does not know the connection any more.
func (f *failures) add(p pair, e *Event, last bool) {
	n := failure{pair: p, remoteID: e.RemoteID, verdict: judge(e), wait: retryFirst}
	i := f.index(p)
	n.until = e.Now + n.wait
	if last && i < 0 && e.Close == reason.CloseRemoteReset {
		n.until = e.Now
	}
	if i >= 0 && (*f)[i].verdict == tryAgain {
		if n.verdict == tryAgain && e.Now < (*f)[i].until {
			// Another subflow of the pair met the same trouble.
			return
		}
		n.wait = min(2*(*f)[i].wait, retryMost)
		n.until = e.Now + n.wait
	}
	f.forget(func(x *failure) bool {
		return x.pair == p || n.verdict == shunRemote && x.pair.remote == p.remote
	})
	*f = append(*f, n)
}

// forget drops the failures that match.
func (f *failures) forget(match func(*failure) bool) {
	*f = slices.DeleteFunc(*f, func(x failure) bool { return match(&x) })
}

func (f *failures) index(p pair) int {
	return slices.IndexFunc(*f, func(x failure) bool { return x.pair == p })
}

// bars reports whether the pair is not to be tried at now.
func (f *failures) bars(p pair, now time.Duration) bool {
	for _, x := range *f {
		switch x.verdict {
		case shunPair:
			if x.pair == p {
				return true
			}
		case shunRemote:
			if x.pair.remote == p.remote {
				return true
			}
		case tryAgain:
			if x.pair == p && x.until > now {
				return true
			}
		}
	}
	return false
}

// next returns when the next pair may be tried after now; 0 if none waits.
func (f *failures) next(now time.Duration) time.Duration {
	var at time.Duration
	for _, x := range *f {
		if x.verdict == tryAgain && x.until > now && (at == 0 || x.until < at) {
			at = x.until
		}
	}
	return at
}
