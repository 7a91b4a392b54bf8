package lab

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

// guestPrefix marks the processes that are machines.
const guestPrefix = "guest-"

// Guest is a machine that is switched on.
type Guest struct {
	Machine Machine
	Started time.Time
	Console string   // file of the serial console
	Taps    []string // the rack's end of each NIC's cable

	disk    string
	proc    *Process
	console *console
}

// PowerOn connects the machine to the rack and powers it on. Its disk is empty and its
// firmware starts for the first time.
func (r *Rack) PowerOn(m Machine) (*Guest, error) {
	if !nameForm.MatchString(m.Name) {
		return nil, fmt.Errorf("machine name %q (want lower-case letters, digits and '-')", m.Name)
	}
	f := m.filesIn(r.Dir)
	if err := blankDisk(f.disk); err != nil {
		return nil, err
	}
	p := m.Firmware.platform()
	if p.vars != "" {
		if err := CopyFile(f.vars, p.vars); err != nil {
			return nil, err
		}
	}
	for _, nic := range m.NICs {
		tap, err := r.tap(nic.bridge())
		if err != nil {
			return nil, fmt.Errorf("machine %q: %w", m.Name, err)
		}
		f.taps = append(f.taps, tap)
	}
	g := &Guest{Machine: m, Console: filepath.Join(r.Dir, m.Name+".console"), Taps: f.taps, disk: f.disk}
	var err error
	if g.console, err = newConsole(g.Console); err != nil {
		return nil, err
	}
	cmd := exec.Command(p.program, m.args(f)...)
	cmd.Stdout, cmd.Stderr = g.console, g.console
	g.Started = g.console.started
	if g.proc, err = r.Start(guestPrefix+m.Name, cmd); err != nil {
		return nil, err
	}
	go func() {
		<-g.proc.Done()
		g.console.close()
	}()
	return g, nil
}

// WaitConsole waits until a line of the console, past or to come, matches and
// returns it. It fails when the machine is off.
func (g *Guest) WaitConsole(ctx context.Context, re *regexp.Regexp) (string, error) {
	line, err := g.console.wait(ctx, re)
	if err != nil {
		return "", fmt.Errorf("console of %q: no line matches %q: %w", g.Machine.Name, re, err)
	}
	return line, nil
}

// Tail returns the last n lines of the console.
func (g *Guest) Tail(n int) []string { return g.console.tail(n) }

// Running reports whether the machine is on.
func (g *Guest) Running() bool { return g.proc.Running() }

// Pid returns the process id of the virtual machine.
func (g *Guest) Pid() int { return g.proc.Pid }

// PowerOff cuts the power.
func (g *Guest) PowerOff() error { return g.proc.Stop(0) }

// DiskUsed returns how many bytes of the disk were ever written.
func (g *Guest) DiskUsed() (int64, error) {
	fi, err := os.Stat(g.disk)
	if err != nil {
		return 0, err
	}
	const block = 512 // of st_blocks, whatever the file system's block size
	return fi.Sys().(*syscall.Stat_t).Blocks * block, nil
}

// blankDisk makes an empty disk of 4 GB that takes no room. It is made anew:
// truncating an old one would keep nothing either, but a link would be followed.
func blankDisk(path string) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Truncate(4 << 30)
}

// CopyFile copies a file, such as the variables of a UEFI firmware, of which each
// machine needs its own.
func CopyFile(dst, src string) error {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(dst)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
