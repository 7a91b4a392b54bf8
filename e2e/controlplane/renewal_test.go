package controlplane_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"drover/e2e/controlplane"
	"drover/e2e/fixture"
	"drover/kube"
	"drover/kube/cluster"
	"drover/kube/credentials"
	"drover/kube/inspect"
	"drover/pools"
)

// clock is a clock that can be put forward.
type clock struct{ ahead atomic.Int64 }

// ahead is what makes the token of [hourly] due.
const ahead = int64(50 * time.Minute)

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// hourly makes a kubeconfig file of drover's ServiceAccount, whose token lasts for an hour.
func hourly(t *testing.T, p *controlplane.Cluster) (file string) {
	t.Helper()
	kubeconfig, _, err := inspect.Credentials(t.Context(), p.Admin, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// testRenewal keeps drover's credentials in a file that it may write, in one that it may not,
// and in a Secret of another cluster. Each is renewed, and used without a restart.
func testRenewal(t *testing.T, p, admin *controlplane.Cluster) {
	t.Run("own file", func(t *testing.T) {
		file, state := hourly(t, p), t.TempDir()
		before := fixture.ReadFile(t, file)
		renewed(t, p, pools.Cluster{Name: p.Name, Kubeconfig: file}, state, "")
		if fixture.ReadFile(t, file) == before {
			t.Error("the file has the old token")
		}
		fixture.WantMode(t, file, 0o600)
		if left, err := os.ReadDir(state); err != nil || len(left) > 0 {
			t.Errorf("in the state directory: %v, %v", left, err)
		}
	})
	t.Run("foreign file", func(t *testing.T) {
		file, link, state := hourly(t, p), filepath.Join(t.TempDir(), "link"), t.TempDir()
		if err := os.Symlink(file, link); err != nil {
			t.Fatal(err)
		}
		conf := pools.Cluster{Name: p.Name, Kubeconfig: link}
		before := fixture.ReadFile(t, file)
		end := renewed(t, p, conf, state, "")
		if fixture.ReadFile(t, file) != before {
			t.Error("the file has changed")
		}
		fixture.WantMode(t, filepath.Join(state, "cluster-tokens.json"), 0o600)

		c := &kube.Clusters{State: state}
		c.Set([]pools.Cluster{conf})
		defer c.Close()
		if got := c.Expiries()[p.Name]; !got.Equal(end) {
			t.Errorf("after a restart they end at %s, want %s", got, end)
		}
		if err := c.Check(t.Context())[p.Name]; err != nil {
			t.Error(err)
		}
		if err := os.Rename(hourly(t, p), file); err != nil {
			t.Fatal(err)
		}
		given := cluster.Expiry(cluster.New(conf, link, time.Now).Client())
		if got := c.Expiries()[p.Name]; !got.Equal(given) {
			t.Errorf("after the file was replaced they end at %s, want %s", got, given)
		}
	})
	t.Run("Secret", func(t *testing.T) {
		name := p.Name + "-renewal"
		apply(t, admin, "{apiVersion: v1, kind: Namespace, metadata: {name: tenants}}")
		text := base64.StdEncoding.EncodeToString([]byte(fixture.ReadFile(t, hourly(t, p))))
		apply(t, admin, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: tenants}, data: {value: %s}}", name, text))
		renewed(t, p, pools.Cluster{Name: p.Name, SecretRef: pools.SecretRef{Namespace: "tenants", Name: name}}, t.TempDir(), admin.Admin)
	})
	t.Run("without the right", func(t *testing.T) { testNoRenewal(t, p) })
}

// renewed runs drover with a clock that is ahead until it has renewed its credentials, and
// returns their end.
func renewed(t *testing.T, p *controlplane.Cluster, conf pools.Cluster, state, admin string) (end time.Time) {
	t.Helper()
	var clock clock
	clock.ahead.Store(ahead)
	c := &kube.Clusters{Admin: admin, State: state, Now: clock.now, StartLoops: true, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	start := time.Now()
	c.Set([]pools.Cluster{conf})
	defer c.Close()
	fixture.Retry(t, "the credentials are renewed", func() error {
		end = c.Expiries()[p.Name]
		failed, renews := c.Renewals()[p.Name]
		// A token lasts for an hour from the whole second in which it was made.
		if !renews || failed != nil || end.Before(start.Add(time.Hour).Truncate(time.Second)) {
			return fmt.Errorf("renews %v, until %s, error %w", renews, end, failed)
		}
		return nil
	})
	clock.ahead.Store(0)
	fixture.Retry(t, "nodes can join with the new credentials", func() error { return c.Check(t.Context())[p.Name] })
	return end
}

// testNoRenewal takes the right to renew away: the old token stays in use, and the next try
// after the right is back succeeds.
func testNoRenewal(t *testing.T, p *controlplane.Cluster) {
	binding := func(verb string) {
		t.Helper()
		args := []string{verb, "rolebinding", "drover-renewal", "-n", "kube-system"}
		if verb == "create" {
			args = append(args, "--role=drover-renewal", "--serviceaccount=kube-system:drover")
		}
		if _, err := p.Kubectl(t.Context(), nil, args...); err != nil {
			t.Fatal(err)
		}
	}
	file := hourly(t, p)
	binding("delete")
	fixture.Retry(t, "the right is gone", func() error {
		_, err := p.KubectlAs(t.Context(), file, nil, "create", "token", "drover", "-n", "kube-system")
		if err == nil || !strings.Contains(err.Error(), "forbidden") {
			return fmt.Errorf("allowed: %w", err)
		}
		return nil
	})
	before := fixture.ReadFile(t, file)
	var clock clock
	clock.ahead.Store(ahead)
	c := cluster.New(pools.Cluster{Name: p.Name}, file, clock.now)
	store, err := credentials.Open(filepath.Join(t.TempDir(), "tokens.json"), clock.now)
	if err != nil {
		t.Fatal(err)
	}
	r := &credentials.Renewer{Cluster: c, File: file, Store: store, Now: clock.now, Interval: 100 * time.Millisecond, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	done := make(chan struct{})
	ctx := t.Context()
	go func() { defer close(done); r.Run(ctx) }()
	t.Cleanup(func() { <-done })
	fixture.Retry(t, "the failure is reported", func() error {
		renews, err := r.Status()
		if !renews || err == nil || !strings.Contains(err.Error(), "lacks the right") {
			return fmt.Errorf("renews %v, error %w", renews, err)
		}
		return nil
	})
	if fixture.ReadFile(t, file) != before {
		t.Error("the kubeconfig has changed")
	}
	if err := c.Check(t.Context()); err != nil {
		t.Errorf("with the old credentials: %v", err)
	}
	binding("create")
	fixture.Retry(t, "renewed at last", func() error {
		if fixture.ReadFile(t, file) == before {
			_, err := r.Status()
			return errors.Join(errors.New("the old kubeconfig"), err)
		}
		clock.ahead.Store(0)
		if renews, err := r.Status(); !renews || err != nil {
			return fmt.Errorf("renews %v, error %w", renews, err)
		}
		return nil
	})
}
