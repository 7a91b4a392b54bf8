package sshca_test

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"drover/e2e/fixture"
	"drover/pools/sshca"
)

var keys = sshca.Keys{Secret: []byte("the secret of the server, 32 bytes or more")}

// host returns the keys of a host, and its signer with the certificate.
func host(t *testing.T, k sshca.Keys, name string, principals ...string) (sshca.Host, ssh.Signer) {
	t.Helper()
	h, err := k.Host(name, principals)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey([]byte(h.Private))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(ssh.MarshalAuthorizedKey(signer.PublicKey())); got != h.Public {
		t.Errorf("got public key %q, want %q", h.Public, got)
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(h.Certificate))
	if err != nil {
		t.Fatal(err)
	}
	certified, err := ssh.NewCertSigner(public.(*ssh.Certificate), signer)
	if err != nil {
		t.Fatal(err)
	}
	return h, certified
}

// dial opens an SSH connection to a server with the key, as if it had the name, and returns
// the error of the client.
func dial(t *testing.T, known string, name string, key ssh.Signer) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(file, []byte(known), 0o600); err != nil {
		t.Fatal(err)
	}
	check, err := knownhosts.New(file)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return // the client reports it
		}
		defer conn.Close()
		c := &ssh.ServerConfig{NoClientAuth: true}
		c.AddHostKey(key)
		_, _, _, _ = ssh.NewServerConn(conn, c) // the client reports the error
	}()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	address := &net.TCPAddr{IP: net.IPv4(10, 28, 36, 174), Port: 22}
	_, _, _, err = ssh.NewClientConn(client, net.JoinHostPort(name, "22"), &ssh.ClientConfig{
		HostKeyAlgorithms: []string{ssh.CertAlgoED25519v01},
		HostKeyCallback:   func(host string, _ net.Addr, key ssh.PublicKey) error { return check(host, address, key) },
	})
	return err
}

// TestKnownHosts: a client with the line of the CA accepts each host under its own names, and
// not under another's; nor does it accept the certificates of another server.
func TestKnownHosts(t *testing.T) {
	line, err := keys.KnownHosts("*.example.org,m?,10.28.*")
	if err != nil {
		t.Fatal(err)
	}
	_, m1 := host(t, keys, "m1", "m1", "m1.example.org", "10.28.36.174")
	_, foreign := host(t, sshca.Keys{Secret: bytes.Repeat([]byte("x"), 32)}, "m1", "m1")
	for _, tt := range []struct {
		name string
		key  ssh.Signer
		want string // in the error
	}{
		{"m1", m1, ""}, {"m1.example.org", m1, ""}, {"10.28.36.174", m1, ""},
		{"m2", m1, "not in the set of valid principals"},
		{"other.net", m1, "no authorities for hostname"},
		{"m1", foreign, "no authorities for hostname"},
	} {
		err := dial(t, line, tt.name, tt.key)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestHost: a host has one key for ever, and no other has it.
func TestHost(t *testing.T) {
	one, _ := host(t, keys, "m1", "m1")
	again, _ := host(t, keys, "m1", "m1", "10.28.0.1")
	if again.Private == "" || again.Public != one.Public {
		t.Errorf("got %q, then %q", one.Public, again.Public)
	}
	m2, _ := host(t, keys, "m2", "m1")
	foreign, _ := host(t, sshca.Keys{Secret: bytes.Repeat([]byte("x"), 32)}, "m1", "m1")
	if m2.Public == one.Public || foreign.Public == one.Public {
		t.Error("two hosts have one key")
	}
	if _, err := (sshca.Keys{Secret: []byte("short")}).Host("m1", []string{"m1"}); err == nil {
		t.Error("a short secret: got no error")
	}
	for _, names := range [][]string{nil, {"m1", ""}} {
		if _, err := keys.Host("m1", names); err == nil {
			t.Errorf("names %q: got no error", names)
		}
	}
	for _, pattern := range []string{"", "a b", "*\n* ssh-rsa"} {
		if _, err := keys.KnownHosts(pattern); err == nil {
			t.Errorf("pattern %q: got no error", pattern)
		}
	}
}

// TestKeygenReads: OpenSSH reads the key and the certificate, and its CA is the one of
// known_hosts.
func TestKeygenReads(t *testing.T) {
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		fixture.Missing(t, err)
	}
	h, err := keys.Host("m1", []string{"m1", "10.28.36.174"})
	if err != nil {
		t.Fatal(err)
	}
	line, err := keys.KnownHosts("*")
	if err != nil {
		t.Fatal(err)
	}
	ca := strings.TrimPrefix(line, "@cert-authority * ")
	dir := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(keygen, args...).CombinedOutput()
		if err != nil {
			t.Fatal(errors.New(string(out)), err)
		}
		return string(out)
	}
	files := map[string]string{"key": h.Private, "cert.pub": h.Certificate, "ca.pub": ca}
	for name, text := range files {
		files[name] = filepath.Join(dir, name)
		if err := os.WriteFile(files[name], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := run("-y", "-f", files["key"]); !strings.HasPrefix(got, strings.TrimSpace(h.Public)) {
		t.Errorf("got %q, want %q", got, h.Public)
	}
	fingerprint := strings.Fields(run("-l", "-f", files["ca.pub"]))[1]
	fixture.WantText(t, "certificate", run("-L", "-f", files["cert.pub"]),
		"ssh-ed25519-cert-v01@openssh.com host certificate", fingerprint, `Key ID: "m1"`, "Valid: forever", "                m1\n", "10.28.36.174")
}
