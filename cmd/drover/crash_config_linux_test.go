package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/web/client"
)

// TestKilledRollback: a server that is killed while it rolls its config back, again and again, has
// one of the two configs at the next start, whole, and says when it is not that of the file.
func TestKilledRollback(t *testing.T) {
	s := newKilled(t)
	file := filepath.Join(s.dir, "drover.yaml")
	text := fixture.ReadFile(t, file)
	c := s.start()
	var nodes strings.Builder
	for i := range 200 {
		fmt.Fprintf(&nodes, "    - {name: n%d, macs: [\"52:54:00:00:00:%02x\"], ip: 10.28.1.%d}\n", i, i, i+1)
	}
	more := strings.Replace(text, "pools: [{name: web, image: debian-12}]", "pools:\n- name: web\n  image: debian-12\n  nodes:\n"+nodes.String(), 1)
	if err := os.WriteFile(file, []byte(more), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := client.Send(t.Context(), c, client.ReloadConfig, client.None{}); err != nil || r.Nodes != 200 {
		t.Fatalf("got %+v, %v", r, err)
	}
	want := map[string]int{text: 0, more: 200}
	for round := range 5 {
		rolling, numbers := make(chan int), newestTwo(t, c)
		go func() {
			for n := 0; ; n++ {
				if _, err := client.Send(t.Context(), c, client.RollbackConfig, client.None{}, numbers[n%2]); err != nil {
					rolling <- n
					return
				}
			}
		}()
		time.Sleep(time.Duration(50+rand.IntN(400)) * time.Millisecond)
		s.kill()
		done := <-rolling
		c = s.start()
		active, err := client.Get(t.Context(), c, client.Config, nil)
		if err != nil {
			t.Fatal(err)
		}
		list, err := client.Get(t.Context(), c, client.Nodes, nil)
		if n, known := want[active.Content]; err != nil || !known || len(list) != n {
			t.Fatalf("round %d: %d nodes, %v, the config: %.300s", round, len(list), err, active.Content)
		}
		differs := active.Content != more
		if held := active.Held; (held != nil) != differs || differs && (held.Why != pools.HeldByRollback || held.Rollback < 1) {
			t.Errorf("round %d: the file differs: %v, held %+v", round, differs, held)
		}
		checkHistory(t, c, active.SHA256)
		t.Logf("round %d: %d rollbacks, then %d nodes", round, done, len(list))
	}
}

// newestTwo returns the numbers of the newest config of the history, and of the newest other one.
func newestTwo(t *testing.T, c *client.Client) [2]string {
	t.Helper()
	history, err := client.Get(t.Context(), c, client.ConfigHistory, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range history {
		if e.SHA256 != history[0].SHA256 {
			return [2]string{fmt.Sprint(e.Number), fmt.Sprint(history[0].Number)}
		}
	}
	t.Fatalf("the history has no other config: %+v", history)
	return [2]string{}
}

// checkHistory fails unless the newest config of the history is the active one, and each is whole.
func checkHistory(t *testing.T, c *client.Client, sha256 string) {
	t.Helper()
	history, err := client.Get(t.Context(), c, client.ConfigHistory, nil)
	if err != nil || len(history) == 0 || history[0].SHA256 != sha256 {
		t.Fatalf("the history: %+v, %v", history, err)
	}
	for _, e := range history {
		if v, err := client.Get(t.Context(), c, client.ConfigVersion.Of(fmt.Sprint(e.Number)), nil); err != nil || len(v.Content) != e.Bytes {
			t.Errorf("config %d is not whole: %v", e.Number, err)
		}
	}
}
