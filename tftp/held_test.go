package tftp_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"drover/e2e/fixture"
	"drover/tftp"
)

// TestHeld: the log says at once why a client without options gets nothing, and the truth at its end.
func TestHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log fixture.Log
		f := newForgery(t, func(s *tftp.Server) { s.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		f.send(victim, serverAt, readRequest("loader", "octet"))
		time.Sleep(2 * time.Second)
		fixture.WantText(t, "log", log.String(), "a client without options that is not in the middle of a boot waits", "file=loader", "remedy=")
		time.Sleep(5 * time.Minute)
		fixture.WantText(t, "log", log.String(), "has not repeated its request often enough")
		fixture.WantNoText(t, "log", log.String(), "does not answer the options")
		if n := strings.Count(log.String(), "waits until"); n != 1 {
			t.Errorf("%d lines that it waits:\n%s", n, log.String())
		}
	})
}
