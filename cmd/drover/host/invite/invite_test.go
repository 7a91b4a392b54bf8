package invite_test

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"crypto/tls"

	"drover/cmd/drover/host/invite"
	"drover/e2e/fixture"
)

// start serves an invitation for legacy1, whose bundle writes a file, and returns it with its
// log and its end.
func start(t *testing.T, file string, change func(*invite.Invitation)) (i *invite.Invitation, log *fixture.Log, ended chan error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	i, err = invite.New("legacy1", l.Addr().String(), l, func(_ context.Context, w io.Writer) error {
		if file == "" {
			return errors.New("the cluster is away")
		}
		text := "#!/bin/sh\necho installed $1 > " + file + "\n"
		a := tar.NewWriter(w)
		if err := a.WriteHeader(&tar.Header{Name: "legacy1/install.sh", Mode: 0o755, Size: int64(len(text))}); err != nil {
			return err
		}
		_, _ = io.WriteString(a, text)
		return a.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	log = &fixture.Log{}
	i.Log = slog.New(slog.NewTextHandler(log, nil))
	if change != nil {
		change(i)
	}
	ended = make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() { ended <- i.Serve(ctx) }()
	return i, log, ended
}

// sh runs a command line, as on the host.
func sh(t *testing.T, line string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func need(t *testing.T) {
	t.Helper()
	fixture.Root(t)
	if _, err := exec.LookPath("curl"); err != nil {
		fixture.Missing(t, err)
	}
}

// token returns that of a command.
func token(t *testing.T, command string) string {
	t.Helper()
	_, rest, _ := strings.Cut(command, "Bearer ")
	text, _, ok := strings.Cut(rest, `"`)
	if !ok || len(text) < 26 {
		t.Fatalf("no token in %s", command)
	}
	return text
}

// TestOnce installs a host with the command, and tries the command again.
func TestOnce(t *testing.T) {
	need(t)
	file := filepath.Join(t.TempDir(), "installed")
	i, log, ended := start(t, file, nil)
	command := i.Command()
	secret := token(t, command)
	// A stranger before: no other path, method, pin or token opens it, and none uses it up.
	_, where, _ := strings.Cut(command, "https://")
	url, _, _ := strings.Cut("https://"+where, " ")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, Timeout: time.Minute}
	for _, try := range []struct{ method, path, token string }{{"GET", "", ""}, {"GET", "", "x"}, {"GET", "/bundle", secret}, {"GET", "/../legacy1", secret}, {"POST", "", secret}, {"GET", "?token=" + secret[:5], ""}} {
		req, err := http.NewRequestWithContext(t.Context(), try.method, url+try.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+try.token)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s %q: got %s", try.method, try.path, resp.Status)
		}
	}
	client.CloseIdleConnections()
	if out, err := sh(t, strings.Replace(command, "sha256//", "sha256//AAAA", 1)); !strings.Contains(out, "curl: (90)") {
		t.Errorf("another key than that of the link: %v: %s", err, out)
	}
	if out, err := sh(t, command+" -s plain"); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, log.String())
	}
	if got := fixture.ReadFile(t, file); got != "installed plain\n" {
		t.Errorf("got %q", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if out, _ := sh(t, command); !strings.Contains(out, "curl: (7)") {
		t.Errorf("the command a second time: %s", out)
	}
	fixture.WantNoText(t, "log", log.String(), secret)
	if strings.Contains(url, secret) || i.Command() == command {
		t.Errorf("the URL %s has the token, or it is still there", url)
	}
}

// TestUsedUp fetches the script twice: the second time it is refused.
func TestUsedUp(t *testing.T) {
	need(t)
	i, _, _ := start(t, filepath.Join(t.TempDir(), "installed"), nil)
	fetch := strings.TrimSuffix(i.Command(), " | sh")
	script, err := sh(t, fetch)
	if err != nil || !strings.HasPrefix(script, "#!/bin/sh") || !strings.HasSuffix(script, "main \"$@\"\n") {
		t.Fatalf("%v: %s", err, script)
	}
	fixture.WantNoText(t, "script", script, token(t, fetch))
	if out, err := sh(t, fetch); err == nil || !strings.Contains(out, "403") {
		t.Errorf("a second time: %v: %s", err, out)
	}
}

// TestExpired has a link that nobody uses, and one whose bundle cannot be made.
func TestExpired(t *testing.T) {
	_, _, ended := start(t, "x", func(i *invite.Invitation) { i.Lifetime = time.Millisecond })
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "nobody has fetched the bundle") {
		t.Errorf("got %v", err)
	}
	need(t)
	i, _, ended := start(t, "", nil)
	if out, err := sh(t, i.Command()); err == nil {
		t.Errorf("without a bundle: %s", out)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "the cluster is away") {
		t.Errorf("got %v", err)
	}
}
