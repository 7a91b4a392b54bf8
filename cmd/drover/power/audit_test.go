package power_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/power"
	"drover/e2e/clitest"
	"drover/pools"
)

// TestAuditOf: time and name choose among all that there is, and the limit comes last.
func TestAuditOf(t *testing.T) {
	now := time.Now().UTC()
	var all []pools.AuditEntry
	for i, who := range []string{"token ci", "page Alice", "token ci", "socket alice from this host"} {
		all = append(all, pools.AuditEntry{Time: now.Add(-time.Duration(i) * 20 * time.Hour), Actor: who, Action: "add node", Node: fmt.Sprintf("m%d", i), Result: "done"})
	}
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	s := clitest.Serve(t, map[string]string{"GET /api/v1/audit": string(b)})
	for line, want := range map[string]string{
		"audit --since 1d": "m0 m1", "audit --who ALICE": "m1 m3", "audit --who alice --since 2d": "m1", "audit --who ci --limit 1": "m0", "audit --since 100d --limit 3": "m0 m1 m2",
	} {
		got := clitest.Run(t, power.Commands(), "", line+" -o json")
		var listed []pools.AuditEntry
		if err := json.Unmarshal([]byte(got.Out), &listed); err != nil {
			t.Fatalf("%s: %v: %s", line, err, got.Err)
		}
		var names []string
		for _, e := range listed {
			names = append(names, e.Node)
		}
		if strings.Join(names, " ") != want {
			t.Errorf("%s: got %q, want %s", line, names, want)
		}
		if asked := s.Asked(); len(asked) != 1 || !strings.Contains(asked[0], "limit="+strconv.Itoa(pools.MaxAudit)) {
			t.Errorf("%s: asked %q", line, asked)
		}
	}
	if got := clitest.Run(t, power.Commands(), "", "audit --follow -o json"); got.Code != cli.Usage {
		t.Errorf("--follow -o json: %+v", got)
	}
}

// ender ends a command when it has printed a line that has this word.
type ender struct {
	strings.Builder
	word string
	end  context.CancelFunc
}

func (e *ender) Write(b []byte) (int, error) {
	if strings.Contains(string(b), e.word) {
		e.end()
	}
	return e.Builder.Write(b)
}

// TestAuditFollow: each entry is printed once, the newest last, also when more come at once than a
// question asks for, and a server that restarts is waited for.
func TestAuditFollow(t *testing.T) {
	clitest.Serve(t, nil)
	var asked atomic.Int32
	began := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		count := 2
		switch {
		case n == 2:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case n > 2:
			count = 3000
		}
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		var all []pools.AuditEntry
		for i := count - 1; i >= max(0, count-limit); i-- {
			all = append(all, pools.AuditEntry{Time: began.Add(time.Duration(i) * time.Second), Actor: "x", Action: "add node", Node: fmt.Sprintf("n%04d", i), Result: "done"})
		}
		_ = json.NewEncoder(w).Encode(all)
	}))
	defer srv.Close()
	t.Setenv("DROVER_API", srv.URL)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	out := &ender{word: "n2999", end: end}
	root := &cobra.Command{Use: "drover"}
	root.AddCommand(power.Commands()...)
	if code := cli.Execute(ctx, root, []string{"audit", "--follow"}, out, io.Discard); code != 0 {
		t.Errorf("exit %d", code)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, line := range lines {
		if !strings.Contains(line, fmt.Sprintf("n%04d", i)) {
			t.Fatalf("line %d is %q", i, line)
		}
	}
	if len(lines) != 3000 {
		t.Errorf("%d lines", len(lines))
	}
}
