package e2e_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"drover/e2e/browser"
	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
	"drover/pools/boots"
)

// TestWatched watches the boot of a machine in a real Chromium, until it is Ready in its cluster:
// each step appears in the view of the machine without a reload, and so do the lines that its
// kernel sends.
func TestWatched(t *testing.T) {
	soak(t)
	b := build(t)
	s := open(t, b, site.Config{Name: "drover-e2e-watched", Farm: "testdata/watched.yaml"})
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	tab := browser.Open(t, outside(t, s), strings.TrimSpace(read(t, s.Drover.TokenFile())))
	tab.Visit("/nodes/n1")
	// Notes when each step appears. A reload would end it.
	browser.Value[bool](tab, `window.seen = {}; window.note = () => {
		for (const th of document.querySelectorAll(".waterfall tbody th")) seen[th.textContent] ??= Date.now();
	}; new MutationObserver(note).observe(document.body, {subtree: true, childList: true, characterData: true}); note(); true`)

	const mac = "52:54:00:77:0b:01"
	g := powerOn(t, s, lab.Machine{Name: "n1", NICs: card(mac)})
	fixture.Until(ctx, t, "n1 is Ready", func() (bool, error) { return reached(bootOf(ctx, t, s, mac), boots.StepReady), nil })
	t.Logf("%.1f s after power-on", time.Since(g.Started).Seconds())
	tab.Until("the page shows the end", `document.querySelector(".top .state").textContent === "ready"`)
	tab.Picture("watched")
	seen := browser.Value[map[string]float64](tab, "window.seen")
	for _, step := range bootOf(ctx, t, s, mac).Steps {
		at, ok := seen[string(step.Step)]
		if !ok {
			t.Errorf("the page did not show the step %s while it was open", step.Step)
			continue
		}
		t.Logf("%-10s on the page after %.2f s", step.Step, at/1000-float64(step.Time.UnixMilli())/1000)
	}
	tab.Until("lines of the kernel", `document.querySelector(".console")?.textContent.includes("watched: from /dev/kmsg")`)
	if text := browser.Value[string](tab, `document.querySelector(".console").textContent`); strings.Contains(text, "drover.nonce=") && !strings.Contains(text, "drover.nonce=…") {
		t.Error("the page has the nonce of the boot")
	}
	tab.Quiet("a boot")
}

// outside makes the people-facing listener of a site reachable for a browser on the host: at a
// port of the loopback address, until the end of the test. It returns the URL.
func outside(t *testing.T, s *site.Site) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // only to end the loop
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				server, err := s.Dial(context.Background(), "tcp", s.Drover.API)
				if err != nil {
					return
				}
				defer server.Close()
				go func() {
					_, _ = io.Copy(server, conn) // until one of both ends
					_ = server.Close()
				}()
				_, _ = io.Copy(conn, server)
			}()
		}
	}()
	return "http://" + l.Addr().String()
}
