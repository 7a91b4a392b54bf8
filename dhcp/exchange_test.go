package dhcp_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"drover/dhcp"
	"drover/e2e/fixture"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"PXEClient":                "PXEClient",
		"a\nlevel=ERROR":           `"a\nlevel=ERROR"`,
		"\x00\xff":                 `"\x00\xff"`,
		strings.Repeat("long", 99): strings.Repeat("long", 16),
	} {
		if got := dhcp.Printable(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func TestOneLineForEachExchange(t *testing.T) {
	var b bytes.Buffer
	s, _ := newServer()
	s.Log = slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "took" {
			return slog.Attr{}
		}
		return a
	}}))
	discovers := firstDiscovers()
	for _, d := range [][]byte{
		discovers["ipxe-bios"].ToBytes(),
		discovers["relayed"].ToBytes(),
		message(web1, request, requested("10.28.36.9")).ToBytes(),
		message(foreign, discover, text(60, "a\nb")).ToBytes(),
		message(stray, decline, serverID(serverAddr), requested("10.28.72.10")).ToBytes(),
		{1, 2, 3}, // debug only
	} {
		s.Tell(d, noon)
	}
	fixture.Golden(t, "testdata/log.golden", b.Bytes())
}
