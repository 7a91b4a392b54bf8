package objects_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"drover/e2e/apitest"
	"drover/e2e/farmtest"
	"drover/e2e/fixture"
	"drover/kube/cluster"
	"drover/kube/objects"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/config/declared"
)

const (
	farm = "server: {interfaces: [lo], address: 10.28.0.2, adminKubeconfig: none.kubeconfig, objects: {namespace: hall}}\nsubnets: [{cidr: 10.28.0.0/16}]\n"
	root = "/apis/" + pools.ObjectGroup + "/" + pools.ObjectVersion + "/namespaces/hall/"
	m1   = root + "machines/m1"
)

type object = apitest.Object

// hall is an admin cluster with a pool and a machine, and a watcher that follows it.
type hall struct {
	*apitest.Server
	*objects.Watcher
	live *config.Live
	log  *fixture.Log

	mu     sync.Mutex
	status pools.MachineStatus // of all machines
}

func newHall(t *testing.T) *hall {
	t.Helper()
	kinds := map[string]string{"events": "Event"}
	for _, k := range pools.ObjectKinds {
		kinds[k.Plural()] = string(k)
	}
	h := &hall{Server: apitest.New(t, kinds), log: new(fixture.Log)}
	_, h.live = farmtest.Open(t, farm)
	path := h.Kubeconfig()
	h.Watcher = &objects.Watcher{
		Cluster: cluster.NewAdmin(path, time.Now), Namespace: "hall", Farm: h.live, Log: slog.New(slog.NewTextHandler(h.log, nil)),
		Machine: func(string) pools.MachineStatus { h.mu.Lock(); defer h.mu.Unlock(); return h.status },
		Host: func(cluster, name string) (netip.Prefix, error) {
			return netip.Prefix{}, fmt.Errorf("%s has no Node in %s", name, cluster)
		},
	}
	h.Put(root+"pools/web", of("Pool", object{"image": "debian-12"}))
	h.Put(m1, of("Machine", object{"pool": "web", "macs": []any{"52:54:00:00:00:01"}, "ip": "10.28.0.11"}))
	return h
}

// of returns an object with a spec.
func of(kind string, spec any) object {
	return object{"apiVersion": pools.ObjectGroup + "/" + pools.ObjectVersion, "kind": kind, "metadata": object{"namespace": "hall"}, "spec": spec}
}

// run follows the objects until the test ends.
func (h *hall) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// condition returns STATUS REASON of a condition, and its message.
func (h *hall) condition(path, kind string) (state, message string) {
	status, _ := h.Get(path)["status"].(object)
	list, _ := status["conditions"].([]any)
	for _, c := range list {
		if c, _ := c.(object); c["type"] == kind {
			return apitest.Text(c, "status") + " " + apitest.Text(c, "reason"), apitest.Text(c, "message")
		}
	}
	return "", ""
}

// await waits for a condition.
func (h *hall) await(t *testing.T, path, kind, want string) (message string) {
	t.Helper()
	fixture.Eventually(t, path+" "+kind+" "+want, func() bool {
		got, text := h.condition(path, kind)
		message = text
		return got == want
	})
	return message
}

// inForce returns the names of the objects in force.
func (h *hall) inForce() string {
	var all []string
	for _, o := range h.live.Objects().InForce {
		all = append(all, o.Name)
	}
	return strings.Join(all, " ")
}

// TestInForce: objects are put in force and followed; each status is written once, and again when
// another party has taken it away.
func TestInForce(t *testing.T) {
	h := newHall(t)
	var changes atomic.Int32
	h.Changed = func(declared.Choice) { changes.Add(1) }
	h.status = pools.MachineStatus{Step: "image", Image: "debian-12", Error: strings.Repeat("no space\n", 100_000)}
	h.run(t)
	h.await(t, m1, pools.Accepted, "True InForce")
	h.await(t, root+"pools/web", pools.Ready, "True InForce")
	status := h.Get(m1)["status"].(object)
	if text := apitest.Text(status, "error"); len(text) > 2000 || strings.Contains(text, "\n") || apitest.Text(status, "step") != "image" {
		t.Errorf("the error has %d bytes: %.60q; %v", len(text), text, status["step"])
	}
	written := len(h.Requests("PATCH " + m1))
	h.Refresh()
	h.Put(root+"tags/red", of("Tag", object{"kernelArgs": "quiet"}))
	h.await(t, root+"tags/red", pools.Accepted, "True InForce")
	if now := len(h.Requests("PATCH " + m1)); now != written || written != 1 {
		t.Errorf("the status of m1 was written %d times, then %d", written, now)
	}
	h.Edit(m1, func(o object) { delete(o, "status") })
	h.await(t, m1, pools.Accepted, "True InForce")
	h.Drop(m1)
	fixture.Eventually(t, "m1 to leave", func() bool { return h.inForce() == "red web" || h.inForce() == "web red" })
	for _, r := range h.Requests("") {
		if path, query, _ := strings.Cut(r, "?"); !strings.HasPrefix(path, "GET ") && (!strings.HasSuffix(path, "/status") || !strings.Contains(query, "fieldManager="+objects.FieldManager)) {
			t.Errorf("%s: objects are read, and only their status is written", r)
		}
	}
	if n := changes.Load(); n < 3 || len(h.Problems()) > 0 {
		t.Errorf("%d changes, problems %v", n, h.Problems())
	}
}

// TestWrong: an object that is wrong leaves its last good version in force, and says why; the
// others do not suffer. No spec, whatever it is, ends the watcher.
func TestWrong(t *testing.T) {
	h := newHall(t)
	deep := any("x")
	for range 20 {
		deep = []any{deep}
	}
	bad := map[string]any{"null": nil, "text": "x", "list": []any{1}, "deep": object{"pool": deep}, "type": object{"pool": 1}, "unknown": object{"pool": "none"}, "key": object{"colour": strings.Repeat("x", 100_000)}, "mac": object{"pool": "web", "macs": []any{"52:54:00:00:00:01"}, "ip": "10.28.0.12"}}
	for name, spec := range bad {
		h.Put(root+"machines/"+name, of("Machine", spec))
	}
	h.run(t)
	for name := range bad {
		if name == "mac" {
			continue // that or m1
		}
		if message := h.await(t, root+"machines/"+name, pools.Accepted, "False Invalid"); message == "" || len(message) > 8000 {
			t.Errorf("%s: the message has %d bytes", name, len(message))
		}
	}
	h.Drop(root + "machines/mac")
	h.await(t, m1, pools.Accepted, "True InForce")
	h.Edit(m1, func(o object) { o["spec"].(object)["ip"] = "nonsense" })
	message := h.await(t, m1, pools.Accepted, "False LastGoodInForce")
	fixture.WantText(t, "the message", message, "nonsense", "Generation 1 stays in force")
	h.await(t, m1, pools.Ready, "False LastGoodInForce")
	if got := h.inForce(); !slices.Contains(strings.Fields(got), "m1") {
		t.Errorf("in force are %q", got)
	}
	fixture.WantText(t, "the problems", fmt.Sprint(h.Problems()), "object Machine m1", "object Machine null")
}

// TestReplaced: the status of an object is not written into another of its name.
func TestReplaced(t *testing.T) {
	h := newHall(t)
	replace := sync.OnceFunc(func() {
		h.Drop(m1)
		h.Put(m1, of("Machine", object{"pool": "none"}))
	})
	h.Before(func(method, path string) *apitest.Problem {
		if method == "PATCH" && path == m1+"/status" {
			replace()
		}
		return nil
	})
	h.run(t)
	fixture.Eventually(t, "a verdict about the new one", func() bool {
		state, _ := h.condition(m1, pools.Accepted)
		if strings.HasPrefix(state, "True") {
			t.Fatal("the new object has the status of the old one")
		}
		return strings.HasPrefix(state, "False")
	})
}

// TestUnread: as long as one kind cannot be read nothing is put in force, since nobody knows what
// is missing; but for hosts outside of clusters, which a young admin cluster does not know.
func TestUnread(t *testing.T) {
	h := newHall(t)
	var mu sync.Mutex
	refused := true
	h.Before(func(_, path string) *apitest.Problem {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case path == root+"externalhosts":
			return &apitest.Problem{Code: 404, Reason: "NotFound", Message: "the server could not find the requested resource"}
		case path == root+"machines" && refused:
			return &apitest.Problem{Code: 403, Reason: "Forbidden", Message: "machines is forbidden"}
		}
		return nil
	})
	h.run(t)
	fixture.Eventually(t, "the other kinds", func() bool { return len(h.Requests("watch=")) >= len(pools.ObjectKinds)-2 && len(h.Problems()) >= 2 })
	problems := h.Problems()
	fixture.WantText(t, "the problem of machines", problems["objects machines"], "drover may not list and watch machines in namespace hall", "the last ones stay in force")
	fixture.WantText(t, "the problem of hosts", problems["objects externalhosts"], "does not know the kind ExternalHost")
	if got := h.inForce(); got != "" || len(h.Requests("PATCH")) > 0 {
		t.Errorf("in force are %q, and statuses were written: %q", got, h.Requests("PATCH"))
	}
	mu.Lock()
	refused = false
	mu.Unlock()
	h.await(t, m1, pools.Accepted, "True InForce")
	if got := strings.Count(h.log.String(), "cannot read objects: the last ones stay active"); got != 2 {
		t.Errorf("the log has %d errors, want one of each kind:\n%s", got, h.log)
	}
}

// TestWarn: news of a boot become one Event, of a bounded text; nodes that are no Machine have none.
func TestWarn(t *testing.T) {
	h := newHall(t)
	h.run(t)
	h.await(t, m1, pools.Accepted, "True InForce")
	h.Warn("other", "b1", objects.BootFailed, "x")
	h.Booted("m1")
	for range 3 {
		h.Warn("m1", "b1", objects.BootFailed, strings.Repeat("no image\n", 1000))
	}
	h.Warn("m1", "b2", objects.BootStuck, "the last one")
	const events = "/api/v1/namespaces/hall/events"
	fixture.Eventually(t, "the last Event", func() bool { return len(h.Requests("POST "+events)) >= 2 })
	if got := h.Requests("POST " + events); len(got) != 2 {
		t.Errorf("%d Events, want 2", len(got))
	}
	for _, e := range h.Bodies("POST " + events) {
		if e == nil {
			continue // of another encoding than JSON
		}
		if text := apitest.Text(e, "message"); len(text) > 1024 || strings.Contains(text, "\n") || apitest.Text(e, "involvedObject", "name") != "m1" || apitest.Text(e, "involvedObject", "uid") != apitest.Text(h.Get(m1), "metadata", "uid") {
			t.Errorf("got %v", e)
		}
	}
}

// TestNotStarted: before Run, and without an API server, nothing blocks.
func TestNotStarted(t *testing.T) {
	h := newHall(t)
	for range 10_000 {
		h.Booted("m1")
		h.Warn("m1", "b", objects.BootStuck, "x")
	}
	h.Refresh()
	if got := h.Problems(); len(got) != 0 {
		t.Errorf("problems %v", got)
	}
}
