package e2e_test

import (
	"cmp"
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
	"drover/pools/boots"
)

// TestBonded boots machines with two cards each, which become a bond with a VLAN, join over it
// and run a pod: n2, of Debian 13, by network:. With DROVER_E2E_ALL=1 there are also n1 by a script of the kind that LTSP
// has, n3 by a file of netplan and n4 by files of systemd-networkd. Scripts on the nodes check the bond and other settings
// before the nodes count as online. Then the server ends, and the nodes run on. DROVER_E2E_NETWORK_SH is a script for n1 in
// place of testdata's.
func TestBonded(t *testing.T) {
	b := build(t)
	if err := b.AddDebian13(t.Context()); err != nil {
		t.Fatal(err)
	}
	hook := cmp.Or(os.Getenv("DROVER_E2E_NETWORK_SH"), "testdata/network.sh")
	t.Logf("n1 has the script %s", hook)
	s := open(t, b, site.Config{
		Name: "drover-e2e-bonded", Farm: "testdata/bonded.yaml", Files: map[string]string{"network.sh": hook},
	})
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	steps := map[string]boots.Step{"2": boots.StepReady}
	if whole() {
		steps["1"], steps["3"], steps["4"] = boots.StepReady, boots.StepOnline, boots.StepOnline
	}
	mac := func(n string) string { return "52:54:00:77:01:0" + n }
	const model = "virtio-net-pci,speed=10000,duplex=full" // LACP uses no card whose speed is unknown
	for n := range steps {
		powerOn(t, s, lab.Machine{Name: "n" + n, NICs: []lab.NIC{{MAC: mac(n), Model: model, Boot: true}, {MAC: "52:54:00:77:01:1" + n, Model: model}}})
	}
	for n, step := range steps {
		fixture.Until(ctx, t, "n"+n+" is "+string(step), func() (bool, error) {
			return reached(bootOf(ctx, t, s, mac(n)), step), nil
		})
		logBoot(ctx, t, s, mac(n))
		if step == boots.StepReady {
			wantPod(ctx, t, s, mac(n))
		}
	}
	known := filepath.Join(s.Dir, "known_hosts")
	line, err := s.Run(ctx, b.Drover, "ssh", "ca", "--state", s.Drover.State, "--hosts", "*.lab.example,10.28.*")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(known, line, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Drover.Stop(); err != nil {
		t.Fatal(err)
	}
	for n := range steps {
		wantCertified(ctx, t, s, known, "n"+n+".lab.example:22", "10.28.0.2"+n+":22")
	}
}

// wantPod fails the test unless the node of a machine runs a pod.
func wantPod(ctx context.Context, t *testing.T, s *site.Site, mac string) {
	t.Helper()
	plan, err := s.Expect(mac)
	if err != nil {
		t.Fatal(err)
	}
	fixture.Until(ctx, t, plan.Node+" runs a pod", func() (bool, error) {
		_, err := s.Look(ctx, plan)
		return err == nil, err
	})
}

// wantCertified fails the test unless a node's sshd has a certificate that a client accepts
// for the name and the address of the node.
func wantCertified(ctx context.Context, t *testing.T, s *site.Site, known, name, address string) {
	t.Helper()
	check, err := knownhosts.New(known)
	if err != nil {
		t.Fatal(err)
	}
	for _, as := range []string{name, address} {
		accepted := false
		fixture.Until(ctx, t, as+" has a certificate", func() (bool, error) {
			conn, err := s.Dial(ctx, "tcp", address)
			if err != nil {
				return false, err
			}
			defer conn.Close()
			_, _, _, err = ssh.NewClientConn(conn, as, &ssh.ClientConfig{
				User: "root", HostKeyAlgorithms: []string{ssh.CertAlgoED25519v01},
				HostKeyCallback: func(host string, _ net.Addr, key ssh.PublicKey) error {
					err := check(host, conn.RemoteAddr(), key)
					accepted = err == nil
					return err
				},
			})
			return accepted, err // without a key of a user the handshake ends behind the host's
		})
	}
}
