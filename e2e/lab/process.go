package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Process is a program that runs in a rack.
type Process struct {
	Name string // "drover", "tcpdump"
	Log  string // file that its output goes to; empty when the caller of Start took the output
	Pid  int

	cmd  *exec.Cmd
	done chan struct{}
	err  error // valid once done is closed
	stop sync.Mutex
}

// Start starts cmd on the rack's wire. Unless cmd has its own Stdout and
// Stderr, its output is appended to NAME.log in the rack's directory.
func (r *Rack) Start(name string, cmd *exec.Cmd) (*Process, error) {
	p := &Process{Name: name, cmd: cmd, done: make(chan struct{})}
	if cmd.Stdout == nil && cmd.Stderr == nil {
		p.Log = filepath.Join(r.Dir, name+".log")
		f, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		cmd.Stdout, cmd.Stderr = f, f
	}
	if err := r.ns.start(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.Pid = cmd.Process.Pid
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	r.keep(p)
	return p, nil
}

// Command makes a command that enters the rack's network, for code
// that starts commands on its own. [Rack.Start] and [Rack.Run] take plain ones.
func (r *Rack) Command(name string, args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"--net=" + filepath.Join(netnsDir, r.Name), "--", name}, args...)...)
}

// Run runs a command on the rack's wire to its end and returns what it printed
// on standard output; what it printed on standard error is in the error.
func (r *Rack) Run(ctx context.Context, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var stdout, stderr tail
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := r.ns.start(cmd); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	if err := cmd.Wait(); err != nil {
		return stdout.bytes, fmt.Errorf("%s: %w: %s", filepath.Base(name), err, stderr.bytes)
	}
	return stdout.bytes, nil
}

// tail keeps what a command prints, up to a bound.
type tail struct{ bytes []byte }

func (t *tail) Write(b []byte) (int, error) {
	const bound = 16 << 20
	if len(t.bytes)+len(b) > bound {
		return 0, errors.New("prints more than 16 MB")
	}
	t.bytes = append(t.bytes, b...)
	return len(b), nil
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running reports whether the process still runs.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Signal sends a signal to the process.
func (p *Process) Signal(s syscall.Signal) error {
	if !p.Running() {
		return os.ErrProcessDone
	}
	return p.cmd.Process.Signal(s)
}

// Stop asks the process to end (SIGTERM), waits up to grace, and then kills it
// with all its children. It returns how the process ended, and an error when
// it had to be killed although it was given time.
func (p *Process) Stop(grace time.Duration) error {
	p.stop.Lock()
	defer p.stop.Unlock()
	if grace > 0 && p.Running() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // ended in the meantime is what we want
		select {
		case <-p.done:
			return p.err
		case <-time.After(grace):
		}
	}
	killed := p.Running()
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
	<-p.done
	if killed && grace > 0 {
		return fmt.Errorf("%s did not end within %s of SIGTERM", p.Name, grace)
	}
	return nil
}
