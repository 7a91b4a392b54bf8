package web_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/web"
)

// socketed starts a server with a socket, and returns a client of it.
func socketed(t *testing.T, dir string, role pools.Role, group string) (s *harness, path string, client *http.Client, stop func()) {
	t.Helper()
	path = filepath.Join(dir, "s")
	s = newHarness(t, func(h *harness) {
		h.Addr = "127.0.0.1:0"
		h.Socket = &web.Socket{Path: path, Group: group, Role: role}
	})
	_, stop = serveSocket(t, s)
	return s, path, socketClient(path), stop
}

func socketClient(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
}

// serveSocket serves the address and the socket of a server.
func serveSocket(t *testing.T, s *harness) (addr string, stop func()) {
	t.Helper()
	l, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	socket, err := s.ListenSocket()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l, socket) }()
	ended := false
	stop = func() {
		if cancel(); !ended {
			ended = true
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(stop)
	return l.Addr().String(), stop
}

// TestSocket: who connects by the socket has its role, and a token counts for more.
func TestSocket(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range pools.Roles() {
		s, path, client, _ := socketed(t, t.TempDir(), role, me.Gid)
		fixture.WantMode(t, path, fs.ModeSocket|0o660)
		for _, tt := range []struct {
			method, path, body, token string
			needs                     pools.Role
			code                      int // if it is refused
		}{
			{"GET", "/metrics", "", "", pools.RoleMetrics, 403},
			{"GET", "/api/v1/nodes", "", "", pools.RoleViewer, 403},
			{"PUT", "/api/v1/nodes/m1/next-boot", `{"nextBoot": "local"}`, "", pools.RoleOperator, 403},
			{"GET", "/api/v1/config", "", "", pools.RoleAdmin, 403},
			{"GET", "/api/v1/config", "", secret, pools.RoleMetrics, 0},
			{"GET", "/api/v1/nodes", "", "wrong", "", 401},
		} {
			req, err := http.NewRequestWithContext(t.Context(), tt.method, "http://localhost"+tt.path, strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			if tt.token != "" {
				req.Header.Set("Authorization", "Bearer "+tt.token)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			want := tt.code
			if tt.token != "wrong" && role.Includes(tt.needs) {
				want = 200
			}
			if tt.path == "/metrics" && want == 200 {
				want = 404 // this server has none
			}
			if resp.StatusCode != want {
				t.Errorf("%s: %s %s with token %q: got %d, want %d", role, tt.method, tt.path, tt.token, resp.StatusCode, want)
			}
		}
		if role == pools.RoleAdmin {
			if got := s.Audit.(*machines).audit[0].Actor; got != "socket "+me.Username+" from this host" {
				t.Errorf("the audit has %q", got)
			}
		}
	}
}

// TestSocketPlace: the socket of a server that has ended is replaced, and nothing else is. It
// goes with its server.
func TestSocketPlace(t *testing.T) {
	me := strconv.Itoa(os.Getgid())
	s, path, client, stop := socketed(t, t.TempDir(), pools.RoleViewer, me)
	get := func() error {
		resp, err := client.Get("http://localhost/api/v1/nodes")
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	if _, err := s.ListenSocket(); err == nil || !strings.Contains(err.Error(), "another process listens there") {
		t.Errorf("a second server: %v", err)
	}
	if err := get(); err != nil {
		t.Error(err)
	}
	stop()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the end: %v", err)
	}

	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	_, stop = serveSocket(t, s)
	if err := get(); err != nil {
		t.Error(err)
	}
	stop()

	for name, put := range map[string]func() error{
		"a file":    func() error { return os.WriteFile(path, []byte("mine"), 0o600) },
		"a symlink": func() error { return os.Symlink("/etc/passwd", path) },
		"a FIFO":    func() error { return syscall.Mkfifo(path, 0o600) },
	} {
		if err := put(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ListenSocket(); err == nil || !strings.Contains(err.Error(), "not a socket") {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Remove(path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.Socket.Group = "no-such-group"
	if _, err := s.ListenSocket(); err == nil || !strings.Contains(err.Error(), `there is no group "no-such-group" on this host (groupadd --system`) {
		t.Errorf("an unknown group: %v", err)
	}
	if rest, _ := os.ReadDir(filepath.Dir(path)); len(rest) > 0 {
		t.Errorf("left are %v", rest)
	}
}

// TestSocketOfOthers: a user who is not in the group cannot connect.
func TestSocketOfOthers(t *testing.T) {
	fixture.Root(t)
	dir, err := os.MkdirTemp("", "drover-socket-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	_, path, _, _ := socketed(t, dir, pools.RoleViewer, "1234")
	for _, tt := range []struct {
		gid  uintptr
		want error
	}{{1234, nil}, {4321, syscall.EACCES}} {
		if err := connectAs(path, 65534, tt.gid); !errors.Is(err, tt.want) {
			t.Errorf("group %d: got %v, want %v", tt.gid, err, tt.want)
		}
	}
}

// connectAs connects as another user, on a thread that ends with it.
func connectAs(path string, uid, gid uintptr) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		result <- func() error {
			fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer func() { _ = syscall.Close(fd) }()
			for _, call := range [][4]uintptr{{syscall.SYS_SETGROUPS, 0, 0, 0}, {syscall.SYS_SETRESGID, gid, gid, gid}, {syscall.SYS_SETRESUID, uid, uid, uid}} {
				if _, _, e := syscall.RawSyscall(call[0], call[1], call[2], call[3]); e != 0 {
					return e
				}
			}
			return syscall.Connect(fd, &syscall.SockaddrUnix{Name: path})
		}()
	}()
	return <-result
}
