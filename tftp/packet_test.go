package tftp_test

import (
	"strings"
	"testing"

	"drover/tftp"
)

// rrq returns a read request for the file f with options.
func rrq(options ...string) string {
	return "\x00\x01f\x00octet\x00" + strings.Join(append(options, ""), "\x00")
}

func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		name, packet   string
		acked, inForce string
	}{
		{"none", rrq(), "", "1 x 512, 0s"},
		{"OVMF", rrq("tsize", "0", "blksize", "1468", "windowsize", "4"), "tsize 1000000 blksize 1468 windowsize 4", "4 x 1468, 0s"},
		{"U-Boot", rrq("timeout", "5", "blksize", "1468"), "timeout 5 blksize 1468", "1 x 1468, 5s"},
		{"GRUB", rrq("blksize", "1024", "tsize", "0"), "blksize 1024 tsize 1000000", "1 x 1024, 0s"},
		{"names as the client spells them", rrq("BlkSize", "1000", "TSIZE", "0", "WindowSize", "2"), "BlkSize 1000 TSIZE 1000000 WindowSize 2", "2 x 1000, 0s"},
		{"larger than the network", rrq("blksize", "8192"), "blksize 1468", "1 x 1468, 0s"},
		{"larger than there is", rrq("blksize", "65535", "windowsize", "65535"), "blksize 1468 windowsize 64", "64 x 1468, 0s"},
		{"numbers beyond the RFC", rrq("blksize", "1000000000"), "blksize 1468", "1 x 1468, 0s"},
		{"a wait that is too long", rrq("timeout", "255", "blksize", "512"), "blksize 512", "1 x 512, 0s"},
		{"the longest wait", rrq("timeout", "30"), "timeout 30", "1 x 512, 30s"},
		{"unknown ones", rrq("multicast", "", "utimeout", "1000", "rollover", "0", "blksize", "600"), "blksize 600", "1 x 600, 0s"},
		{"one twice", rrq("blksize", "600", "BLKSIZE", "700"), "blksize 600", "1 x 600, 0s"},
		{"no value", rrq("tsize", "0", "blksize"), "tsize 1000000", "1 x 512, 0s"},
		{"a size that is no number", rrq("tsize", ""), "tsize 1000000", "1 x 512, 0s"},
		{"padding", rrq("blksize", "600") + strings.Repeat("\x00", 400), "blksize 600", "1 x 600, 0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			acked, inForce, err := tftp.Negotiate(tt.packet, 1468)
			if acked != tt.acked || inForce != tt.inForce || err != nil {
				t.Errorf("got %q, %q, %v\nwant %q, %q", acked, inForce, err, tt.acked, tt.inForce)
			}
		})
	}
}

func TestOptionsRefused(t *testing.T) {
	for _, tt := range []struct{ name, packet, want string }{
		{"a block too small", rrq("blksize", "7"), `option blksize: value "7" is no number from 8`},
		{"no number", rrq("BLKSIZE", "many"), `option blksize: value "many" is no number from 8`},
		{"less than nothing", rrq("blksize", "-512"), `option blksize: value "-512"`},
		{"no window", rrq("windowsize", "0"), `option windowsize: value "0" is no number from 1`},
		{"no wait", rrq("timeout", "0"), `option timeout: value "0" is no number from 1`},
		{"a wait of text", rrq("timeout", "5s"), `option timeout: value "5s" is no number from 1`},
		{"a number without end", rrq("blksize", strings.Repeat("9", 400)), "is no number"},
		{"no packet", "", "not a request"},
		{"an ACK", "\x00\x04\x00\x01", "not a request"},
		{"no mode", "\x00\x01f\x00", "without file name and mode"},
		{"a mode without end", "\x00\x01f\x00octet", "without file name and mode"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := tftp.Negotiate(tt.packet, 1468)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one with %s", err, tt.want)
			}
		})
	}
}

// TestWindowBytes: the server reduces a window of large blocks, so that the
// bytes that it keeps for sending are bounded.
func TestWindowBytes(t *testing.T) {
	acked, inForce, err := tftp.Negotiate(rrq("windowsize", "16", "blksize", "65464"), 65500)
	if want := "windowsize 4 blksize 65464"; acked != want || inForce != "4 x 65464, 0s" || err != nil {
		t.Errorf("got %q, %q, %v, want %q", acked, inForce, err, want)
	}
}

func FuzzRequest(f *testing.F) {
	for _, s := range []string{"", rrq(), rrq("blksize", "1468", "tsize", "0"), rrq("windowsize", "9", "timeout", "1"), "\x00\x02f\x00octet\x00", "\x00\x01\x00\x00", rrq("blksize")} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, packet string) {
		acked, _, err := tftp.Negotiate(packet, 1468)
		if err != nil {
			return
		}
		// The answer exceeds the request by no more than the digits of a size.
		// The server therefore cannot serve to flood others.
		if len(acked) > len(packet)+20 {
			t.Errorf("%q is answered with %q", packet, acked)
		}
	})
}
