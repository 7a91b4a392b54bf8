package dhcp_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/pools/resolve"
)

// unfold returns the options of a reply as a client reads them: the options
// field, then the file and sname fields if option 52 names them.
func unfold(t *testing.T, b []byte) dhcpv4.Options {
	t.Helper()
	o := dhcpv4.Options{}
	add := func(field []byte, where string) {
		for len(field) > 0 && field[0] != 255 {
			if field[0] == 0 {
				field = field[1:]
				continue
			}
			if len(field) < 2 || len(field) < 2+int(field[1]) {
				t.Fatalf("option %d is cut off in %s", field[0], where)
			}
			o[field[0]] = append(o[field[0]], field[2:2+int(field[1])]...)
			field = field[2+int(field[1]):]
		}
		if len(field) == 0 {
			t.Errorf("%s has no END", where)
		}
	}
	add(b[240:], "options")
	flags := append(o[52], 0)[0]
	if flags&1 != 0 {
		add(b[108:236], "file")
	}
	if flags&2 != 0 {
		add(b[44:108], "sname")
	}
	return o
}

func TestOptionsInOtherFields(t *testing.T) {
	fill := func(code uint8, n int) resolve.Option {
		return resolve.Option{Code: code, Data: bytes.Repeat([]byte{code}, n)}
	}
	system, boots := message(web1, discover), message(web1, discover, arch(0))
	for _, tt := range []struct {
		name    string
		in      *dhcpv4.DHCPv4
		options []resolve.Option
		flags   byte
		left    []uint8
	}{
		{"all fit", system, []resolve.Option{fill(100, 230)}, 0, nil},
		{"file is enough", system, []resolve.Option{fill(100, 120), fill(101, 124)}, 1, nil},
		{"sname too", system, []resolve.Option{fill(100, 200), fill(101, 124), fill(102, 60)}, 3, nil},
		{"too long by one", system, []resolve.Option{fill(100, 200), fill(101, 125), fill(102, 60)}, 1, []uint8{101}},
		{"file holds the boot file", boots, []resolve.Option{fill(100, 180), fill(101, 60)}, 2, nil},
		{"one is too much", system, []resolve.Option{fill(100, 120), fill(101, 120), fill(102, 120)}, 1, []uint8{102}},
		{"one is too long for any field", system, []resolve.Option{fill(100, 300), fill(101, 200)}, 0, []uint8{100}},
		{"no room but for what boots", boots, []resolve.Option{fill(100, 120), fill(101, 120), fill(102, 120)}, 0, []uint8{101, 102}},
		{"an operator's router list", system, []resolve.Option{fill(3, 400)}, 0, []uint8{3}},
		{"an operator's vendor options go first", message(web1, discover, rom), []resolve.Option{fill(42, 120), fill(43, 200)}, 2, []uint8{42}},
		{"an operator's vendor options are too long", message(web1, discover, rom), []resolve.Option{fill(43, 400)}, 0, []uint8{43}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := newServer()
			s.Farm = farm{Options: tt.options}
			r, x := s.Reply(on(t, tt.in), noon)
			b := r.ToBytes()
			if len(b) > 548 {
				t.Errorf("got %d bytes, want at most 548", len(b))
			}
			got := unfold(t, b)
			if flags := append(got[52], 0)[0]; flags != tt.flags {
				t.Errorf("got overload %d, want %d", flags, tt.flags)
			}
			for _, opt := range tt.options {
				want := opt.Data
				if slices.Contains(tt.left, opt.Code) {
					want = nil
				}
				if !bytes.Equal(got[opt.Code], want) {
					t.Errorf("option %d: got %d bytes, want %d", opt.Code, len(got[opt.Code]), len(want))
				}
			}
			want := ""
			if tt.left != nil {
				want = fmt.Sprintf("answer too long for the client: left out options %d", tt.left)
			}
			if x.Warning != want {
				t.Errorf("got warning %q, want %q", x.Warning, want)
			}
			for _, code := range []uint8{1, 51, 53, 54} {
				if got[code] == nil {
					t.Errorf("option %d is missing", code)
				}
			}
		})
	}
}

// TestPieces: long options are sent in pieces, one directly after the other
// (RFC 3396).
func TestPieces(t *testing.T) {
	s, _ := newServer()
	long := make([]byte, 600)
	for i := range long {
		long[i] = byte(i)
	}
	s.Farm = farm{Options: []resolve.Option{{Code: 121, Data: long}}}
	r, x := s.Reply(on(t, message(web1, discover, option(57, 5, 0xdc))), noon)
	if got := unfold(t, r.ToBytes())[121]; !bytes.Equal(got, long) || x.Warning != "" {
		t.Errorf("got %d bytes, warning %q", len(got), x.Warning)
	}
}

func TestTooLongForTheClient(t *testing.T) {
	s, _ := newServer()
	big := bytes.Repeat([]byte{7}, 300)
	s.Farm = farm{Options: []resolve.Option{{Code: 119, Data: big}, {Code: 121, Data: big}}}
	for _, tt := range []struct {
		name    string
		size    []byte // option 57
		left    []uint8
		longest int
	}{
		{"a client that says nothing", nil, []uint8{119, 121}, 548},
		{"a client that says less than it must", []byte{0, 100}, []uint8{119, 121}, 548},
		{"room for one", []byte{3, 132}, []uint8{121}, 900 - 28},
		{"room for all", []byte{5, 192}, nil, 1472},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := message(web1, discover, arch(0))
			if tt.size != nil {
				in.Options[57] = tt.size
			}
			r, x := s.Reply(on(t, in), noon)
			for _, c := range []uint8{119, 121} {
				_, got := r.Options[c]
				if want := !bytes.Contains(tt.left, []byte{c}); got != want {
					t.Errorf("option %d: got %t, want %t", c, got, want)
				}
			}
			if got := len(r.ToBytes()); got > tt.longest {
				t.Errorf("got %d bytes, want at most %d", got, tt.longest)
			}
			if got, want := x.Warning != "", tt.left != nil; got != want {
				t.Errorf("got warning %q", x.Warning)
			}
			if r.Options[67] == nil || r.Options[51] == nil {
				t.Error("what it needs to boot was left out")
			}
		})
	}
}
