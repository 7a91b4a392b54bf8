package controlplane

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

// processes starts long-running processes and ends them.
//
// The kernel kills them when the thread that started them ends
// (PR_SET_PDEATHSIG), so that a test binary that is killed leaves nothing
// behind. Go ends threads as it likes, hence a goroutine of their own, locked to
// its thread for as long as the processes are to live.
type processes struct {
	exec   func(name string, args ...string) *exec.Cmd
	logDir string
	failed chan error // the first process that ended before stop

	requests chan func()
	quit     chan struct{}
	once     sync.Once
	mu       sync.Mutex
	stopping bool
	running  []*process
}

type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
}

func newProcesses(exec func(string, ...string) *exec.Cmd, logDir string) *processes {
	k := &processes{exec: exec, logDir: logDir, failed: make(chan error, 1), requests: make(chan func()), quit: make(chan struct{})}
	go k.serve()
	return k
}

func (k *processes) serve() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		select {
		case f := <-k.requests:
			f()
		case <-k.quit:
			return
		}
	}
}

// start starts a program whose output goes to NAME.log.
func (k *processes) start(name, program string, args ...string) error {
	path := filepath.Join(k.logDir, name+".log")
	log, err := os.Create(path)
	if err != nil {
		return err
	}
	cmd := k.exec(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	group(cmd)
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started := make(chan error)
	k.requests <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		_ = log.Close()
		return fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, done: make(chan struct{})}
	k.mu.Lock()
	k.running = append(k.running, p)
	k.mu.Unlock()
	go func() {
		err := cmd.Wait()
		_ = log.Close()
		close(p.done)
		k.ended(p, path, err)
	}()
	return nil
}

func (k *processes) ended(p *process, path string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopping || !slices.Contains(k.running, p) {
		return
	}
	text, _ := os.ReadFile(path)
	select {
	case k.failed <- fmt.Errorf("%s ended by itself (%w), see %s: %s", p.name, err, path, lastLines(text, 10)):
	default:
	}
}

// end ends the processes of a name, as stop does. Their end is no failure.
func (k *processes) end(name string) {
	k.mu.Lock()
	var ended []*process
	k.running = slices.DeleteFunc(k.running, func(p *process) bool {
		if p.name == name {
			ended = append(ended, p)
		}
		return p.name == name
	})
	k.mu.Unlock()
	for _, p := range ended {
		p.stop(10 * time.Second)
	}
}

// stop ends the processes, last started first: with SIGTERM, and after
// five seconds with SIGKILL.
func (k *processes) stop() {
	k.once.Do(func() {
		k.mu.Lock()
		k.stopping = true
		running := slices.Clone(k.running)
		k.mu.Unlock()
		for _, p := range slices.Backward(running) {
			p.stop(5 * time.Second)
		}
		close(k.quit)
	})
}

func (p *process) stop(grace time.Duration) {
	// The group has the process's id; it is not reused before Wait returns.
	select {
	case <-p.done:
		return
	default:
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
		kill(p.cmd.Process)
		<-p.done
	}
}

// group puts a command into a process group of its own.
func group(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setpgid = true
}

// kill ends a process group at once.
func kill(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

func lastLines(b []byte, n int) []byte {
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-n):], []byte("\n"))
}
