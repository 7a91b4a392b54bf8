package httpboot_test

import (
	"bytes"
	"context"
	"crypto/hpke"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"drover/pools"
	"drover/pools/boots"
	"drover/pools/resolve"
)

// node is a boot under way: what drover-init holds.
type node struct {
	*world
	mac   pools.MAC
	from  string
	nonce string
	key   hpke.PrivateKey
	id    string // of the kernel's boot
}

// boot takes a machine up to the point where drover-init has its command line.
func (w *world) boot(t testing.TB, m pools.MAC, from string) *node {
	t.Helper()
	script := w.do(from, "GET", "/boot/"+m.Dashed(), "").Body.String()
	_, rest, ok := strings.Cut(script, "drover.nonce=")
	if !ok {
		t.Fatalf("no nonce in\n%s", script)
	}
	n := &node{world: w, mac: m, from: from, nonce: strings.Fields(rest)[0]}
	var err error
	if n.key, err = pools.NewKey(); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *node) post(what, body string) *httptest.ResponseRecorder {
	return n.do(n.from, "POST", "/node/"+n.mac.Dashed()+"/"+what, body, pools.NonceHeader, n.nonce)
}

func keyBody(key hpke.PrivateKey) string { return (&node{key: key}).body() }

func (n *node) body() string {
	b, err := json.Marshal(pools.KeyRequest{PublicKey: n.key.PublicKey().Bytes(), BootID: n.id})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// ask posts a config or join request and opens the answer into v.
func (n *node) ask(t testing.TB, what string, v any) {
	t.Helper()
	resp := n.post(what, n.body())
	if resp.Code != 200 {
		t.Fatalf("%s: got status %d, %s", what, resp.Code, resp.Body)
	}
	plain, err := pools.Open(n.key, n.mac, what, resp.Body.Bytes())
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if err := json.Unmarshal(plain, v); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func TestConfig(t *testing.T) {
	n := newWorld(t, nil).boot(t, macBIOS, "127.0.0.1")
	var got pools.NodeConfig
	before := time.Now()
	n.ask(t, "config", &got)
	if got.Time.Before(before) || got.Time.After(time.Now()) {
		t.Errorf("the server's clock shows %v, between %v and now", got.Time, before)
	}
	got.Time = time.Time{}
	want := pools.NodeConfig{
		Hostname: "node-1", Domain: "example.org", Pool: "compute", Timezone: "Europe/Prague", MachineID: pools.MachineID(macBIOS),
		Sysctls: map[string]string{"net.ipv4.ip_forward": "1"},
		Files:   map[string]pools.File{"/etc/secret": {Content: fileSecret, Mode: "0600"}},
		Scripts: []pools.NamedScript{
			{Name: "z-first", Stage: pools.PreInit, Run: "#!/bin/sh\necho 'node-1' r1\n"},
			{Name: "a", Stage: pools.Online, Run: "#!/bin/sh\necho a\n"},
			{Name: "b", Stage: pools.Online, Run: "#!/bin/sh\necho b\n"},
		},
		Join: true, EventKey: eventKey(n.nonce),
		Tenant: pools.DiskTenant{Name: "cluster tenant-a", Former: "pool before", Change: pools.DiskWipe},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestConfigWithoutCluster(t *testing.T) {
	n := newWorld(t, nil).boot(t, macUEFI, "127.0.0.2")
	var got pools.NodeConfig
	n.ask(t, "config", &got)
	if got.Join || got.Hostname != "node-2" {
		t.Errorf("got %+v, want node-2 without a cluster", got)
	}
	if resp := n.post("join", keyBody(n.key)); resp.Code != 409 {
		t.Errorf("join: got status %d, want 409", resp.Code)
	}
}

func TestScriptTemplateErrors(t *testing.T) {
	for name, run := range map[string]string{
		"unknown key":   "{{.Labels.none}}",
		"unknown field": "{{.Token}}",
		"syntax":        "{{",
		"function":      "{{env}}",
	} {
		w := newWorld(t, nil)
		w.farm[macBIOS].Scripts = map[string]pools.Script{"s": {Stage: pools.PreInit, Run: run}}
		n := w.boot(t, macBIOS, "127.0.0.1")
		resp := n.post("config", keyBody(n.key))
		if resp.Code != 500 || !strings.Contains(resp.Body.String(), "see the server's log") {
			t.Errorf("%s: got status %d, %q; want 500", name, resp.Code, resp.Body)
		}
		if !strings.Contains(w.log.String(), `script \"s\"`) {
			t.Errorf("%s: the log does not name the script:\n%s", name, w.log)
		}
	}
}

func TestJoin(t *testing.T) {
	var plan *resolve.Plan
	var addr netip.Addr
	var bootID string
	joiner := &running{joinerFunc: func(ctx context.Context, p *resolve.Plan, a netip.Addr, id string) (pools.JoinConfig, error) {
		plan, addr, bootID = p, a, id
		return joinWithToken(ctx, p, a, id)
	}}
	w := newWorld(t, func(w *world) { w.Joiner = joiner })
	n := w.boot(t, macUnknown, "127.0.0.3")
	n.id = "8f5c6a1e-2b3d-4c5e-9f70-0123456789ab"
	n.ask(t, "config", &pools.NodeConfig{})
	if want := []string{"node-525400770101"}; !slices.Equal(joiner.asked, want) {
		t.Errorf("the joiner was asked whether %q live, want %q", joiner.asked, want)
	}
	var got pools.JoinConfig
	n.ask(t, "join", &got)
	if want := "token: " + tokenSecret; got.Kubeadm != want {
		t.Errorf("got %q, want %q", got.Kubeadm, want)
	}
	if plan.Node != "node-525400770101" || addr != netip.MustParseAddr("127.0.0.3") || bootID != n.id {
		t.Errorf("the joiner was asked about %s at %s, boot %q", plan.Node, addr, bootID)
	}
	if got, want := w.boots.seen(macUnknown), []string{"script", "token"}; !slices.Equal(got, want) {
		t.Errorf("got steps %q, want %q", got, want)
	}
	if last := w.boots.steps[len(w.boots.steps)-1]; last.Detail != n.id {
		t.Errorf("the step's detail is %q, want the boot ID", last.Detail)
	}
}

func TestBootID(t *testing.T) {
	for _, id := range []string{"x", "8f5c6a1e-2b3d-4c5e-9f70-0123456789a", "8f5c6a1e-2b3d-4c5e-9f70-0123456789aB", "8f5c6a1e-2b3d-4c5e-9f70-0123456789\n", strings.Repeat("a", 37)} {
		n := newWorld(t, nil).boot(t, macBIOS, "127.0.0.1")
		n.id = id
		if resp := n.post("join", n.body()); resp.Code != 400 || n.boots.claimedBy(macBIOS) != "" {
			t.Errorf("%q: got status %d, and the boot is claimed by %q", id, resp.Code, n.boots.claimedBy(macBIOS))
		}
	}
}

type joinErr struct {
	temporary bool
	after     time.Duration
}

func (e joinErr) Error() string   { return "secret detail" }
func (e joinErr) Temporary() bool { return e.temporary }

type laterErr struct{ joinErr }

func (e laterErr) RetryAfter() time.Duration { return e.after }

func TestJoinErrors(t *testing.T) {
	tests := []struct {
		name   string
		err    error
		status int
		after  string
	}{
		{"temporary", fmt.Errorf("api: %w", joinErr{temporary: true}), 503, "5"},
		{"for good", joinErr{}, 500, ""},
		{"unknown", errors.New("secret detail"), 500, ""},
		{"deadline", fmt.Errorf("secret detail: %w", context.DeadlineExceeded), 503, "5"},
		{"later", laterErr{joinErr{after: 1500 * time.Millisecond}}, 503, "2"},
		{"at once", laterErr{joinErr{}}, 503, "1"},
		{"much later", laterErr{joinErr{after: time.Hour}}, 503, "300"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, func(w *world) {
				w.Joiner = joinerFunc(func(context.Context, *resolve.Plan, netip.Addr, string) (pools.JoinConfig, error) {
					return pools.JoinConfig{}, tt.err
				})
			})
			n := w.boot(t, macBIOS, "127.0.0.1")
			resp := n.post("join", keyBody(n.key))
			if resp.Code != tt.status || resp.Header().Get("Retry-After") != tt.after {
				t.Errorf("got status %d, Retry-After %q; want %d, %q", resp.Code, resp.Header().Get("Retry-After"), tt.status, tt.after)
			}
			if body := resp.Body.String(); strings.Contains(body, "secret detail") || !strings.Contains(body, `cluster "tenant-a"`) {
				t.Errorf("got %q, want the cluster's name and no details", body)
			}
			if !strings.Contains(w.log.String(), "secret detail") {
				t.Error("the log has no details")
			}
			if got, want := w.boots.seen(macBIOS), []string{"script", "token!" + tt.err.Error()}; !slices.Equal(got, want) {
				t.Errorf("got steps %q, want %q", got, want)
			}
		})
	}
}

// A node that asks while it is being answered would mint a second token.
func TestJoinOneAtATime(t *testing.T) {
	entered, release := make(chan bool), make(chan bool)
	w := newWorld(t, func(w *world) {
		w.Joiner = joinerFunc(func(ctx context.Context, p *resolve.Plan, a netip.Addr, id string) (pools.JoinConfig, error) {
			entered <- true
			<-release
			return joinWithToken(ctx, p, a, id)
		})
	})
	n := w.boot(t, macBIOS, "127.0.0.1")
	first := make(chan int)
	go func() { first <- n.post("join", keyBody(n.key)).Code }()
	<-entered
	if resp := n.post("join", keyBody(n.key)); resp.Code != 503 || resp.Header().Get("Retry-After") == "" {
		t.Errorf("second: got status %d, want 503 with Retry-After", resp.Code)
	}
	close(release)
	if got := <-first; got != 200 {
		t.Errorf("first: got status %d, want 200", got)
	}
	go func() { <-entered }()
	if resp := n.post("join", keyBody(n.key)); resp.Code != 200 {
		t.Errorf("third: got status %d, want 200", resp.Code)
	}
}

func TestJoinTimeout(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.JoinTimeout = time.Millisecond
		w.Joiner = joinerFunc(func(ctx context.Context, _ *resolve.Plan, _ netip.Addr, _ string) (pools.JoinConfig, error) {
			<-ctx.Done()
			return pools.JoinConfig{}, ctx.Err()
		})
	})
	n := w.boot(t, macBIOS, "127.0.0.1")
	if resp := n.post("join", keyBody(n.key)); resp.Code != 503 {
		t.Errorf("got status %d, want 503", resp.Code)
	}
}

func TestNodeRefusals(t *testing.T) {
	tests := []struct {
		name   string
		edit   func(n *node)
		body   string // instead of the key
		status int
		text   string
	}{
		{name: "foreign address", edit: func(n *node) { n.from = "127.0.0.9" }, status: 403, text: "is not the address of"},
		{name: "another node's address", edit: func(n *node) { n.from = "127.0.0.2" }, status: 403, text: "is not the address of"},
		{name: "another node's path", edit: func(n *node) { n.mac = macUEFI }, status: 403, text: "is not the address of"},
		{name: "unknown MAC", edit: func(n *node) { n.mac = macForeign }, status: 404, text: "not known here"},
		{name: "no lease", edit: func(n *node) { n.mac = macNoLease }, status: 403, text: "has no address from here"},
		{name: "no nonce", edit: func(n *node) { n.nonce = "" }, status: 403, text: "is not the nonce"},
		{name: "long nonce", edit: func(n *node) { n.nonce = strings.Repeat("0", 1000) }, status: 403, text: "is not the nonce"},
		{name: "wrong nonce", edit: func(n *node) { n.nonce = strings.Repeat("f", 32) }, status: 403, text: boots.ErrNonce.Error()},
		{name: "nonce of the boot before", edit: func(n *node) { n.do(n.from, "GET", "/boot/"+n.mac.Dashed(), "") }, status: 403, text: boots.ErrNonce.Error()},
		{name: "no body", body: " ", status: 400, text: "not the JSON"},
		{name: "no object", body: "[]", status: 400, text: "not the JSON"},
		{name: "unknown field", body: `{"publicKey":"","x":1}`, status: 400, text: "not the JSON"},
		{name: "two values", body: `{"publicKey":""}{}`, status: 400, text: "more than one"},
		{name: "rubbish behind", body: `{"publicKey":""} x`, status: 400, text: "more than one"},
		{name: "no key", body: `{}`, status: 400, text: "not an X25519 key"},
		{name: "short key", body: `{"publicKey":"AAAA"}`, status: 400, text: "not an X25519 key"},
		{name: "key of low order", body: `{"publicKey":"` + strings.Repeat("A", 43) + `="}`, status: 400, text: "not an X25519 key"},
		{name: "large", body: `{"publicKey":"` + strings.Repeat("A", pools.MaxNodeRequest) + `"}`, status: 413, text: "more than 8192 bytes"},
		{name: "state is broken", edit: func(n *node) { n.boots.fail = errors.New("bolt: /var/lib/x is full") }, status: 500, text: "the boot cannot be recorded"},
	}
	for _, what := range []string{"config", "join"} {
		for _, tt := range tests {
			t.Run(what+"/"+tt.name, func(t *testing.T) {
				n := newWorld(t, nil).boot(t, macBIOS, "127.0.0.1")
				if tt.edit != nil {
					tt.edit(n)
				}
				if tt.body == "" {
					tt.body = keyBody(n.key)
				}
				resp := n.post(what, tt.body)
				if resp.Code != tt.status || !strings.Contains(resp.Body.String(), tt.text) {
					t.Errorf("got status %d, %q; want %d, %q", resp.Code, resp.Body, tt.status, tt.text)
				}
				if strings.Contains(resp.Body.String(), "bolt") {
					t.Errorf("the client learns of %q", resp.Body)
				}
				if got := n.boots.claimedBy(macBIOS); got != "" {
					t.Error("the boot was claimed")
				}
			})
		}
	}
}

func TestNonceReplayedByAnother(t *testing.T) {
	n := newWorld(t, nil).boot(t, macBIOS, "127.0.0.1")
	n.ask(t, "config", &pools.NodeConfig{})
	thief := *n
	thief.key, _ = pools.NewKey()
	for _, what := range []string{"config", "join"} {
		resp := thief.post(what, keyBody(thief.key))
		if resp.Code != 403 || !strings.Contains(resp.Body.String(), boots.ErrClaimed.Error()) {
			t.Errorf("%s: got status %d, %q; want 403", what, resp.Code, resp.Body)
		}
	}
	// The one that came first goes on, and may ask again for what got lost.
	n.ask(t, "config", &pools.NodeConfig{})
	n.ask(t, "join", &pools.JoinConfig{})
	n.ask(t, "join", &pools.JoinConfig{})
	// Even with the thief's key in the body, an answer is for the owner alone.
	resp := n.post("config", keyBody(n.key))
	if _, err := pools.Open(thief.key, n.mac, "config", resp.Body.Bytes()); err == nil {
		t.Error("the thief opened the answer")
	}
}

func TestEvents(t *testing.T) {
	long := strings.Repeat("ä", 400)
	tests := []struct {
		name   string
		body   string
		status int
		want   boots.Event
	}{
		{"plain", `{"step":"image","uptime":12.5,"detail":"260 MB in 2.4 s"}`, 204, boots.Event{Step: "image", Uptime: 12.5, Detail: "260 MB in 2.4 s"}},
		{"error", `{"step":"joined","uptime":1,"error":"kubeadm: exit 1"}`, 204, boots.Event{Step: "joined", Uptime: 1, Error: "kubeadm: exit 1"}},
		{"control characters", `{"step":"init","uptime":1,"detail":"a\nb\u001b[2Jc\u0000\u0085d\u202ee"}`, 204, boots.Event{Step: "init", Uptime: 1, Detail: "a b?[2Jc? d?e"}},
		{"no UTF-8", "{\"step\":\"init\",\"uptime\":1,\"error\":\"a\xff\"}", 204, boots.Event{Step: "init", Uptime: 1, Error: "a\uFFFD"}},
		{"long", `{"step":"init","uptime":1,"error":"` + long + `"}`, 204, boots.Event{Step: "init", Uptime: 1, Error: long[:508] + "…"}},
		{"longer by a byte", `{"step":"init","uptime":1,"error":"x` + long + `"}`, 204, boots.Event{Step: "init", Uptime: 1, Error: "x" + long[:508] + "…"}},
		{"step of the server", `{"step":"token","uptime":1}`, 400, boots.Event{}},
		{"step of dhcp", `{"step":"discover","uptime":1}`, 400, boots.Event{}},
		{"step of the cluster", `{"step":"ready","uptime":1}`, 400, boots.Event{}},
		{"no step", `{}`, 400, boots.Event{}},
		{"unknown step", `{"step":"x","uptime":1}`, 400, boots.Event{}},
		{"uptime before the start", `{"step":"init","uptime":-1}`, 400, boots.Event{}},
		{"uptime of ages", `{"step":"init","uptime":1e300}`, 400, boots.Event{}},
		{"large", `{"step":"init","uptime":1,"error":"` + strings.Repeat("x", pools.MaxEventBody) + `"}`, 413, boots.Event{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := newWorld(t, nil).boot(t, macBIOS, "127.0.0.1")
			resp := n.post("events", tt.body)
			if resp.Code != tt.status {
				t.Fatalf("got status %d, %s; want %d", resp.Code, resp.Body, tt.status)
			}
			var want []step
			if tt.status == 204 {
				want = []step{{macBIOS, n.nonce, tt.want}}
			}
			if got := n.boots.steps[1:]; !slices.Equal(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestEventLimit(t *testing.T) {
	const event = `{"step":"init","uptime":1,"error":"one more"}`
	n := newWorld(t, nil).boot(t, macBIOS, "127.0.0.1")
	other := n.boot(t, macUEFI, "127.0.0.2")
	for i := range 200 {
		if resp := n.post("events", fmt.Sprintf(`{"step":"init","uptime":1,"error":"%d"}`, i)); resp.Code != 204 {
			t.Fatalf("event %d: got status %d, want 204", i+1, resp.Code)
		}
	}
	if resp := n.post("events", event); resp.Code != 429 {
		t.Errorf("event 201: got status %d, want 429", resp.Code)
	}
	// A nonce that is wrong does not begin a new count.
	wrong := *n
	wrong.nonce = strings.Repeat("a", 32)
	if resp := wrong.post("events", event); resp.Code != 403 {
		t.Errorf("wrong nonce: got status %d, want 403", resp.Code)
	}
	if resp := n.post("events", event); resp.Code != 429 {
		t.Errorf("after a wrong nonce: got status %d, want 429", resp.Code)
	}
	if resp := other.post("events", event); resp.Code != 204 {
		t.Errorf("another node: got status %d, want 204", resp.Code)
	}
	if resp := n.boot(t, macBIOS, "127.0.0.1").post("events", event); resp.Code != 204 {
		t.Errorf("the next boot: got status %d, want 204", resp.Code)
	}
}

// A node that fails for hours repeats its errors, and reports the steps that it reaches then.
func TestEventLimitOfRetries(t *testing.T) {
	n := newWorld(t, func(w *world) { w.MaxEvents = 3 }).boot(t, macBIOS, "127.0.0.1")
	report := func(step, err string, want int) {
		t.Helper()
		if resp := n.post("events", fmt.Sprintf(`{"step":%q,"uptime":1,"error":%q}`, step, err)); resp.Code != want {
			t.Errorf("%s, error %q: got status %d, want %d", step, err, resp.Code, want)
		}
	}
	for _, step := range []string{"init", "network", "image"} {
		report(step, "", 204)
	}
	for range 300 {
		report("online", "no route", 204)
	}
	report("online", "no server", 204)
	report("joined", "no server", 204)
	for range 3 {
		report("online", "no server", 429) // the fourth change
		report("joined", "no server", 204) // still the last one
	}
	recorded := len(n.boots.steps)
	for range 3 {
		report("online", "", 204)
		report("joined", "", 204)
	}
	if got := n.boots.steps[recorded:]; len(got) != 2 || got[0].Step != boots.StepOnline || got[1].Step != boots.StepJoined {
		t.Errorf("beyond the limit: recorded %+v, want online and joined", got)
	}
	report("joined", "no server", 429)
}

// What is refused does not count against the boot.
func TestEventLimitCountsRecorded(t *testing.T) {
	n := newWorld(t, func(w *world) { w.MaxEvents = 2 }).boot(t, macBIOS, "127.0.0.1")
	events := 0
	post := func(want int) {
		t.Helper()
		events++
		if resp := n.post("events", fmt.Sprintf(`{"step":"init","uptime":1,"error":"%d"}`, events)); resp.Code != want {
			t.Errorf("got status %d, want %d", resp.Code, want)
		}
	}
	post(204)
	n.boots.fail = errors.New("disk full")
	post(500)
	post(500)
	n.boots.fail = nil
	post(204)
	post(429)
}

// FuzzNode: whatever a node sends, it gets an answer that is meant for it, and
// nothing gets through that is not checked.
func FuzzNode(f *testing.F) {
	key, err := pools.NewKey()
	if err != nil {
		f.Fatal(err)
	}
	f.Add("config", keyBody(key))
	f.Add("join", keyBody(key))
	f.Add("events", `{"step":"image","uptime":12.5,"detail":"260 MB in 2.4 s","error":"a\u001b[2J"}`)
	f.Add("events", `{"step":"ready"}`)
	f.Add("config", `{"publicKey":null}`)
	f.Add("join", strings.Repeat("[", 9000))
	f.Add("events", "{\"step\":\"init\",\"detail\":\"\xff\xfe\"}")
	w := newWorld(f, nil)
	f.Fuzz(func(t *testing.T, what, body string) {
		if what != "config" && what != "join" && what != "events" {
			return
		}
		n := w.boot(t, macBIOS, "127.0.0.1")
		w.boots.steps = nil
		resp := n.post(what, body)
		switch resp.Code {
		case 200, 204, 400, 413:
		default:
			t.Errorf("got status %d, %s", resp.Code, resp.Body)
		}
		if key := w.boots.claimedBy(macBIOS); key != "" && len(key) != 32 {
			t.Errorf("claimed by a key of %d bytes", len(key))
		}
		if bytes.Contains(resp.Body.Bytes(), []byte(fileSecret)) || bytes.Contains(resp.Body.Bytes(), []byte(tokenSecret)) {
			t.Error("a secret in clear")
		}
		for _, s := range w.boots.steps {
			for _, text := range []string{s.Detail, s.Error} {
				if len(text) > 512 || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
					t.Errorf("recorded %q", text)
				}
			}
		}
	})
}

// TestConfigOfRunningNode: a boot in the name of a machine whose kubelet lives opens no config, and
// the boot says why. While that is not certain, the machine waits, and nothing is wrong.
func TestConfigOfRunningNode(t *testing.T) {
	joiner := &running{joinerFunc: joinWithToken, again: 12 * time.Second}
	w := newWorld(t, func(w *world) { w.Joiner = joiner })
	n := w.boot(t, macUnknown, "127.0.0.3")
	for _, step := range []struct {
		again      time.Duration
		err        error
		retry, bad string
	}{
		{12 * time.Second, nil, "13", ""},
		{0, busy("its kubelet renewed its Lease"), "7", "its kubelet renewed its Lease"},
	} {
		joiner.again, joiner.err = step.again, step.err
		resp := n.post("config", keyBody(n.key))
		if resp.Code != 503 || resp.Header().Get("Retry-After") != step.retry || strings.Contains(resp.Body.String(), "Lease") {
			t.Errorf("got status %d, Retry-After %s: %s", resp.Code, resp.Header().Get("Retry-After"), resp.Body)
		}
		last := w.boots.steps[len(w.boots.steps)-1]
		if last.Error != step.bad {
			t.Errorf("the boot has the error %q, want %q", last.Error, step.bad)
		}
	}
	joiner.err = nil
	n.ask(t, "config", &pools.NodeConfig{})
}
