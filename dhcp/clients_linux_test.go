package dhcp_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"drover/pools"
)

// TestRealClients lets DHCP clients that nobody here wrote take, renew, prove
// and lose leases. Their scripts only write down what they were told.
func TestRealClients(t *testing.T) {
	r := newRack(t, "udhcpc", "dhclient")
	s, l := newServer()
	s.Workers = 1 // else a client's REQUEST can be told of before the OFFER that it answers
	r.serve(s)
	for _, tt := range []struct {
		name string
		mac  pools.MAC
		run  func(t *testing.T, r *rack, m pools.MAC, want string)
		want string // address
	}{
		{"udhcpc takes a fixed address", web1, udhcpcTakes, "10.28.36.1"},
		{"udhcpc takes it on the second NIC", web1b, udhcpcTakes, "10.28.36.1"},
		{"udhcpc leases an address", stray, udhcpcTakes, "10.28.72.10"},
		{"udhcpc renews and releases", stray, udhcpcRenews, "10.28.72.10"},
		{"udhcpc asks as a ROM", web1, udhcpcBoots, "10.28.36.1"},
		{"udhcpc gets nothing", foreign, udhcpcGetsNothing, ""},
		{"dhclient takes a fixed address", web1, dhclientTakes, "10.28.36.1"},
		{"dhclient reboots with its address", web1, dhclientReboots, "10.28.36.1"},
		{"dhclient reboots with a wrong address", web1, dhclientIsRefused, "10.28.36.1"},
		{"dhclient leases an address", stray, dhclientTakes, "10.28.72.10"},
		{"dhclient gets nothing", foreign, dhclientGetsNothing, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r.t = t
			r.plug(tt.mac)
			tt.run(t, r, tt.mac, tt.want)
		})
	}
	if len(l.offered) != 1 {
		t.Errorf("got leases for %v, want one for %s", l.offered, stray)
	}
}

// program is a client in the clients' namespace.
type program struct {
	*exec.Cmd
	out  bytes.Buffer
	told string // the file that its script writes
}

// start runs a client. Its script appends all it is told to a file: $1 or
// $reason, then the environment.
func (r *rack) start(name string, args func(script, dir string) []string) *program {
	r.t.Helper()
	dir := r.t.TempDir()
	p := &program{told: filepath.Join(dir, "told")}
	script := filepath.Join(dir, "script")
	text := fmt.Sprintf("#!/bin/sh\n{ echo event=\"$1$reason\"; env; echo end; } >> %s\n", p.told)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	p.Cmd = exec.CommandContext(ctx, "nsenter", append([]string{"--net=/run/netns/" + r.cli, name}, args(script, dir)...)...)
	p.Stdout, p.Stderr = &p.out, &p.out
	if err := p.Start(); err != nil {
		cancel()
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		cancel()
		if out := p.stop(); r.t.Failed() {
			r.t.Logf("%s said:\n%s", name, out)
		}
	})
	return p
}

// stop ends the client, if it has not ended, and returns what it printed.
func (p *program) stop() string {
	if p.ProcessState == nil {
		p.Process.Kill()
		p.Wait()
	}
	return p.out.String()
}

// wait waits for the event and returns what the script was told with it.
func (p *program) wait(t *testing.T, event string) map[string]string {
	t.Helper()
	for range 2000 {
		b, _ := os.ReadFile(p.told)
		if _, rest, ok := strings.Cut(string(b), "event="+event+"\n"); ok {
			if env, _, ok := strings.Cut(rest, "\nend\n"); ok {
				return variables(env)
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the client's script was not told %q", event)
	return nil
}

func variables(env string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(env) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
		m[k] = strings.Trim(v, "'")
	}
	return m
}

func wantAll(t *testing.T, got map[string]string, want map[string]string) {
	t.Helper()
	for k, v := range want {
		if got[k] != v {
			t.Errorf("client has %s=%q, want %q", k, got[k], v)
		}
	}
}

func udhcpc(extra ...string) func(script, dir string) []string {
	return func(script, dir string) []string {
		return append([]string{"-i", "cli", "-f", "-n", "-t", "4", "-T", "3", "-s", script}, extra...)
	}
}

func udhcpcTakes(t *testing.T, r *rack, m pools.MAC, want string) {
	p := r.start("udhcpc", udhcpc("-q"))
	r.expect(m, "DISCOVER OFFER", "REQUEST ACK")
	wantAll(t, p.wait(t, "bound"), map[string]string{
		"ip": want, "subnet": "255.255.0.0", "router": "10.28.0.1", "dns": "10.28.0.1 10.28.0.9",
		"domain": "example.org", "serverid": "10.28.0.2", "siaddr": "10.28.0.2", "hostname": hostname(m),
		"boot_file": "",
	})
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
}

func hostname(m pools.MAC) string { return farm{}.Resolve(pools.Query{MAC: m}).Node }

func udhcpcRenews(t *testing.T, r *rack, m pools.MAC, want string) {
	p := r.start("udhcpc", udhcpc("-R", "-r", want))
	r.expect(m, "DISCOVER OFFER", "REQUEST ACK")
	p.wait(t, "bound")
	r.ip("-n", r.cli, "addr", "add", want+"/16", "dev", "cli")

	if err := p.Process.Signal(unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	r.expect(m, "REQUEST ACK")
	wantAll(t, p.wait(t, "renew"), map[string]string{"ip": want})

	if err := p.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r.expect(m, "RELEASE ")
}

func udhcpcBoots(t *testing.T, r *rack, m pools.MAC, want string) {
	p := r.start("udhcpc", udhcpc("-q", "-V", "PXEClient:Arch:00007:UNDI:003000", "-x", "93:0007", "-B"))
	x := r.expect(m, "DISCOVER OFFER", "REQUEST ACK")
	wantAll(t, p.wait(t, "bound"), map[string]string{
		"ip": want, "siaddr": "10.28.0.2", "boot_file": "snponly.efi", "tftp": "10.28.0.2", "bootfile": "snponly.efi",
	})
	if !x.Netboot || x.Firmware != pools.UEFIx64 || x.IPXE {
		t.Errorf("got exchange %+v, want it from firmware %q", x, pools.UEFIx64)
	}
}

func udhcpcGetsNothing(t *testing.T, r *rack, m pools.MAC, _ string) {
	p := r.start("udhcpc", func(script, _ string) []string {
		return []string{"-i", "cli", "-f", "-n", "-t", "2", "-T", "1", "-s", script}
	})
	if err := p.Wait(); err == nil {
		t.Error("the client got a lease")
	}
	r.expect(m, "DISCOVER ", "DISCOVER ")
}

const dhclientConf = `timeout 20; initial-interval 1; backoff-cutoff 2; reboot 10; retry 1;
request subnet-mask, routers, domain-name, domain-name-servers, host-name;
`

func dhclient(t *testing.T, lease string) func(script, dir string) []string {
	return func(script, dir string) []string {
		conf, leases := filepath.Join(dir, "conf"), filepath.Join(dir, "leases")
		for path, content := range map[string]string{conf: dhclientConf, leases: lease} {
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return []string{"-4", "-d", "-v", "-1", "-sf", script, "-cf", conf, "-lf", leases, "-pf", filepath.Join(dir, "pid"), "cli"}
	}
}

// oldLease is what dhclient keeps of a lease that it still believes in.
func oldLease(address string) string {
	return `lease {
  interface "cli";
  fixed-address ` + address + `;
  option subnet-mask 255.255.0.0;
  option dhcp-server-identifier 10.28.0.2;
  option dhcp-lease-time 86400;
  renew never;
  rebind never;
  expire never;
}
`
}

func dhclientTakes(t *testing.T, r *rack, m pools.MAC, want string) {
	p := r.start("dhclient", dhclient(t, ""))
	r.expect(m, "DISCOVER OFFER", "REQUEST ACK")
	wantAll(t, p.wait(t, "BOUND"), map[string]string{
		"new_ip_address": want, "new_subnet_mask": "255.255.0.0", "new_routers": "10.28.0.1",
		"new_domain_name_servers": "10.28.0.1 10.28.0.9", "new_host_name": hostname(m),
		"new_dhcp_server_identifier": "10.28.0.2",
	})
}

func dhclientReboots(t *testing.T, r *rack, m pools.MAC, want string) {
	p := r.start("dhclient", dhclient(t, oldLease(want)))
	r.expect(m, "REQUEST ACK")
	wantAll(t, p.wait(t, "REBOOT"), map[string]string{"new_ip_address": want})
}

func dhclientIsRefused(t *testing.T, r *rack, m pools.MAC, want string) {
	p := r.start("dhclient", dhclient(t, oldLease("10.28.99.99")))
	r.expect(m, "REQUEST NAK", "DISCOVER OFFER", "REQUEST ACK")
	wantAll(t, p.wait(t, "BOUND"), map[string]string{"new_ip_address": want})
	if got := p.stop(); !strings.Contains(got, "DHCPNAK") {
		t.Errorf("dhclient does not speak of a NAK:\n%s", got)
	}
}

func dhclientGetsNothing(t *testing.T, r *rack, m pools.MAC, _ string) {
	p := r.start("dhclient", dhclient(t, oldLease("10.28.36.1")))
	r.expect(m, "REQUEST ", "DISCOVER ")
	p.stop()
	if b, _ := os.ReadFile(p.told); strings.Contains(string(b), "event=BOUND") || strings.Contains(string(b), "event=REBOOT") {
		t.Error("the client got a lease")
	}
	r.drain(m)
}

// drain takes what the client said before it was stopped.
func (r *rack) drain(m pools.MAC) {
	for {
		select {
		case x := <-r.exchanges:
			if x.MAC != m || x.Reply != "" {
				r.t.Errorf("got %s %s from %s", x.Type, x.Reply, x.MAC)
			}
		default:
			return
		}
	}
}
