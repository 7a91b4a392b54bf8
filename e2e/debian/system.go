// Package debian runs systems of Debian for tests: the files of a root from package
// buildcache with a layer above them that is thrown away, in namespaces of their own, with
// systemd as process 1 where a test asks for one. Such a system shares the kernel and
// nothing else with the host, and is there within seconds.
//
//	s, err := debian.Start(debian.Config{Root: root, Dir: t.TempDir(), Init: debian.Systemd})
//	defer s.Close()
//	out, err := s.Command(ctx, "systemctl is-system-running --wait").CombinedOutput()
//
// It needs root, Linux, and the programs of util-linux and iproute2. It knows nothing of
// drover.
package debian

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Systemd is an init of a [System]: the one of Debian.
const Systemd = "/lib/systemd/systemd"

// Config describes a [System].
type Config struct {
	Root string // the files; nobody writes to them
	Dir  string // empty directory of the host, for the mounts
	Init string // process 1; default: one that does nothing
	// Network are lines of a shell of the host, for the network of the system. It has
	// only lo.
	Network string
}

// System is a running system.
type System struct {
	holder *exec.Cmd
	stdin  io.Closer
	pid    int // of process 1, as the host counts
}

// outside makes the namespaces and files of a system below the directory $1, from the root
// $2, and starts $3 with $4 in it. It ends when its standard input ends, and everything with
// it. The cgroup is of version 2, beside whatever the host uses: systemd starts a process
// for each unit in one of its own.
const outside = `set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root" "$1/cgroup"
mount -t overlay overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount -t cgroup2 cgroup2 "$1/cgroup"
group=$1/cgroup/drover-debian-$$
ip link set lo up
eval "$5"
cd "$1/root"
mkdir "$group"
sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec unshare --mount --cgroup --pid --fork --kill-child sh -c "$@"' sh "$group" "$3" sh "$4" </dev/null &
system=$!
exec >&2 # only process 1 says that it is ready
read -r end || :
kill -KILL $system || :
wait $system || :
until find "$group" -depth -type d -exec rmdir {} + 2>&1; do sleep 0.2; done
`

// inside is process 1 before its init: it mounts what an init expects. What belongs to the
// whole host, such as its kernel parameters and its clock, it can read only.
const inside = `set -e
mount -t proc proc proc
for kernel in proc/sys proc/sysrq-trigger; do
	[ ! -e $kernel ] || { mount --bind $kernel $kernel && mount -o remount,bind,ro $kernel; }
done
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
for node in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0; do
	number=${node#*:}
	mknod -m 666 "dev/${node%%:*}" c "${number%:*}" "${number#*:}"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t tmpfs -o mode=755 tmpfs run
export container=drover-test PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
if [ "$1" != /lib/systemd/systemd ]; then # nothing that needs a root of its own, or has umount
	exec setpriv --bounding-set -sys_module,-sys_time,-sys_rawio,-syslog chroot . sh -c 'echo ready && exec $1' sh "$1"
fi
mkdir .host
pivot_root . .host
cd /
exec setpriv --bounding-set -sys_module,-sys_time,-sys_rawio,-syslog chroot / sh -c 'umount -l /.host && rmdir /.host && echo ready && exec $1' sh "$1"
`

// Start starts a system. It returns when its init has begun.
func Start(c Config) (*System, error) {
	if c.Init == "" {
		c.Init = "sleep infinity"
	}
	s := &System{holder: exec.Command("unshare", "--mount", "--net", "--uts", "--ipc", "sh", "-c", outside, "system", c.Dir, c.Root, inside, c.Init, c.Network)}
	said := new(strings.Builder)
	s.holder.Stderr = said
	stdin, err := s.holder.StdinPipe()
	if err != nil {
		return nil, err
	}
	s.stdin = stdin
	stdout, w, err := os.Pipe() // systemd keeps it: nobody waits for its end
	if err != nil {
		return nil, err
	}
	s.holder.Stdout, s.holder.WaitDelay = w, time.Minute
	err = s.holder.Start()
	_ = w.Close()
	if err != nil {
		_ = stdout.Close()
		return nil, err
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
		_ = stdout.Close()
		s.Close()
		return nil, fmt.Errorf("system of Debian in %s: got %q, %w: %s", c.Dir, line, err, said)
	}
	go func() { // what the init prints is of no use
		_, _ = io.Copy(io.Discard, stdout)
		_ = stdout.Close()
	}()
	if s.pid, err = s.first(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// first returns the number of process 1: the only child of a child of the holder.
func (s *System) first() (int, error) {
	pid := s.holder.Process.Pid
	for range 2 {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		if err != nil {
			return 0, err
		}
		children := strings.Fields(string(b))
		if len(children) != 1 {
			return 0, fmt.Errorf("process %d has the children %q, want one", pid, children)
		}
		if pid, err = strconv.Atoi(children[0]); err != nil {
			return 0, err
		}
	}
	return pid, nil
}

// Command returns a shell of the system that runs a command line.
func (s *System) Command(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "nsenter", "--target", strconv.Itoa(s.pid), "--mount", "--net", "--uts", "--ipc", "--pid", "--cgroup", "--root", "--wd",
		"--", "sh", "-c", line)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"}
	return cmd
}

// Run runs a command line to its end, and returns what it printed.
func (s *System) Run(ctx context.Context, line string) (string, error) {
	out, err := s.Command(ctx, line).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w: %s", line, err, out)
	}
	return string(out), nil
}

// Send writes a file of the host to the system.
func (s *System) Send(ctx context.Context, from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	return s.Write(ctx, f, to)
}

// Write writes a file of the system.
func (s *System) Write(ctx context.Context, content io.Reader, to string) error {
	cmd := s.Command(ctx, "cat >'"+to+"'")
	cmd.Stdin = content
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("write %s: %w: %s", to, err, out)
	}
	return nil
}

// Close ends the system and all its processes.
func (s *System) Close() error {
	if err := s.stdin.Close(); err != nil {
		return err
	}
	err := s.holder.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil // the shell's last status
	}
	return err
}
