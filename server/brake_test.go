package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
)

// startBraked starts a server with the nodes of conf.d/ceph.yaml and a brake.
func startBraked(t *testing.T) (s *Server, log *fixture.Log) {
	t.Helper()
	log = new(fixture.Log)
	s, err := New(Options{Config: "drover.yaml", State: "state", Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return s, log
}

func braked(t *testing.T) (s *Server, log *fixture.Log) {
	t.Helper()
	t.Chdir(t.TempDir())
	main := strings.Replace(retiredMain, ", brake: {nodes: 0}%s", "", 1) + "# hunter2\n"
	if err := errors.Join(os.Mkdir("conf.d", 0o700), os.WriteFile("conf.d/other.yaml", []byte("tags: {t: {}}\n"), 0o600), os.WriteFile("drover.yaml", []byte(main), 0o600)); err != nil {
		t.Fatal(err)
	}
	writeCeph(t)
	return startBraked(t)
}

// audited returns the audit when all records are written.
func audited(t *testing.T, s *Server) []pools.AuditEntry {
	t.Helper()
	written := make(chan struct{})
	s.records.add(func() { close(written) })
	<-written
	all, err := s.Store.Audit.List(100)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestBrakeHolds: a file of 40 nodes that is absent changes nothing and says so everywhere, across a
// restart; a yes lets it through, and a rollback brings the nodes back.
func TestBrakeHolds(t *testing.T) {
	s, log := braked(t)
	defer func() { s.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.records.run(ctx) }()
	problems := func() (text string) {
		for _, p := range s.Web.API.Ready(t.Context()) {
			if p.Part == "config" {
				text += fmt.Sprintln(p.Problem, "|", p.Brief, p.Warning)
			}
		}
		return text
	}
	metric := func() string {
		w := httptest.NewRecorder()
		s.metrics.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
		return w.Body.String()
	}
	if err := os.Remove("conf.d/ceph.yaml"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.reloadFile("the file changed", pools.ConfigByFile)
	}
	check := func(when string) {
		t.Helper()
		if got := ask(s, cephMAC(3), cephIP(3), netip.Addr{}); got != "ACK" || len(s.Live.Farm().Retired()) > 0 || len(s.Live.Farm().Nodes()) != cephNodes {
			t.Errorf("%s: a renewal gets %q, %d nodes are retired", when, got, len(s.Live.Farm().Retired()))
		}
		fixture.WantText(t, when, problems(), "40 removed", "drover reload --yes", "| a change of the file waits true")
		fixture.WantText(t, when, metric(), `drover_config_held{reason="brake"} 40`)
	}
	check("the file is gone")
	if n := strings.Count(log.String(), "config file not active"); n != 1 {
		t.Errorf("the log says it %d times:\n%s", n, log)
	}
	if all := audited(t, s); len(all) != 1 || all[0].Action != "hold the change of the config" || all[0].Changes[1].After != "40 removed" {
		t.Errorf("the audit has %+v", all)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if all := s.Store.Configs.List(); len(all) != 1 || all[0].Way != pools.ConfigAtStart {
		t.Errorf("the history has %+v", all)
	}
	s.Close()
	s, log = startBraked(t)
	check("after a restart")
	fixture.WantText(t, "the log of the start", log.String(), "config file not active")
	answerBrake(t, s)
	fixture.WantNoText(t, "the log", log.String(), "hunter2")
}

// answerBrake answers to the change that waits, and rolls it back.
func answerBrake(t *testing.T, s *Server) {
	t.Helper()
	c := configFile{s}
	held := s.Live.Status().Held
	if _, err := c.Answer(pools.ConfigAnswer{SHA256: strings.Repeat("0", 64), Drop: true}, "me"); !errors.Is(err, pools.ErrNotHeld) {
		t.Errorf("a no to another change: got %v", err)
	}
	if r, err := c.Answer(pools.ConfigAnswer{SHA256: strings.Repeat("0", 64)}, "me"); err != nil || r.Held == nil {
		t.Errorf("a yes to another change: got %+v, %v", r, err)
	}
	if r, err := c.Answer(pools.ConfigAnswer{SHA256: held.SHA256, Drop: true}, "me"); err != nil || r.Held.Why != pools.HeldDropped || r.Nodes != cephNodes {
		t.Errorf("no: got %+v, %v", r, err)
	}
	if r, err := c.Answer(pools.ConfigAnswer{SHA256: held.SHA256}, "me"); err != nil || r.Held != nil || r.Nodes != 0 || r.Size.Removed.Count != cephNodes {
		t.Errorf("yes: got %+v, %v", r, err)
	}
	all := c.List()
	if len(all) != 2 || all[0].Who != "me" || all[0].Way != pools.ConfigByRequest || all[0].Size.Removed.Count != cephNodes {
		t.Fatalf("the history has %+v", all)
	}
	if _, err := c.Rollback(99, "me", false); !errors.Is(err, pools.ErrNoConfig) {
		t.Errorf("a rollback to nothing: got %v", err)
	}
	if r, err := c.Rollback(all[1].Number, "me", true); err != nil || r.Size.Added.Count != cephNodes || len(s.Live.Farm().Nodes()) != 0 {
		t.Errorf("a try: got %+v, %v", r, err)
	}
	if r, err := c.Rollback(all[1].Number, "me", false); err != nil || r.Nodes != cephNodes || r.Held == nil || r.Held.Why != pools.HeldByRollback {
		t.Errorf("a rollback: got %+v, %v", r, err)
	}
	if all = c.List(); len(all) != 3 || all[0].Rollback != 1 || all[0].Way != pools.ConfigRollback {
		t.Errorf("the history has %+v", all)
	}
	v, err := c.Get(3)
	if err != nil || !strings.Contains(v.Content, "hunter2") || len(v.Included) != 2 || !bytes.Contains([]byte(v.Included[0].Content), []byte("osd-39")) {
		t.Errorf("got %+v, %v", v, err)
	}
}
