package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// netnsDir is where iproute2 keeps named namespaces; "ip netns exec NAME" and
// "ip -n NAME" find ours there too.
const netnsDir = "/run/netns"

// namespace is a named network namespace with one OS thread living in it.
//
// All processes of a rack are started from that thread. Only the network
// namespace differs from the host's: "ip netns exec" would also remount /sys,
// and cgroups with it, which kubelets and container runtimes do not survive.
type namespace struct {
	name string
	work chan func()
	done chan struct{}
}

// newNamespace makes the namespace and starts its thread.
func newNamespace(name string) (*namespace, error) {
	if err := run("ip", "netns", "add", name); err != nil {
		return nil, err
	}
	n := &namespace{name: name, work: make(chan func()), done: make(chan struct{})}
	ready := make(chan error)
	go n.live(ready)
	if err := <-ready; err != nil {
		return nil, errors.Join(err, removeNamespace(name))
	}
	return n, nil
}

// live is the thread. It never unlocks, so that the runtime ends the thread
// with the goroutine instead of giving it, and its namespace, to other work.
func (n *namespace) live(ready chan<- error) {
	defer close(n.done)
	runtime.LockOSThread()
	err := enter(n.name)
	ready <- err
	if err != nil {
		return
	}
	for f := range n.work {
		f()
	}
}

// do runs f on the namespace's thread. f must not block for long.
func (n *namespace) do(f func() error) error {
	result := make(chan error, 1)
	select {
	case n.work <- func() { result <- f() }:
		return <-result
	case <-n.done:
		return fmt.Errorf("namespace %q is closed", n.name)
	}
}

// start starts cmd inside the namespace, in a process group of its own (a
// Ctrl-C on the terminal is for the lab alone, which then ends them in order),
// and bound to the life of the namespace's thread.
func (n *namespace) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return n.do(cmd.Start)
}

// dial connects from inside the namespace. addr must be an address, not a
// name: resolving would move to other threads. It uses a thread of its own,
// since it may take long.
func (n *namespace) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	c := make(chan result, 1)
	go func() {
		runtime.LockOSThread() // and never unlock: see live
		if err := enter(n.name); err != nil {
			c <- result{nil, err}
			return
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		c <- result{conn, err}
	}()
	r := <-c
	return r.conn, r.err
}

// close ends the thread, and with it every process that it started; then it
// ends whatever else is in the namespace, and removes it.
func (n *namespace) close() error {
	close(n.work)
	<-n.done
	return removeNamespace(n.name)
}

// enter moves the calling thread into the named namespace.
func enter(name string) error {
	f, err := os.Open(filepath.Join(netnsDir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter namespace %q: %w", name, err)
	}
	return nil
}

// removeNamespace kills what runs in the named namespace and removes it. A
// namespace that is not there is no error.
func removeNamespace(name string) error {
	if _, err := os.Stat(filepath.Join(netnsDir, name)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for range 50 {
		pids, err := members(name)
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			break
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // gone in the meantime is what we want
		}
		time.Sleep(100 * time.Millisecond)
	}
	return run("ip", "netns", "del", name)
}

// members lists the processes in the named namespace, other than this one.
func members(name string) ([]int, error) {
	var want unix.Stat_t
	switch err := unix.Stat(filepath.Join(netnsDir, name), &want); {
	case err != nil:
		return nil, fmt.Errorf("namespace %q: %w", name, err)
	case want.Ino == 0:
		return nil, fmt.Errorf("namespace %q has no inode", name)
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		var got unix.Stat_t
		if unix.Stat(filepath.Join("/proc", e.Name(), "ns/net"), &got) == nil && got.Ino == want.Ino && got.Dev == want.Dev {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// run runs a short command and puts what it printed into its error.
func run(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
