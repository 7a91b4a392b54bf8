package admin

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"drover/e2e/lab"
)

//go:embed node.sh
var nodeScript []byte

// Folders in the node's mount namespace, see node.sh.
const (
	nodeDir       = Folders + "/node"
	kubernetesDir = Folders + "/kubernetes"
	containerdDir = Folders + "/containerd"
	proxyDir      = Folders + "/proxy"
)

const containerdSocket = "/run/containerd/containerd.sock"

// node is the node of an admin cluster.
type node struct {
	rack   *lab.Rack
	dir    string // of the host; nodeDir in the node
	cgroup cgroup
	init   *lab.Process // unshare, whose child is node.sh, the first process of the PID namespace
	mounts string       // its mount namespace, as /proc/PID/ns/mnt names it
	hold   *os.File     // of that namespace: while it is open, no other one has its name
	others []*lab.Process
}

// startNode starts the node's processes: containerd, kubelet, kube-proxy.
func (c *Cluster) startNode(ctx context.Context, token string) (_ *node, err error) {
	n := &node{rack: c.cfg.Rack, dir: filepath.Join(c.cfg.Dir, "node"), cgroup: cgroup("drover-" + c.cfg.Rack.Name)}
	if err := n.writeFiles(c, token); err != nil {
		return nil, err
	}
	if err := n.cgroup.make(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	cmd := exec.Command("unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc",
		"sh", filepath.Join(n.dir, "node.sh"))
	cmd.Env = append(os.Environ(), "NODE="+NodeName, "DIR="+n.dir,
		"PATH="+strings.Join([]string{containerdDir, "/usr/sbin", "/usr/bin", "/sbin", "/bin"}, ":"))
	if n.init, err = n.rack.Start("node", cmd); err != nil {
		return nil, err
	}
	if err := n.await(ctx, "containerd", func(ctx context.Context) error {
		_, err := output(ctx, n.command(ctx, containerdDir+"/ctr", "--address", containerdSocket, "version"))
		return err
	}); err != nil {
		return nil, err
	}
	mounts := fmt.Sprintf("/proc/%d/ns/mnt", n.init.Pid)
	if n.hold, err = os.Open(mounts); err != nil {
		return nil, err
	}
	if n.mounts, err = os.Readlink(mounts); err != nil {
		return nil, err
	}
	c.node = n
	if err := c.Import(ctx, c.programs.Pause); err != nil {
		return nil, err
	}
	return n, n.startAgents(ctx, c)
}

// startAgents starts kubelet and kube-proxy.
func (n *node) startAgents(ctx context.Context, c *Cluster) error {
	for name, args := range map[string][]string{
		"kubelet": {
			kubernetesDir + "/kubelet", "--config=" + nodeDir + "/kubelet.yaml",
			"--bootstrap-kubeconfig=" + nodeDir + "/bootstrap.conf", "--kubeconfig=/var/lib/kubelet/kubeconfig",
			"--hostname-override=" + NodeName, "--node-ip=" + c.cfg.Address.String(),
		},
		"kube-proxy": {
			proxyDir + "/kube-proxy", "--kubeconfig=" + nodeDir + "/admin.conf", "--proxy-mode=iptables",
			"--hostname-override=" + NodeName, "--cluster-cidr=" + podCIDR,
			"--conntrack-max-per-core=0", "--conntrack-min=0", // these limits are the whole machine's
			"--healthz-bind-address=127.0.0.1:10256", "--metrics-bind-address=127.0.0.1:10249",
		},
	} {
		p, err := n.rack.Start(name, n.command(context.WithoutCancel(ctx), args[0], args[1:]...))
		if err != nil {
			return err
		}
		n.others = append(n.others, p)
	}
	return nil
}

// command makes a command that runs in the node. It ends with the node, whatever becomes of
// the context: a process that enters a PID namespace is the child of another.
func (n *node) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	pid := strconv.Itoa(n.init.Pid)
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{
		"--net=/run/netns/" + n.rack.Name, "--target", pid, "--mount", "--uts",
		"--pid=/proc/" + pid + "/ns/pid_for_children", "--", name,
	}, args...)...)
	cmd.Env = append(os.Environ(), "PATH="+strings.Join([]string{containerdDir, kubernetesDir, "/usr/sbin", "/usr/bin", "/sbin", "/bin"}, ":"))
	return cmd
}

// await calls try until it succeeds, a process of the node ends, or time is up.
func (n *node) await(ctx context.Context, what string, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return poll(ctx, what, func(ctx context.Context) (bool, error) {
		if err := n.failed(); err != nil {
			return true, err
		}
		err := try(ctx)
		return err == nil, err
	})
}

// failed returns an error if a process of the node has ended.
func (n *node) failed() error {
	for _, p := range append([]*lab.Process{n.init}, n.others...) {
		if !p.Running() {
			return fmt.Errorf("%s ended: %s%s", p.Name, tail(p.Log), tail(filepath.Join(n.dir, "containerd.log")))
		}
	}
	return nil
}

// processes returns the command lines of all processes of the node and its pods: those in
// its mount namespace, and those in its cgroup.
func (n *node) processes() (commands []string, err error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	for _, dir := range all {
		mounts, err := os.Readlink(dir + "/ns/mnt")
		cgroups, _ := os.ReadFile(dir + "/cgroup") // of a process that has ended
		if err == nil && mounts == n.mounts || bytes.Contains(cgroups, []byte("/"+string(n.cgroup)+"/")) {
			command, _ := os.ReadFile(dir + "/cmdline")
			commands = append(commands, string(bytes.ReplaceAll(command, []byte{0}, []byte{' '})))
		}
	}
	return commands, nil
}

// close ends the PID namespace of the node, and removes its cgroups.
func (n *node) close() error {
	if n.init == nil {
		return n.cgroup.remove()
	}
	_ = n.init.Stop(0) // killed: nothing to say
	for _, p := range n.others {
		_ = p.Stop(0)
	}
	return n.cgroup.remove()
}

// tail returns the last lines of a log.
func tail(file string) []byte {
	text, err := os.ReadFile(file)
	if err != nil {
		return []byte(err.Error())
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-15):], nil)
}
