package wire_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// vector is one file of testdata: a heading that names its source, the
// expected reading as Options.String gives it, and the option bytes.
type vector struct {
	name, want string
	options    []byte
}

func vectors(t testing.TB) []vector {
	files, err := filepath.Glob("testdata/*.hex")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var all []vector
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		require.Greater(t, len(lines), 2, f)
		require.True(t, strings.HasPrefix(lines[0], "# RFC "), f)
		want, ok := strings.CutPrefix(lines[1], "= ")
		require.True(t, ok, f)
		all = append(all, vector{
			name:    strings.TrimSuffix(filepath.Base(f), ".hex"),
			want:    want,
			options: unhex(strings.Join(lines[2:], "")),
		})
	}
	return all
}

// unhex reads hexadecimal digits with spaces between.
func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

// header returns a TCP header from port 1000 to 80 with an ACK, and with
// options, to which NOPs are added in front until the length is legal.
func header(options []byte) []byte {
	for len(options)%4 != 0 {
		options = append([]byte{1}, options...)
	}
	b := unhex("03e8 0050 00000001 00000002 5010 ffff 0000 0000")
	b[12] = byte(5+len(options)/4) << 4
	return append(b, options...)
}

// parse reads a header made of these options.
func parse(t testing.TB, options []byte) *wire.Segment {
	t.Helper()
	seg := new(wire.Segment)
	require.Equal(t, reason.DropNone, wire.Parse(header(options), seg))
	return seg
}

func TestVectorsReadAndBuildBack(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.name, func(t *testing.T) {
			seg := parse(t, v.options)
			require.Equal(t, v.want, seg.Options.String())
			require.Zero(t, seg.Bad)
			require.Equal(t, len(v.options), seg.Size())

			for _, payload := range [][][]byte{nil, {[]byte("hello")}} {
				seg.Payload = payload
				var b [wire.MaxHeader]byte
				n := wire.Build(&b, seg)
				require.Equal(t, hex.EncodeToString(v.options), hex.EncodeToString(b[wire.HeaderSize:n]))
			}
		})
	}
}

// A cut option list is refused, unless the cut falls between options.
func TestVectorsCutAtEveryByte(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.name, func(t *testing.T) {
			whole := parse(t, v.options)
			full := header(v.options)
			for n := range full {
				want := reason.DropOffset
				if n < wire.HeaderSize {
					want = reason.DropShort
				}
				require.Equal(t, want, wire.Parse(full[:n], new(wire.Segment)))
			}
			for n := range v.options {
				cut := new(wire.Segment)
				if drop := wire.Parse(header(v.options[:n]), cut); drop != reason.DropNone {
					require.Equal(t, reason.DropOption, drop)
					continue
				}
				require.Zero(t, cut.Bad)
				require.Zero(t, cut.Has&^whole.Has)
				common := whole.Options
				common.Has = cut.Has
				require.True(t, cut.Options.Equal(&common))
			}
		})
	}
}

// Whatever the length byte of an option says, reading ends.
func TestVectorsWithEveryLengthByte(t *testing.T) {
	for _, v := range vectors(t) {
		if v.options[0] == 1 {
			continue // begins with padding
		}
		for n := range 256 {
			b := append([]byte(nil), v.options...)
			b[1] = byte(n)
			drop := wire.Parse(header(b), new(wire.Segment))
			if n < 2 || n > len(b) {
				require.Equal(t, reason.DropOption, drop, "%s length %d", v.name, n)
			}
		}
	}
}
