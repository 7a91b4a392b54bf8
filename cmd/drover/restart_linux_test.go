package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"drover/e2e/fixture"
	"drover/pools"
)

// restarted is a server that systemd restarts, in the place of which there is this test. It has a
// loader of 100 bytes, and a large one.
type restarted struct {
	*crowd
	notify *net.UnixConn
	http   *http.Client
}

func newRestarted(t *testing.T) *restarted {
	t.Helper()
	r := &restarted{crowd: newCrowd(t, "10.28.72.1-10.28.72.200")}
	config := filepath.Join(r.dir, "drover.yaml")
	text := strings.Replace(fixture.ReadFile(t, config), `http: "127.0.0.1:8080"`, `http: ":8080"`, 1)
	loaders := filepath.Join(r.state(), "loaders")
	err := errors.Join(os.WriteFile(config, []byte(text), 0o600), os.MkdirAll(loaders, 0o700),
		os.WriteFile(filepath.Join(loaders, "small"), bytes.Repeat([]byte("x"), 100), 0o600),
		os.WriteFile(filepath.Join(loaders, "large"), nil, 0o600), os.Truncate(filepath.Join(loaders, "large"), 256<<20))
	if err != nil {
		t.Fatal(err)
	}
	if r.notify, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(r.dir, "notify"), Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.notify.Close() })
	r.http = &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		return r.net.Dial(ctx, network, address)
	}}}
	return r
}

// run starts the server, with sockets of the one before.
func (r *restarted) run(inherited []*os.File) {
	r.t.Helper()
	log, err := os.OpenFile(filepath.Join(r.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	defer log.Close()
	script := fmt.Sprintf(`LISTEN_PID=$$ exec %s/drover serve -c %[1]s/drover.yaml --state %s`, r.dir, r.state())
	r.server = r.net.Command("sh", "-c", script)
	r.server.Env = append(os.Environ(), "NOTIFY_SOCKET="+filepath.Join(r.dir, "notify"))
	if len(inherited) > 0 {
		r.server.Env = append(r.server.Env, fmt.Sprintf("LISTEN_FDS=%d", len(inherited)))
	}
	r.server.ExtraFiles, r.server.Stderr = inherited, log
	if err := r.server.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		r.kill()
		if r.t.Failed() {
			r.t.Logf("the server's log:\n%s", fixture.ReadFile(r.t, log.Name()))
		}
	})
}

// get fetches a loader.
func (r *restarted) get(name string) error {
	resp, err := r.http.Get("http://10.28.0.2:8080/loaders/" + name)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if data, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK || len(data) != 100 {
		return fmt.Errorf("%s, %d bytes, %w", resp.Status, len(data), err)
	}
	return nil
}

// offered reports whether a machine gets an address.
func (r *restarted) offered(n byte) bool {
	m := pools.MAC{2, 0xee, 0, 0, 0, n}
	r.send(dhcpMessage(m, uint32(n), dhcpDiscover))
	for range 20 {
		if a, ok := r.receive(100 * time.Millisecond); ok && a.mac == m && a.kind == dhcpOffer {
			return true
		}
	}
	return false
}

// stored returns the sockets that the server gives to systemd until it is told to end.
func (r *restarted) stored() (files []*os.File) {
	r.t.Helper()
	b, oob := make([]byte, 1024), make([]byte, 1024)
	for {
		_ = r.notify.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		n, control, _, _, err := r.notify.ReadMsgUnix(b, oob)
		if err != nil {
			return files
		}
		messages, err := unix.ParseSocketControlMessage(oob[:control])
		if err != nil {
			r.t.Fatal(err)
		}
		for _, m := range messages {
			fds, err := unix.ParseUnixRights(&m)
			if err != nil || !strings.HasPrefix(string(b[:n]), "FDSTORE=1\nFDNAME=drover") {
				r.t.Fatalf("%v, %q", err, b[:n])
			}
			for _, fd := range fds {
				files = append(files, os.NewFile(uintptr(fd), "socket"))
			}
		}
	}
}

// connectUntilEnd connects again and again until the server has ended, and returns how many
// connections were refused.
func (r *restarted) connectUntilEnd() (refused int) {
	r.t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- r.server.Wait() }()
	for {
		select {
		case err := <-ended:
			if err != nil {
				r.t.Errorf("the server ends with %v", err)
			}
			return refused
		default:
			if c, err := r.net.Dial(r.t.Context(), "tcp", "10.28.0.2:8080"); err == nil {
				_ = c.Close()
			} else {
				refused++
			}
		}
	}
}

// TestRestart: while a transfer runs on, a server that was told to end serves machines; after
// that they wait for the next process, and no connection is refused.
func TestRestart(t *testing.T) {
	r := newRestarted(t)
	r.run(nil)
	fixture.Retry(t, "the server", func() error { return r.get("small") })
	fixture.Eventually(t, "an offer", func() bool { return r.offered(1) })
	transfer, err := r.net.Dial(t.Context(), "tcp", "10.28.0.2:8080")
	if err != nil {
		t.Fatal(err)
	}
	defer transfer.Close()
	if _, err := io.WriteString(transfer, "GET /loaders/large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(transfer, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := r.server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "the server to stop", func() bool { return strings.Contains(fixture.ReadFile(t, filepath.Join(r.dir, "log")), "stopping") })
	for i := range byte(10) {
		if err := r.get("small"); err != nil {
			t.Errorf("while it stops: %v", err)
		}
		if !r.offered(10 + i) {
			t.Error("while it stops: no offer")
		}
	}
	if n, err := io.Copy(io.Discard, transfer); err != nil || n < 255<<20 {
		t.Errorf("the transfer that ran: %d bytes, %v", n, err)
	}
	refused := r.connectUntilEnd()
	sockets := r.stored()
	if len(sockets) == 0 {
		t.Fatal("systemd got no sockets")
	}
	answered := make(chan error, 1)
	go func() { answered <- r.get("small") }() // nobody serves
	r.run(sockets)
	if err := <-answered; err != nil || refused > 0 {
		t.Errorf("between the processes: %v; %d connections refused", err, refused)
	}
	for _, f := range sockets {
		_ = f.Close()
	}
	fixture.Eventually(t, "an offer", func() bool { return r.offered(30) })
	r.server.Process.Kill() // a crash leaves no socket that nobody reads
	_ = r.server.Wait()
	if err := r.get("small"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after a crash: %v", err)
	}
}
