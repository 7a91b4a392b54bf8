package dhcp_test

import (
	"bytes"
	"log/slog"
	"testing"

	"drover/e2e/fixture"
)

func TestOneLineForEachExchange(t *testing.T) {
	var b bytes.Buffer
	s, _ := newServer()
	log := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
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
		_, x := s.handle(d, noon)
		x.Log(log)
	}
	fixture.Golden(t, "testdata/log.golden", b.Bytes())
}
