package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"drover/e2e/fixture"
)

// TestSecondSignal checks that the first SIGTERM waits for requests in progress, and
// that a second one ends the server at once.
func TestSecondSignal(t *testing.T) {
	dir := t.TempDir()
	port := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().String()
	}
	http := port()
	file := filepath.Join(dir, "drover.yaml")
	text := fmt.Sprintf(`server: {dhcp: "off", address: 127.0.0.2, http: "%s", tftp: "%s", api: "%s"}
subnets: [{cidr: 127.0.0.0/8}]
pools: [{name: web, image: debian-12}]
`, http, port(), port())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var log fixture.Log
	server := exec.Command(exe)
	server.Args = []string{"drover", "serve", "-c", file, "--state", filepath.Join(dir, "state")}
	server.Stderr = &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Process.Kill() }()
	awaitLog := func(text string) {
		t.Helper()
		fixture.Eventually(t, text+" in the log", func() bool { return strings.Contains(log.String(), text) })
	}
	awaitLog("serving")
	conn, err := net.Dial("tcp", http) // a request whose body is still to come
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprint(conn, "POST /node/52-54-00-00-00-01/events HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	awaitLog("stopping")
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err = server.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("got %v, want an end by the second SIGTERM; the log is\n%s", err, log.String())
	}
}
