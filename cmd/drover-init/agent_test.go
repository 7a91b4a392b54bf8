package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"drover/e2e/fixture"
	"drover/node/client"
	"drover/node/console"
	"drover/node/nodeconfig"
	"drover/node/report"
	"drover/node/state"
	"drover/pools"
	"drover/pools/boots"
)

const (
	testToken      = "abcdef.0123456789abcdef"
	otherToken     = "ghijkl.0123456789abcdef"
	kubeadmSucceed = "#!/bin/sh\necho \"[preflight] Running\" \"$@\"\ncat \"$3\" >>$SEEN\nmkdir -p $ROOT/etc/kubernetes\n: >$ROOT/etc/kubernetes/kubelet.conf\n"
	kubeadmFail    = "#!/bin/sh\ncat \"$3\" >>$SEEN\nmkdir -p $ROOT/etc/kubernetes/pki\n" +
		": >$ROOT/etc/kubernetes/pki/ca.crt; : >$ROOT/etc/kubernetes/bootstrap-kubelet.conf; : >$ROOT/etc/kubernetes/other\n" +
		"echo 'error execution phase kubelet-start: a Node with name \"cart01\" exists, token " + testToken + "' >&2\n" +
		"echo 'To see the stack trace of this error execute with --v=5 or higher' >&2\nexit 1\n"
)

// nodeServer is the node-facing side of drover, for one boot of one node.
type nodeServer struct {
	t      *testing.T
	joins  []http.HandlerFunc // the answers to the first join requests; nil: a JoinConfiguration
	tokens []string           // in the JoinConfigurations

	mu     sync.Mutex
	key    []byte // of the claim
	asked  int    // join requests
	away   int    // so many requests it answers as a proxy does whose server is away
	events []string
}

func (s *nodeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away > 0 {
		s.away--
		http.Error(w, "no server", http.StatusBadGateway)
		return
	}
	if r.Method != http.MethodPost || r.Header.Get(pools.NonceHeader) != testNonce {
		http.Error(w, boots.ErrNonce.Error(), http.StatusForbidden)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	switch r.URL.Path {
	case "/base/node/52-54-00-77-00-01/events":
		var e boots.Event
		if err := json.Unmarshal(body, &e); err != nil {
			s.t.Errorf("event %s: %v", body, err)
		}
		s.events = append(s.events, strings.TrimSpace(fmt.Sprintf("%s: %s%s", e.Step, e.Detail, e.Error)))
	case "/base/node/52-54-00-77-00-01/join":
		s.asked++
		if n := s.asked; n <= len(s.joins) && s.joins[n-1] != nil {
			s.joins[n-1](w, r)
			return
		}
		s.join(w, body)
	default:
		http.NotFound(w, r)
	}
}

func (s *nodeServer) join(w http.ResponseWriter, body []byte) {
	var k pools.KeyRequest
	if err := json.Unmarshal(body, &k); err != nil {
		s.t.Errorf("join request %s: %v", body, err)
	}
	if !regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(k.BootID) {
		s.t.Errorf("boot ID %q is not the kernel's", k.BootID)
	}
	if string(k.PublicKey) != string(s.key) {
		http.Error(w, boots.ErrClaimed.Error(), http.StatusForbidden)
		return
	}
	token := s.tokens[0]
	s.tokens = s.tokens[1:]
	plain, err := json.Marshal(pools.JoinConfig{Kubeadm: "kind: JoinConfiguration\ntoken: " + token + "\n"})
	if err != nil {
		s.t.Error(err)
	}
	sealed, err := pools.Seal(k.PublicKey, testMAC, "join", plain)
	if err != nil {
		s.t.Error(err)
	}
	if _, err := w.Write(sealed); err != nil {
		s.t.Error(err)
	}
}

// agentTest is an agent with a server, and with test programs on PATH.
type agentTest struct {
	*agent
	server *nodeServer
	said   *fixture.Log
	waits  []time.Duration
	bin    string
	seen   string // the file with kubeadm's configuration
}

func newAgentTest(t *testing.T, programs map[string]string) *agentTest {
	t.Helper()
	dir := t.TempDir()
	a := &agentTest{server: &nodeServer{t: t, tokens: []string{testToken, otherToken}}, said: &fixture.Log{}}
	a.bin, a.seen = filepath.Join(dir, "bin"), filepath.Join(dir, "seen")
	for name, text := range programs {
		if err := nodeconfig.WriteFile(filepath.Join(a.bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	root := filepath.Join(dir, "root")
	t.Setenv("PATH", a.bin+":/usr/bin:/bin")
	t.Setenv("ROOT", root)
	t.Setenv("SEEN", a.seen)

	s := httptest.NewServer(a.server)
	t.Cleanup(s.Close)
	key, err := pools.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	a.server.key = key.PublicKey().Bytes()
	boot := state.Boot{MAC: testMAC, Node: "cart01", Pool: "compute", Address: netip.MustParseAddr("10.77.0.11")}
	boot.URL, boot.Nonce, boot.Join = s.URL+"/base", testNonce, true
	if boot.Key, err = key.Bytes(); err != nil {
		t.Fatal(err)
	}
	// The agent reads a real state file.
	run := filepath.Join(dir, "run")
	if err := boot.Save(run); err != nil {
		t.Fatal(err)
	}
	if boot, err = state.Load(run); err != nil {
		t.Fatal(err)
	}
	srv, key, err := boot.Server()
	if err != nil {
		t.Fatal(err)
	}
	srv.BootID = bootID()
	t.Cleanup(srv.Client.CloseIdleConnections)
	con := console.New(a.said, fixedUptime)
	a.agent = newAgent(boot, srv, key, con, run)
	a.Root = root
	a.Retry.Backoff.Rand = func() float64 { return 0 }
	a.Retry.Sleep = func(ctx context.Context, d time.Duration) error {
		a.waits = append(a.waits, d)
		return ctx.Err()
	}
	return a
}

// do runs the agent and returns its error, after all events and lines are out.
func (a *agentTest) do(ctx context.Context) error {
	a.Rep.Start(func(f func()) { f() })
	err := a.run(ctx)
	a.Rep.Flush(context.Background(), time.Minute)
	a.Rep.Stop()
	a.Con.Close()
	return err
}

// TestAgentEndsWhileAway: a server that comes back after minutes learns that the node is online.
// An agent that is stopped does not wait for it.
func TestAgentEndsWhileAway(t *testing.T) {
	for name, stopped := range map[string]bool{"server comes back": false, "agent is stopped": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var back atomic.Bool
				var got []string
				rep := &report.Reporter{
					Uptime: func() time.Duration { return time.Minute },
					Send: func(_ context.Context, e boots.Event) error {
						if !back.Load() {
							return errors.New("connection refused")
						}
						got = append(got, string(e.Step))
						return nil
					},
				}
				rep.Start(func(f func()) { f() })
				rep.Report(boots.StepOnline, "10.28.0.9")
				ctx, stop := context.WithCancel(t.Context())
				if stopped {
					time.AfterFunc(time.Minute, stop)
				}
				time.AfterFunc(5*time.Minute, func() { back.Store(true) })
				(&agent{Rep: rep}).sendRest(ctx)
				stop()
				rep.Stop()
				if told := len(got) > 0; told == stopped {
					t.Errorf("the server got %q", got)
				}
			})
		})
	}
}

// noSecrets fails the test if a secret is on the console, in an event, or in a file.
func (a *agentTest) noSecrets(t *testing.T) {
	t.Helper()
	all := a.said.String() + strings.Join(a.server.events, "\n")
	fixture.WantNoText(t, "output and events", all, testToken, otherToken, testNonce, "JoinConfiguration")
	if _, err := os.Stat(filepath.Join(a.Dir, "kubeadm-join.yaml")); !os.IsNotExist(err) {
		t.Errorf("the join configuration is still there (%v)", err)
	}
}

// wantEvents fails the test unless the server got these events.
func wantEvents(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("events: got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAgentJoins(t *testing.T) {
	a := newAgentTest(t, map[string]string{"kubeadm": kubeadmSucceed})
	a.State.Scripts = []pools.NamedScript{
		{Name: "2", Stage: pools.Online, Run: "echo second of $DROVER_STAGE"}, {Name: "1", Stage: pools.Online, Run: "echo first"},
	}
	if err := a.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantEvents(t, a.server.events, "online: 10.77.0.11", "joined: kubeadm join succeeded, run 1")
	said := a.said.String()
	fixture.WantText(t, "output", said, "script: 1: first\n", "script: 2: second of online\n",
		"kubeadm: [preflight] Running join --config "+filepath.Join(a.Dir, "kubeadm-join.yaml"))
	if strings.Index(said, "second of") < strings.Index(said, "1: first") {
		t.Errorf("scripts ran out of order:\n%s", said)
	}
	fixture.WantText(t, "configuration", fixture.ReadFile(t, a.seen), "token: "+testToken)
	a.noSecrets(t)
}

func TestAgentWithoutCluster(t *testing.T) {
	a := newAgentTest(t, nil)
	a.State.Join = false
	if err := a.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantEvents(t, a.server.events, "online: 10.77.0.11")
	if a.server.asked != 0 {
		t.Errorf("it asked for a join")
	}
}

// TestAgentWaitsForServer: the agent does not end before the server knows that the node is online.
func TestAgentWaitsForServer(t *testing.T) {
	a := newAgentTest(t, nil)
	a.State.Join, a.server.away = false, 1
	if err := a.State.Save(a.Dir); err != nil {
		t.Fatal(err)
	}
	if code := runAgent(t.Context(), a.Dir, a.said, a.said); code != 0 {
		t.Errorf("got exit code %d: %s", code, a.said.String())
	}
	wantEvents(t, a.server.events, "online: 10.77.0.11")
}

func TestAgentTriesAgain(t *testing.T) {
	// kubeadm fails once, then succeeds; it always fails if there are leftovers.
	program := "#!/bin/sh\nif [ -e $SEEN ]; then\n[ -e $ROOT/etc/kubernetes/pki/ca.crt ] && exit 9\n" +
		"[ -e $ROOT/etc/kubernetes/bootstrap-kubelet.conf ] && exit 9\n" + strings.TrimPrefix(kubeadmSucceed, "#!/bin/sh\n") + "exit 0\nfi\n" +
		strings.TrimPrefix(kubeadmFail, "#!/bin/sh\n")
	a := newAgentTest(t, map[string]string{"kubeadm": program, "systemctl": "#!/bin/sh\necho systemctl \"$@\"\n"})
	if err := a.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantEvents(t, a.server.events, "online: 10.77.0.11",
		`joined: kubeadm join: exit status 1: error execution phase kubelet-start: a Node with name "cart01" exists, token [token]`,
		"joined: kubeadm join succeeded, run 2")
	fixture.WantText(t, "output", a.said.String(), "kubelet: systemctl stop kubelet.service", "trying again in 5 s")
	fixture.WantText(t, "configurations", fixture.ReadFile(t, a.seen), testToken, otherToken)
	if _, err := os.Stat(filepath.Join(a.Root, "/etc/kubernetes/other")); err != nil {
		t.Errorf("what is no leftover of kubeadm: %v", err)
	}
	a.noSecrets(t)
}

func TestAgentServerRefusesOrIsBusy(t *testing.T) {
	a := newAgentTest(t, map[string]string{"kubeadm": kubeadmSucceed})
	elsewhere, err := pools.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	a.server.joins = []http.HandlerFunc{
		func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, boots.ErrNonce.Error(), http.StatusForbidden)
		},
		func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "20")
			http.Error(w, "cluster tenant-a does not answer", http.StatusServiceUnavailable)
		},
		func(w http.ResponseWriter, _ *http.Request) { // sealed to another key
			sealed, err := pools.Seal(elsewhere.PublicKey().Bytes(), testMAC, "join", []byte("{}"))
			if err != nil {
				t.Error(err)
			}
			_, _ = w.Write(sealed)
		},
		func(w http.ResponseWriter, _ *http.Request) { // sealed to our key, but a NodeConfig
			sealed, err := pools.Seal(a.server.key, testMAC, "config", []byte("{}"))
			if err != nil {
				t.Error(err)
			}
			_, _ = w.Write(sealed)
		},
		func(w http.ResponseWriter, _ *http.Request) {
			sealed, err := pools.Seal(a.server.key, testMAC, "join", []byte(`{"kubeadm": "`+testToken))
			if err != nil {
				t.Error(err)
			}
			_, _ = w.Write(sealed)
		},
		func(w http.ResponseWriter, _ *http.Request) { _, _ = io.CopyN(w, zeros{}, client.MaxAnswer+1) },
	}
	if err := a.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	fixture.WantText(t, "output", a.said.String(),
		"the server refuses this boot (a newer boot of this machine, or a server that forgot it; a reboot heals both): "+
			"server answers 403 Forbidden: nonce is not the one",
		"server answers 503 Service Unavailable: cluster tenant-a does not answer; trying again in 22 s",
		"join configuration: the answer is not sealed to this boot's key; trying again in 20 s",
		"is not a *pools.JoinConfig; trying again in 30 s",
		"server's answer has more than 16777216 bytes",
	)
	if want := []time.Duration{5, 22, 20, 30, 30, 30}; !slices.EqualFunc(a.waits, want, func(a, b time.Duration) bool { return a/time.Second == b }) {
		t.Errorf("waits: got %v, want about %d s", a.waits, want)
	}
	a.noSecrets(t)
}

// zeros is an endless reader.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestAgentWithoutKubeadm(t *testing.T) {
	a := newAgentTest(t, nil)
	err := a.do(t.Context())
	if want := "the image has no kubeadm, so this node cannot join its cluster"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got error %v, want %q", err, want)
	}
	if len(a.server.events) != 2 || !strings.HasPrefix(a.server.events[1], "joined: the image has no kubeadm") {
		t.Errorf("events: got %q, want the error", a.server.events)
	}
	if a.server.asked != 0 {
		t.Error("it asked for a token all the same")
	}
}

func TestAgentAfterJoin(t *testing.T) {
	a := newAgentTest(t, map[string]string{"kubeadm": kubeadmFail})
	if err := nodeconfig.WriteFile(a.Root+kubeletConf, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantEvents(t, a.server.events, "online: 10.77.0.11", "joined: an earlier run of the agent joined the cluster")
	if _, err := os.Stat(a.Root + kubeletConf); err != nil {
		t.Error(err)
	}
}

func TestAgentStopped(t *testing.T) {
	a := newAgentTest(t, map[string]string{"kubeadm": "#!/bin/sh\nmkdir -p $ROOT/etc/kubernetes\n: >$ROOT/etc/kubernetes/kubelet.conf\necho waiting\nsleep 60\n"})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- a.do(ctx) }()
	fixture.Eventually(t, "a waiting kubeadm", func() bool { return strings.Contains(a.said.String(), "kubeadm: waiting") })
	cancel()
	if err := <-done; err == nil {
		t.Error("got no error")
	}
	if _, err := os.Stat(a.Root + kubeletConf); err != nil {
		t.Errorf("a join that may be good was undone: %v", err)
	}
	a.noSecrets(t)
}

func TestAgentScriptFails(t *testing.T) {
	a := newAgentTest(t, map[string]string{"kubeadm": kubeadmSucceed})
	a.State.Scripts = []pools.NamedScript{{Name: "mount", Stage: pools.Online, Run: "[ -e $DROVER_TEST ] && exit 0; echo no server; exit 1"}}
	flag := filepath.Join(t.TempDir(), "flag")
	a.State.Scripts[0].Run = strings.ReplaceAll(a.State.Scripts[0].Run, "$DROVER_TEST", flag)
	tries := 0
	a.Retry.Sleep = func(context.Context, time.Duration) error {
		if tries++; tries == 3 {
			return os.WriteFile(flag, nil, 0o644)
		}
		return nil
	}
	if err := a.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if tries != 3 {
		t.Errorf("got %d tries, want 3", tries)
	}
	const failed = `online: script "mount": exit status 1, after it printed: no server`
	if got := a.server.events; got[0] != failed || !slices.Contains(got, "online: 10.77.0.11") {
		t.Errorf("events: got %q, want %q first, and online", got, failed)
	}
}

// TestAgentStartsAgain: an agent that was killed takes up where it was. The scripts that had
// succeeded do not run again.
func TestAgentStartsAgain(t *testing.T) {
	a := newAgentTest(t, map[string]string{"kubeadm": kubeadmSucceed})
	flag := filepath.Join(t.TempDir(), "flag")
	a.State.Scripts = []pools.NamedScript{
		{Name: "1", Stage: pools.Online, Run: "echo first >>" + flag},
		{Name: "2", Stage: pools.Online, Run: "echo second >>" + flag + "; [ -e " + flag + ".on ]"},
	}
	ctx, cancel := context.WithCancel(t.Context())
	a.Retry.Sleep = func(context.Context, time.Duration) error { cancel(); return ctx.Err() }
	if err := a.do(ctx); err == nil {
		t.Fatal("the second script did not fail")
	}
	if err := os.WriteFile(flag+".on", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	boot, err := state.Load(a.Dir)
	if err != nil {
		t.Fatal(err)
	}
	next := &agentTest{agent: newAgent(boot, a.Srv, a.Key, console.New(a.said, fixedUptime), a.Dir)}
	next.Root = a.Root
	if err := next.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := fixture.ReadFile(t, flag); got != "first\nsecond\nsecond\n" {
		t.Errorf("the scripts ran as\n%s", got)
	}
	if got := a.server.events; !slices.Contains(got, "joined: kubeadm join succeeded, run 1") {
		t.Errorf("events: got %q, want joined", got)
	}
}

// TestAgentSendsWhatIsLeft: the server was away while drover-init ran.
func TestAgentSendsWhatIsLeft(t *testing.T) {
	a := newAgentTest(t, nil)
	b := &boot{con: a.Con, state: a.State, rep: &report.Reporter{Uptime: fixedUptime, Send: func(context.Context, boots.Event) error {
		return errors.New("connection refused")
	}}}
	b.state.Join = false
	b.rep.Start(func(f func()) { f() })
	b.rep.Report(boots.StepConfig, "5 files")
	b.rep.Report(boots.StepSwitch, "")
	b.endReports(a.Dir)
	left, err := state.Load(a.Dir)
	if err != nil {
		t.Fatal(err)
	}
	next := &agentTest{agent: newAgent(left, a.Srv, a.Key, console.New(a.said, fixedUptime), a.Dir)}
	if err := next.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantEvents(t, a.server.events, "config: 5 files", "switch-root:", "online: 10.77.0.11")
}

// TestAgentFinal: systemd does not start an agent again that cannot succeed.
func TestAgentFinal(t *testing.T) {
	a := newAgentTest(t, nil)
	t.Setenv("PATH", a.bin)
	for _, content := range []string{"", "{", `{"key": "AA=="}`, "-"} { // the first one is good, but the image has no kubeadm
		var err error
		switch content {
		case "":
		case "-": // it is done
			err = state.Remove(a.Dir)
		default:
			err = os.WriteFile(filepath.Join(a.Dir, filepath.Base(state.File)), []byte(content), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if code := runAgent(t.Context(), a.Dir, a.said, a.said); code != nodeconfig.ExitFinal {
			t.Errorf("state %q: got exit code %d, want %d: %s", content, code, nodeconfig.ExitFinal, a.said.String())
		}
	}
}

// TestAgentDisks: a node whose disk is missing neither joins nor is online before it comes; of
// an optional one it reports once that a tmpfs is in its place.
func TestAgentDisks(t *testing.T) {
	a := newAgentTest(t, map[string]string{"kubeadm": kubeadmSucceed})
	a.State.Mounts = []pools.Mount{
		{Path: "/run", Type: "tmpfs"}, // no disk
		{Path: "/var/lib/kubelet", Type: "ext4", Source: "LABEL=gone", Options: "nofail"},
		{Path: "/srv/a b", Type: "xfs", Source: "/dev/nvme0n1p2"},
	}
	write := func(text string) error {
		return nodeconfig.WriteFile(filepath.Join(a.Root, "/proc/self/mountinfo"), []byte(text), 0o644)
	}
	if err := write(strings.ReplaceAll(mountinfo, " xfs ", " tmpfs ")); err != nil {
		t.Fatal(err)
	}
	tries := 0
	a.Retry.Sleep = func(context.Context, time.Duration) error {
		tries++
		return write(mountinfo)
	}
	if err := a.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"online: mount /var/lib/kubelet: tmpfs is there in place of /dev/disk/by-label/gone: there is no such disk",
		"online: mount /srv/a b: tmpfs is there in place of /dev/nvme0n1p2: there is no such disk",
		"online: 10.77.0.11",
	}
	if got := a.server.events; tries != 1 || len(got) < 3 || !slices.Equal(got[:3], want) {
		t.Errorf("%d tries, events %q, want 1 and %q first", tries, got, want)
	}
}

func TestKubeadmErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		said string
		want string
	}{
		{"preflight", "[preflight] Running pre-flight checks\n[WARNING Hostname]: x\nerror: error execution phase preflight: [preflight] Some fatal errors occurred:\n" +
			"\t[ERROR FileAvailable--etc-kubernetes-pki-ca.crt]: /etc/kubernetes/pki/ca.crt already exists\n[preflight] If you know what you are doing",
			"error: error execution phase preflight: [preflight] Some fatal errors occurred:; [ERROR FileAvailable--etc-kubernetes-pki-ca.crt]: /etc/kubernetes/pki/ca.crt already exists"},
		{"none marked", "a\nb\nc\nd", "b; c; d"},
		{"many", strings.Repeat("error 1\n", 9) + "error 2", "error 1; error 1; error 1; error 1; error 2"},
		{"nothing said", "", ""},
	} {
		if got := kubeadmErrors(strings.Split(tt.said, "\n")); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := kubeadmErrors(nil); got != "" {
		t.Errorf("no lines: got %q", got)
	}
}
