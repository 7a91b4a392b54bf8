package server

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/imagebuild/manifest"
	"drover/pools"
	"drover/pools/boots"
	"drover/web/auth"
)

// imageOf makes a generation of debian-12, and returns its ID.
func imageOf(t *testing.T, content string) string {
	t.Helper()
	m := manifest.Manifest{Name: "debian-12", Created: time.Unix(1000, 0), Platform: "linux/amd64", Files: map[string]manifest.File{}}
	for _, f := range manifest.Files() {
		m.Files[f] = manifest.File{Size: int64(len(content)), SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(content)))}
	}
	dir := filepath.Join("state/images/debian-12", m.ID())
	text, err := json.Marshal(&m)
	err = errors.Join(err, os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, manifest.Name), text, 0o600))
	for _, f := range manifest.Files() {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, f), []byte(content), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	return m.ID()
}

// tried is a server on which m1 tries generations.
type tried struct {
	*testing.T
	*Server
	log fixture.Log
}

func newTried(t *testing.T) *tried {
	t.Helper()
	t.Chdir(t.TempDir())
	const text = `server: {interfaces: [lo], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16}]
pools: [{name: web, image: debian-12, nodes: [{name: m1, macs: ["52:54:00:00:00:01"], ip: 10.28.0.11}]}]
`
	if err := os.WriteFile("drover.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	m := &tried{T: t}
	m.start()
	t.Cleanup(func() { m.Close() })
	return m
}

func (m *tried) start() {
	m.Helper()
	s, err := New(Options{Config: "drover.yaml", State: "state", Log: slog.New(slog.NewTextHandler(&m.log, nil))})
	if err != nil {
		m.Fatal(err)
	}
	m.Server = s
}

// generations are the digests that a script names.
var generations = regexp.MustCompile(`[0-9a-f]{64}/(?:kernel|initrd|root\.squashfs)|drover\.root=[^ ]*?([0-9a-f]{64})`)

// boot boots up to a step, and returns the one generation of the script.
func (m *tried) boot(last boots.Step) string {
	m.Helper()
	mac := pools.MAC{0x52, 0x54, 0, 0, 0, 1}
	m.Store.Boots.Discover(m.Machines.Of(mac).Plan, time.Now())
	m.Store.NextBoots.Discover("m1")
	text, err := m.scripts.IPXE(m.Machines.Of(mac).Plan)
	if err != nil {
		m.Fatalf("%v: %s", err, text)
	}
	ids := map[string]bool{}
	for _, name := range generations.FindAllString(string(text), -1) {
		ids[regexp.MustCompile(`[0-9a-f]{64}`).FindString(name)] = true
	}
	if len(ids) != 1 || strings.Count(string(text), "/kernel") == 0 || strings.Count(string(text), "/initrd") == 0 {
		m.Fatalf("the script has files of %v:\n%s", ids, text)
	}
	for _, s := range boots.Steps() {
		if s.Step.Rank() > boots.StepScript.Rank() && s.Step.Rank() <= last.Rank() {
			m.step(mac, boots.Event{Step: s.Step})
		}
	}
	record, _ := m.Machines.LastBoot("m1")
	if !ids[record.Generation] {
		m.Fatalf("the script has files of %v, the record says %s", ids, record.Generation)
	}
	return record.Generation
}

func (m *tried) want(got, want, when string) {
	m.Helper()
	if got != want {
		m.Errorf("%s: it boots %.12s, want %.12s", when, got, want)
	}
}

// promote moves the channel stable.
func (m *tried) promote(id string) {
	m.Helper()
	if _, _, err := m.Web.API.Channels.Promote(pools.PromoteRequest{Image: "debian-12@" + id}, "the test", false); err != nil {
		m.Fatal(err)
	}
}

// status returns what the API says of m1.
func (m *tried) status() string {
	r := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
	w := httptest.NewRecorder()
	m.metrics.Handler().ServeHTTP(w, r)
	return w.Body.String()
}

// TestFallsBack: a node on which a new generation fails twice boots the one that was ready on it, also
// after a restart of the server, until the image is promoted or its next boot is set.
func TestFallsBack(t *testing.T) {
	m := newTried(t)
	old, bad := imageOf(t, "old"), imageOf(t, "bad")
	m.promote(old)
	m.want(m.boot(boots.StepOnline), old, "at first")
	m.promote(bad)
	m.want(m.boot(boots.StepSwitch), bad, "promoted")
	m.want(m.boot(boots.StepInitrd), bad, "after one that failed")
	m.want(m.boot(boots.StepOnline), old, "after two")
	fixture.WantText(t, "the log", m.log.String(), "falls back", "node=m1", "debian-12@"+bad[:12])
	fixture.WantText(t, "the metrics", m.status(), "\ndrover_fallback_nodes 1\n")
	if n := strings.Count(m.log.String(), "falls back"); n != 1 {
		t.Errorf("the log says so %d times", n)
	}
	m.want(m.boot(boots.StepSwitch), old, "again")
	m.Close()
	m.start()
	m.want(m.boot(boots.StepSwitch), old, "after a restart, and after the old one failed")
	m.promote(bad)
	fixture.WantText(t, "the metrics", m.status(), "\ndrover_fallback_nodes 0\n")
	m.want(m.boot(boots.StepSwitch), bad, "promoted again")
	m.want(m.boot(boots.StepSwitch), bad, "promoted again, after one that failed")
	m.want(m.boot(boots.StepSwitch), old, "promoted again, after two")
	for _, err := range m.Web.API.SetNextBoots([]string{"m1"}, "image=debian-12", auth.Client{}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	m.want(m.boot(boots.StepOnline), bad, "its next boot was set")
	m.want(m.boot(boots.StepOnline), bad, "and was good")
	m.want(m.boot(boots.StepSwitch), bad, "so that it is the one to fall back to")
	m.want(m.boot(boots.StepSwitch), bad, "so that it is the one to fall back to")
}

// TestFallsBackNot: not to what is gone or marked bad, and not for what is elsewhere.
func TestFallsBackNot(t *testing.T) {
	m := newTried(t)
	old, bad := imageOf(t, "old"), imageOf(t, "bad")
	m.promote(old)
	m.boot(boots.StepOnline)
	m.promote(bad)
	for _, s := range []boots.Step{boots.StepQueued, boots.StepNetwork, boots.StepImage, boots.StepScript, boots.StepQueued} {
		m.want(m.boot(s), bad, "after "+string(s))
	}
	m.boot(boots.StepSwitch)
	m.boot(boots.StepSwitch)
	m.want(m.boot(boots.StepSwitch), old, "after two that failed")
	if err := m.Web.API.Channels.Mark(pools.MarkRequest{Image: "debian-12@" + old}, "the test", false); err != nil {
		t.Fatal(err)
	}
	m.want(m.boot(boots.StepSwitch), bad, "the old one is bad")
	if err := m.Web.API.Channels.Mark(pools.MarkRequest{Image: "debian-12@" + old, Good: true}, "the test", false); err != nil {
		t.Fatal(err)
	}
	m.want(m.boot(boots.StepSwitch), old, "the old one is good")
	if err := os.RemoveAll("state/images/debian-12/" + old); err != nil {
		t.Fatal(err)
	}
	m.want(m.boot(boots.StepSwitch), bad, "the old one is gone")
	fixture.WantText(t, "the log", m.log.String(), "no generation to fall back to")
}

// TestOneGeneration: beside promotions and roll-backs each boot gets kernel, initrd and root of one
// generation.
func TestOneGeneration(t *testing.T) {
	m := newTried(t)
	all := []string{imageOf(t, "a"), imageOf(t, "b"), imageOf(t, "c")}
	m.promote(all[0])
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := range 60 {
			_, _, err := m.Web.API.Channels.Promote(pools.PromoteRequest{Image: "debian-12@" + all[i%3]}, "", false)
			if err == nil && i%4 == 0 {
				_, _, err = m.Web.API.Channels.Rollback(pools.RollbackRequest{Image: "debian-12"}, "", false)
			}
			if err != nil && !errors.Is(err, pools.ErrNoImage) {
				t.Error(err)
			}
		}
	}()
	for {
		m.boot(boots.StepScript)
		select {
		case <-ended:
			return
		default:
		}
	}
}
