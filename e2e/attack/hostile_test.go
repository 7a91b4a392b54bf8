package attack_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"drover/e2e/attack"
	"drover/e2e/fixture"
	"drover/e2e/ilosim"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:%d"}}]
users: [{name: u, user: {token: x}}]
`

// TestHostileAPIServers (C2) has tenants whose API servers answer without end: three at
// once, and the one that takes the most memory alone; with -long also all at once, and each
// alone. The machines of other tenants boot.
func TestHostileAPIServers(t *testing.T) {
	l := newLab(t)
	all := attack.APIServers()
	t.Run("three at once", func(t *testing.T) { hostileTenants(t, l, all[0], all[1], all[4]) })
	t.Run(all[3].Name, func(t *testing.T) { hostileTenants(t, l, all[3]) })
	if !*long {
		return
	}
	t.Run("all at once", func(t *testing.T) { hostileTenants(t, l, all...) })
	for _, h := range all {
		t.Run(h.Name, func(t *testing.T) { hostileTenants(t, l, h) })
	}
}

// hostileTenants runs the server with these tenants, and boots a machine of another one.
func hostileTenants(t *testing.T, l *attack.Lab, tenants ...attack.Hostile) {
	t.Helper()
	farm := fmt.Sprintf(attack.Farm, "")
	clusters := "clusters:\n"
	for i := range tenants {
		farm += fmt.Sprintf("  - {name: p%d, cluster: hostile%d, image: lab, nodes: [{name: h%d, macs: [\"52:54:00:77:08:%02x\"], ip: 10.77.8.%d}]}\n", i, i, i, i, i+1)
		clusters += fmt.Sprintf("  - {name: hostile%d, kubeconfig: %d.kubeconfig}\n", i, i)
	}
	s := l.NewServer(t, farm+clusters, 1<<20)
	var asked []*atomic.Int64
	for i, h := range tenants {
		if err := os.WriteFile(filepath.Join(s.Dir, fmt.Sprintf("%d.kubeconfig", i)), fmt.Appendf(nil, kubeconfig, 6443+i), 0o600); err != nil {
			t.Fatal(err)
		}
		asked = append(asked, attack.ServeHTTP(t, l.Net, fmt.Sprintf("127.0.0.1:%d", 6443+i), h.Answer))
	}
	suffers(t, l, s, 12*time.Second, asked...)
	for i, h := range tenants {
		fixture.Eventually(t, "/readyz to name the cluster of "+h.Name, func() bool {
			return !s.Running() || strings.Contains(s.Ready(), fmt.Sprintf("hostile%d", i))
		})
	}
}

// maxChassisRequests is above the number of requests that one inventory of a chassis takes.
const maxChassisRequests = 300

// TestHostileChassis (H12) has chassis managers whose answers never end.
func TestHostileChassis(t *testing.T) {
	l := newLab(t)
	farm := fmt.Sprintf(attack.Farm, "") + "chassis:\n"
	var asked []*atomic.Int64
	all := attack.Chassis()
	for i, h := range all {
		requests := new(atomic.Int64)
		asked = append(asked, requests)
		address := fmt.Sprintf("127.0.0.1:%d", 2443+i)
		farm += fmt.Sprintf("  - {name: c%d, address: %q, passwordFile: pass, via: rest, pool: a, interval: 1h, ipTemplate: \"10.77.%d.{{.Cartridge}}\"}\n", i, address, 100+i)
		var manager *ilosim.HTTPSServer
		l.Net.In(t, func() (err error) {
			manager, err = ilosim.ServeHTTPS(address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				h.Answer(w, r)
			}))
			return err
		})
		t.Cleanup(func() { _ = manager.Close() }) // all its connections
	}
	s := l.NewServer(t, farm, 1<<20)
	if err := os.WriteFile(filepath.Join(s.Dir, "pass"), []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	suffers(t, l, s, 10*time.Second, asked...)
	for i, h := range all {
		if n := asked[i].Load(); n > maxChassisRequests {
			t.Errorf("%s: %d requests, want at most %d for one inventory", h.Name, n, maxChassisRequests)
		}
	}
}

// suffers starts the server, waits for a request to each attacker, boots m2 meanwhile, and
// checks the memory.
func suffers(t *testing.T, l *attack.Lab, s *attack.Server, short time.Duration, asked ...*atomic.Int64) {
	t.Helper()
	s.Start()
	for _, requests := range asked {
		fixture.Eventually(t, "a request of the server", func() bool { return !s.Running() || requests.Load() > 0 })
	}
	end := time.Now().Add(length(short, time.Minute))
	boots(t, m2(l))
	for s.Running() && time.Now().Before(end) {
		time.Sleep(100 * time.Millisecond)
	}
	s.WantSmall()
	for _, requests := range asked {
		t.Logf("%d requests", requests.Load())
	}
}
