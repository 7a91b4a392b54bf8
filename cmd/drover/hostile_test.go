package main

import (
	"bytes"
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"drover/e2e/ilosim"
	"drover/pools"
	"drover/pools/boots"
)

// forTerminals is text that writes to a terminal: its title, its screen, C1 controls,
// another reading direction, another line, and bytes that are not UTF-8.
const forTerminals = "\x1b]0;owned\x07\x1b[2J\u009b31m\u202e\u2066\u200b\r\n\tx\x7f\u2028\xff\xfe"

// placeholder stands for forTerminals in the values of fill.
const placeholder = "PLACEHOLDER"

// inJSON returns the JSON of v with forTerminals in place of each placeholder, most of it
// without escapes.
func inJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	raw := strings.NewReplacer("\x1b", `\u001b`, "\x07", `\u0007`, "\r", `\r`, "\n", `\n`, "\t", `\t`).Replace(forTerminals)
	return bytes.ReplaceAll(text, []byte(placeholder), []byte(raw))
}

// fill sets all strings in v to the placeholder, all times to now, and makes all lists
// one element long.
func fill(v reflect.Value) {
	switch at := v.Addr().Interface().(type) {
	case *time.Time:
		*at = time.Now()
		return
	case *pools.MAC:
		*at = pools.MAC{0x52, 0x54, 0, 0, 0, 1}
		return
	case *pools.Duration:
		*at = pools.Duration(time.Minute)
		return
	case encoding.TextUnmarshaler, json.Unmarshaler:
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(placeholder)
	case reflect.Int:
		v.SetInt(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		if v.Type().Key().Kind() == reflect.String {
			value := reflect.New(v.Type().Elem()).Elem()
			fill(value)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf(placeholder).Convert(v.Type().Key()), value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	}
}

// filled returns a T with text for terminals in all of its strings.
func filled[T any](edit func(*T)) T {
	var v T
	fill(reflect.ValueOf(&v).Elem())
	if edit != nil {
		edit(&v)
	}
	return v
}

// transcript is the output of a chassis with one node.
const transcript = `Slot ID   NIC 1 (Switch A)
---- ---- -----------------
 1   c1n1 94:57:a5:00:01:01
`

// hostileAPI answers every request of the commands.
func hostileAPI(t *testing.T) http.Handler {
	node, lease, unknown, boot := filled[pools.NodeInfo](nil), filled[pools.LeaseInfo](nil), filled[pools.Unknown](nil), filled[boots.Record](nil)
	added := filled(func(n *pools.NodeInfo) { n.Source = pools.Origin{} })
	job := filled[pools.PowerJob](nil)
	list := func(v any) any { return []any{v} }
	answers := map[string]func() any{
		"/api/v1/nodes": func() any { return []any{node, added} }, "/api/v1/nodes/n1": func() any { return node },
		"/api/v1/leases": func() any { return list(lease) }, "/api/v1/unknown": func() any { return list(unknown) },
		"/api/v1/boots": func() any { return list(boot) }, "/api/v1/power": func() any { return job },
		"/api/v1/audit":            func() any { return list(filled[pools.AuditEntry](nil)) },
		"/api/v1/clusters/a/token": func() any { return filled[pools.JoinToken](nil) },
		"/api/v1/chassis": func() any {
			return list(filled(func(c *pools.ChassisStatus) { c.Name = "m1" }))
		},
		"/api/v1/chassis/m1/sync": func() any { return struct{}{} },
		"/api/v1/status":          func() any { return filled[pools.Overview](nil) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a, ok := answers[r.URL.Path]; ok {
			_, _ = w.Write(inJSON(t, a()))
			return
		}
		w.WriteHeader(http.StatusConflict)
		_, _ = w.Write(inJSON(t, map[string]string{"error": placeholder}))
	})
}

// checkPrintable fails the test when the output of a command controls a terminal.
func checkPrintable(t *testing.T, line, output string) {
	t.Helper()
	if i := strings.IndexFunc(output, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }); i >= 0 || !utf8.ValidString(output) {
		t.Errorf("drover %s: the output has characters for terminals:\n%q", line, output)
	}
}

// TestHostileServer runs each command of the API against a server whose answers write to
// a terminal (finding M12).
func TestHostileServer(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{"drover.yaml": strings.ReplaceAll(hardwareConfig, "CHASSIS", "[]"), "token": "secret\n", "m1.txt": transcript})
	api := httptest.NewServer(hostileAPI(t))
	t.Cleanup(api.Close)
	t.Setenv("DROVER_API", api.URL)
	t.Setenv("DROVER_TOKEN_FILE", "token")
	for _, tt := range []struct {
		line  string
		lines int // of standard output; 0: any number
	}{
		{"node list", 3}, {"lease list", 2}, {"unknown list", 2}, {"boot list", 2}, {"audit", 2}, {"chassis list", 2},
		{"node show n1", 0}, {"node show n1 -o json", 0}, {"node show n1 -o yaml", 0},
		{"node list -o json", 0}, {"unknown list -o yaml", 0}, {"boot list -o yaml", 0}, {"chassis list -o json", 0},
		{"boot show n1", 0}, {"boot watch n1 --timeout 100ms --interval 10ms", 1}, {"chassis sync m1", 0},
		{"power status n1", 2}, {"power status n1 -o yaml", 0}, {"token show a", 0}, {"token show a -o yaml", 0},
		{"explain -c drover.yaml 52:54:00:00:00:01 --live", 0},
		{"status", 0}, {"status -o yaml", 0}, {"node list --watch", 1}, {"node list --watch -o json", 0},
		{"node show other", 0}, {"node rm n2 -y", 0}, {"lease release 10.28.0.1", 0}, {"unknown forget 52:54:00:00:00:01", 0},
		{"node next-boot n2 local", 0}, {"chassis sync m2", 0}, {"token show b", 0},
		{"import moonshot --from-file m1.txt --pool p --apply", 0},
	} {
		code, out, errs := drover(t, tt.line)
		checkPrintable(t, tt.line, out+errs)
		if out+errs == "" || tt.lines > 0 && strings.Count(out, "\n") != tt.lines {
			t.Errorf("drover %s: exit %d, want %d lines:\n%s%s", tt.line, code, tt.lines, out, errs)
		}
	}
	_, out, _ := drover(t, "audit -o json")
	var got []pools.AuditEntry
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got) != 1 || got[0].Result != strings.ReplaceAll(forTerminals, "\xff\xfe", "\ufffd\ufffd") {
		t.Errorf("JSON has other values: %q, %v", got, err)
	}
}

// TestHostileStatus: status lines and errors of a server that write to a terminal (M12).
func TestHostileStatus(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{"token": "secret\n", "pass": "correct horse\n"})
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 500 "+strings.NewReplacer("\r", "", "\n", "").Replace(forTerminals)+"\r\nContent-Length: 0\r\n\r\n")
	})
	api := httptest.NewServer(answer)
	t.Cleanup(api.Close)
	chassis, err := ilosim.ServeHTTPS("127.0.0.1:0", answer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { chassis.Close() })
	t.Setenv("DROVER_API", api.URL)
	t.Setenv("DROVER_TOKEN_FILE", "token")
	const login = " --password-file pass --known-certs known_certs"
	for _, line := range []string{
		"node list", "chassis list", "boot watch",
		"import moonshot --pool p --chassis m1=https://" + chassis.Addr + login,
		"import ilo --pool p --via redfish --hosts " + chassis.Addr + login,
		"import ilo --pool p --hosts " + chassis.Addr + login,
		"power status all --chassis m1=https://" + chassis.Addr + login,
		"power status " + chassis.Addr + " --driver redfish" + login,
	} {
		code, out, errs := drover(t, line)
		checkPrintable(t, line, out+errs)
		if code == 0 || !strings.Contains(out+errs, "500 ?]0;owned") {
			t.Errorf("drover %s: exit %d\n%s%s", line, code, out, errs)
		}
	}
}

// TestHostileChassis imports and syncs a chassis whose collection never ends, beside a
// good one: the good one is stored, the other is an error (finding H12).
func TestHostileChassis(t *testing.T) {
	good := ilosim.New(1, 2, 1, 2)
	bad, err := ilosim.ServeHTTPS("127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"Members": [], "Members@odata.nextLink": %q}`, r.URL.Path+"x")
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bad.Close() })
	h, _, log := hardwareSite(t, fmt.Sprintf(`[
  {name: m1, address: "%s", passwordFile: pass, pool: compute, ipTemplate: "10.28.7.{{.Cartridge}}", interval: 1h},
  {name: m2, address: "%s", via: rest, passwordFile: pass, pool: compute, ipTemplate: "10.28.8.{{.Cartridge}}", interval: 1h}]`, manager(t, good), bad.Addr))
	if code, out, errs := drover(t, "chassis sync m1 m2"); code != 3 || !strings.Contains(out, "m1: 2 nodes: ") || !strings.Contains(errs, "m2: not understood: ") || !strings.Contains(errs, "more than 64 pages") {
		t.Errorf("sync: exit %d\n%s%s", code, out, errs)
	}
	if w := h.Warnings(); len(w) != 1 || !strings.Contains(w["m2"], "more than 64 pages") {
		t.Errorf("warnings: %v", w)
	}
	if !strings.Contains(log.String(), "chassis=m2") {
		t.Errorf("log:\n%s", log.String())
	}
	line := "import moonshot --pool p --chassis m2=https://" + bad.Addr + " --password-file pass --known-certs certs"
	if code, out, errs := drover(t, line); code != 1 || !strings.Contains(errs, "more than 64 pages") {
		t.Errorf("import: exit %d\n%s%s", code, out, errs)
	}
}

// TestHostileCluster checks a cluster whose answers write to a terminal (finding M12).
func TestHostileCluster(t *testing.T) {
	t.Chdir(t.TempDir())
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/version" {
			_, _ = w.Write(inJSON(t, map[string]string{"major": "1", "minor": "31", "gitVersion": "v1.31.0" + placeholder}))
			return
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write(inJSON(t, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": placeholder}))
	}))
	t.Cleanup(api.Close)
	writeFiles(t, map[string]string{
		"drover.yaml": `server: {interfaces: [eth1]}
subnets: [{cidr: 10.0.0.0/16}]
clusters: [{name: a, kubeconfig: kubeconfig}]
pools: [{name: p, image: i, cluster: a}]
`,
		"kubeconfig": `apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "` + api.URL + `"}}]
users: [{name: a, user: {token: b}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a
`,
	})
	code, out, errs := drover(t, "cluster check -c drover.yaml a")
	checkPrintable(t, "cluster check", out+errs)
	if code != 1 || !strings.Contains(out+errs, "owned") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

// TestHostileImage: names of an image that write to a terminal (finding M12).
func TestHostileImage(t *testing.T) {
	t.Chdir(t.TempDir())
	name := strings.NewReplacer("/", "", "\n", "", "\t", "").Replace(forTerminals)
	if err := errors.Join(os.MkdirAll(filepath.Join("root", "boot"), 0o755), os.WriteFile(filepath.Join("root", "boot", "vmlinuz-"+name), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"image build --name a --images images --init " + self + " dir:root", "image list --images images", "loaders list --loaders images"} {
		var out, errs strings.Builder
		run(context.Background(), strings.Fields(line), &out, &errs)
		checkPrintable(t, line, out.String()+errs.String())
	}
}
