package manual

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Host is a host of one test: the real host's files, with /etc, /usr and /var
// writable and thrown away, and processes of its own. It needs root and Linux.
type Host struct {
	holder *exec.Cmd
	stdin  io.Closer
	pid    int
	Dir    string // working directory of its commands
}

// setup makes the mounts of a host below the directory $1, tells its process, and
// lives until standard input ends. Its end ends all processes of the host.
const setup = `set -e
mount --make-rprivate /
mount -t tmpfs tmpfs "$1"
for d in etc usr var; do
	mkdir -p "$1/$d/upper" "$1/$d/work"
	mount -t overlay overlay -o "lowerdir=/$d,upperdir=$1/$d/upper,workdir=$1/$d/work" "/$d"
done
mount -t tmpfs tmpfs /run
mkdir -p /etc/drover /var/lib/drover /run/netns
rm -rf /etc/drover/* /var/lib/drover/*
echo ready
read -r end || :
`

// NewHost makes a host. Its network is the named namespace of "ip netns", or one of
// its own with nothing in it when the name is empty. The mounts are made below dir, an
// empty directory outside of /etc, /usr and /var.
func NewHost(netns, dir string) (*Host, error) {
	args := []string{"--mount", "--pid", "--fork", "--kill-child", "--mount-proc"}
	name := "unshare"
	if netns == "" {
		args = append(args, "--net")
	} else {
		name, args = "nsenter", append([]string{"--net=/run/netns/" + netns, "unshare"}, args...)
	}
	h := &Host{holder: exec.Command(name, append(args, "sh", "-c", setup, "host", dir)...), Dir: dir}
	h.holder.Stderr = os.Stderr
	stdin, err := h.holder.StdinPipe()
	if err != nil {
		return nil, err
	}
	h.stdin = stdin
	stdout, err := h.holder.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := h.holder.Start(); err != nil {
		return nil, err
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
		h.Close()
		return nil, fmt.Errorf("host of a test: got %q, %w", line, err)
	}
	h.pid, err = child(h.holder.Process.Pid)
	return h, err
}

// child returns the only child of a process: unshare forks into its namespaces.
func child(pid int) (int, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

// Command returns a shell on the host that runs a command line.
func (h *Host) Command(line string) *exec.Cmd {
	return exec.Command("nsenter", "--target", strconv.Itoa(h.pid), "--mount", "--net", "--pid",
		"--", "sh", "-c", `cd "$1" && eval "$2"`, "sh", h.Dir, line)
}

// Close ends the host and its processes.
func (h *Host) Close() {
	_ = h.stdin.Close()
	_ = h.holder.Wait() // its exit status is that of being ended
}
