package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"drover/e2e/bench/stats"
	"drover/tftp"
)

// server is a measured server.
type server struct {
	name, version string
	ours, peer    bool // neither: shown only
	forks         bool // the processor time of its children is not known
	on            [processors]*process
}

// process is a server running on one processor.
type process struct {
	addr   unix.SockaddrInet4
	cmd    *exec.Cmd
	output *bytes.Buffer
}

// command returns the command of a server, for the address to listen at and the directory to serve.
type command func(addr string, port int, dir string) []string

// startServers starts all servers on each processor.
func startServers(ctx context.Context, p *programs, dir string, w *wire, pin bool) (all []*server, err error) {
	// Pdeathsig takes effect at the end of the thread that starts a process, not of the process.
	runtime.LockOSThread()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ours := func(what string) command {
		return func(addr string, port int, dir string) []string {
			return []string{self, "-serve", what + dir, "-addr", net.JoinHostPort(addr, strconv.Itoa(port))}
		}
	}
	commands := []command{
		ours(""),
		func(addr string, port int, dir string) []string {
			return []string{p.Program("in.tftpd"), "-L", "-a", net.JoinHostPort(addr, strconv.Itoa(port)), "-u", "root", "-s", dir}
		},
		func(addr string, port int, dir string) []string {
			return []string{p.Program("atftpd"), "--daemon", "--no-fork", "--bind-address", addr, "--port", strconv.Itoa(port), "--maxthread", "200", "--user", "root.root", "--logfile", "-", "--verbose=3", dir}
		},
		func(addr string, _ int, dir string) []string { // it has no option for the port
			return []string{p.Program("dnsmasq"), "-k", "-C", os.DevNull, "-u", "root", "--port=0", "--enable-tftp", "--tftp-root=" + dir, "--tftp-max=200", "--bind-interfaces", "--listen-address=" + addr, "--pid-file"}
		},
		ours("pin:"),
	}
	all = []*server{
		{name: "drover", ours: true, version: "of this source"},
		{name: "tftpd-hpa", peer: true, forks: true, version: p.tftpd},
		{name: "atftpd", peer: true, version: p.atftpd},
		{name: "dnsmasq", peer: true, version: p.dnsmasq},
		{name: "pin/tftp", version: "v3.2.0, the library"},
	}
	if !pin {
		all = all[:len(all)-1]
	}
	for i, s := range all {
		for cpu := range s.on {
			port := 6900 + i
			if s.name == "dnsmasq" {
				port = 69
			}
			s.on[cpu] = &process{addr: unix.SockaddrInet4{Port: port, Addr: netip.MustParseAddr(serverIP[cpu]).As4()}}
			if err := s.on[cpu].start(ctx, p, w, cpu, commands[i](serverIP[cpu], port, dir)); err != nil {
				return all, fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	return all, nil
}

// start starts the process and waits until it listens.
func (s *process) start(ctx context.Context, p *programs, w *wire, cpu int, argv []string) error {
	s.output = new(bytes.Buffer)
	s.cmd = exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", w.srv, "taskset", "-c", strconv.Itoa(cpu)}, argv...)...)
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	s.cmd.Env = append(os.Environ(), p.Env(), "GOMAXPROCS="+strconv.Itoa(processors))
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(10 * time.Second); !listens(s.cmd.Process.Pid, s.addr); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("it does not listen: %s", s.output)
		}
	}
	return nil
}

func (s *server) stop() {
	for _, p := range s.on {
		if p == nil || p.cmd.Process == nil {
			continue
		}
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(3*time.Second, func() { _ = p.cmd.Process.Kill() })
		_ = p.cmd.Wait() // it was ended by a signal
		kill.Stop()
	}
}

// listens reports whether a socket in the namespace of a process has an address.
func listens(pid int, addr unix.SockaddrInet4) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/udp", pid))
	host := binary.NativeEndian.Uint32(addr.Addr[:])
	return err == nil && strings.Contains(string(text), fmt.Sprintf("%08X:%04X ", host, addr.Port))
}

// cpu returns the processor time of the server with its threads and ended children.
func (s *process) cpu() (time.Duration, error) {
	t, err := stats.CPUTime(s.cmd.Process.Pid)
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, s.output)
	}
	return t, nil
}

// serveDrover is the measured process: it serves with drover's package, or for "pin:DIR" with
// the library.
func serveDrover(ctx context.Context, dir, addr string) error {
	if pinned, ok := strings.CutPrefix(dir, "pin:"); ok {
		return servePin(ctx, pinned, addr)
	}
	s := &tftp.Server{Dir: dir, Addr: addr, MaxPerClient: 200, StopTimeout: time.Millisecond}
	if err := s.Listen(); err != nil {
		return err
	}
	return s.Serve(ctx)
}
