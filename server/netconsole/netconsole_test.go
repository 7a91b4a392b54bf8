package netconsole_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/pools"
	"drover/server/netconsole"
)

func TestParse(t *testing.T) {
	nonce := strings.Repeat("0af9", 16)
	for _, tt := range []struct {
		name, datagram string
		want           []string
	}{
		{"netconsole", "[    1.234567] virtio_net virtio0 eth0: renamed from ens3\n", []string{"[    1.234567] virtio_net virtio0 eth0: renamed from ens3"}},
		{"extended", "6,416,1758426,-,caller=T1;virtio_net: found\n SUBSYSTEM=virtio\n DEVICE=+virtio:virtio0\n", []string{"[    1.758426] virtio_net: found"}},
		{"extended, with the release", "6.1.0-50-amd64,4,17,12000001758426,-;a\n", []string{"[12000001.758426] a"}},
		{"a fragment", "6,416,1758426,-,ncfrag=0/33;the first half", []string{"[    1.758426] the first half"}},
		{"no header", "6,416,-;text", []string{"6,416,-;text"}},
		{"syslog", "<30>Oct 11 22:14:15 m1c29 kubelet[812]: started", []string{"Oct 11 22:14:15 m1c29 kubelet[812]: started"}},
		{"newer syslog", "<165>1 2026-10-11T22:14:15Z m1 app - ID47 - text", []string{"1 2026-10-11T22:14:15Z m1 app - ID47 - text"}},
		{"no priority", "<b>text</b> <999>x", []string{"<b>text</b> <999>x"}},
		{"two lines", "a\r\n\nb\n", []string{"a", "b"}},
		{"what does not print", "\x1b[31mred\xff\u202e\x00", []string{"?[31mred??"}},
		{"a nonce", "Command line: quiet drover.nonce=" + nonce + " ip=dhcp", []string{"Command line: quiet drover.nonce=… ip=dhcp"}},
		{"a nonce in capitals", "DROVER.NONCE=" + strings.ToUpper(nonce) + " ip=dhcp", []string{"DROVER.NONCE=… ip=dhcp"}},
		{"a nonce in quotes", `init: drover.nonce="` + nonce + `" 'drover.nonce'='` + nonce + `'`, []string{`init: drover.nonce="… 'drover.nonce'='…`}},
		{"a nonce with a NUL", "drover.nonce=" + nonce[:9] + "\x00" + nonce[9:] + " x", []string{"drover.nonce=… x"}},
		{"a nonce with what the kernel escapes", "6,416,1758426,-;drover.nonce=" + nonce[:9] + `\x00` + nonce[9:] + " x", []string{"[    1.758426] drover.nonce=… x"}},
		{"a nonce with a control character", "x" + nonce[:30] + "\x1b" + nonce[30:] + " x", []string{"x… x"}},
		{"a nonce without its name", "unknown parameter nonce " + nonce + ", ignored", []string{"unknown parameter nonce …, ignored"}},
		{"the second half of a nonce", "6,416,1758426,-,ncfrag=33/66;" + nonce[20:] + " ip=dhcp", []string{"[    1.758426] … ip=dhcp"}},
		{"other digits", "md5 " + nonce[:32] + " 0x0000fffe0000", []string{"md5 " + nonce[:32] + " 0x0000fffe0000"}},
		{"a token", "couldn't use abcdef.0123456789abcdef", []string{"couldn't use [token]"}},
		{"nothing", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := netconsole.Parse([]byte(tt.datagram)); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("6,416,1758426,-;text\n SUBSYSTEM=virtio\n<30>x\n"))
	f.Add([]byte("drover.nonce=00ff \x1b[31m\n"))
	f.Fuzz(func(t *testing.T, datagram []byte) {
		lines := netconsole.Parse(datagram)
		if len(lines) > 64 {
			t.Errorf("%d lines", len(lines))
		}
		for _, l := range lines {
			if len(l) > 512 || l == "" || strings.ContainsAny(l, "\n\x1b\x00") {
				t.Errorf("got %q", l)
			}
		}
	})
}

func machine(i int) pools.MAC { return pools.MAC{2, 0, 0, byte(i >> 16), byte(i >> 8), byte(i)} }

// TestLogTakesNoMoreThanItCounts: a datagram of one character and thousands of blanks counts as
// one character, so it must take no more.
func TestLogTakesNoMoreThanItCounts(t *testing.T) {
	const datagrams, size, limit = 1000, 8192, 256 << 10
	now := time.Date(2026, 11, 23, 18, 0, 0, 0, time.UTC)
	for name, filler := range map[string]string{"blanks": " ", "no UTF-8": "\xff"} {
		var l netconsole.Log
		before := heap()
		for range datagrams {
			for _, text := range netconsole.Parse([]byte("<30>x" + strings.Repeat(filler, size-5))) {
				l.Add(machine(1), true, now, netconsole.Line{Time: now, Boot: "b1", Text: text})
			}
		}
		if grown := heap() - before; grown > limit {
			t.Errorf("%s: the lines of one machine take %d bytes, want %d at most", name, grown, limit)
		}
		if len(l.Of(machine(1))) == 0 {
			t.Errorf("%s: no line is kept", name)
		}
	}
}

// heap returns the bytes in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // a pool lives for two collections
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestLogIsBounded(t *testing.T) {
	var l netconsole.Log
	now := time.Date(2026, 11, 23, 18, 0, 0, 0, time.UTC)
	line := netconsole.Line{Time: now, Boot: "b1", Text: strings.Repeat("x", 512)}
	for i := range 200 {
		line.Text = fmt.Sprintf("%0512d", i)
		l.Add(machine(1), true, now, line)
	}
	got := l.Of(machine(1))
	if n := len(got); n < 80 || n > 115 || got[n-1].Text != line.Text {
		t.Errorf("got %d lines, want some hundred, the newest ones", n)
	}
	for i := range 1000 {
		l.Add(machine(10_000+i), false, now.Add(time.Duration(i)*time.Second), line)
	}
	if l.Of(machine(1)) == nil || l.Of(machine(10_000)) != nil || l.Of(machine(10_999)) == nil {
		t.Error("machines that no node declares push out others than the oldest of their own")
	}
	for i := range 700 {
		l.Add(machine(100+i), true, now.Add(time.Duration(i+1)*time.Second), line)
	}
	if l.Of(machine(1)) != nil || l.Of(machine(100)) == nil || l.Of(machine(10_999)) == nil {
		t.Error("of too many declared machines, want the one forgotten that has been silent for the longest time")
	}
}

// TestLogIsFair: a machine that floods has its own limit.
func TestLogIsFair(t *testing.T) {
	var l netconsole.Log
	now := time.Date(2026, 11, 23, 18, 0, 0, 0, time.UTC)
	line, kept := netconsole.Line{Time: now, Text: "x"}, 0
	for range 100_000 {
		if l.Add(machine(1), true, now, line) {
			kept++
		}
	}
	if kept != 5000 {
		t.Errorf("kept %d lines of a flood, want 5000", kept)
	}
	if !l.Add(machine(2), true, now, line) || !l.Add(machine(1), true, now.Add(time.Second), line) {
		t.Error("the flood takes the lines of others, or lasts")
	}
}

// TestServer: the lines of machines are kept, and those of others are dropped.
func TestServer(t *testing.T) {
	results := make(chan bool, 10)
	s := &netconsole.Server{
		Addr: "127.0.0.1:0", Log: new(netconsole.Log), Errors: slog.New(slog.DiscardHandler), OnDatagram: func(kept bool) { results <- kept },
		Sender: func(a netip.Addr) (netconsole.Sender, bool) {
			return netconsole.Sender{MAC: machine(1), Declared: true, Boot: "b1"}, a == netip.MustParseAddr("127.0.0.7")
		},
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Serve(ctx) }()
	for _, tt := range []struct {
		from string
		want bool
	}{{"127.0.0.7", true}, {"127.0.0.8", false}} {
		d := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(tt.from)}}
		conn, err := d.Dial("udp", s.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte("<6>of " + tt.from + "\n")); err != nil {
			t.Fatal(err)
		}
		if got := <-results; got != tt.want {
			t.Errorf("%s: kept %v, want %v", tt.from, got, tt.want)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Log.Of(machine(1)); len(got) != 1 || got[0].Text != "of 127.0.0.7" || got[0].Boot != "b1" {
		t.Errorf("got %+v", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
