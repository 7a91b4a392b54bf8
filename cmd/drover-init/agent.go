package main

import (
	"context"
	"crypto/hpke"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"drover/node/client"
	"drover/node/console"
	"drover/node/nodeconfig"
	"drover/node/program"
	"drover/node/report"
	"drover/node/retry"
	"drover/node/script"
	"drover/node/state"
	"drover/pools"
	"drover/pools/boots"
)

// agent runs the online scripts of a booted node and joins it to its cluster.
type agent struct {
	State state.Boot
	Key   hpke.PrivateKey
	Srv   *client.Server
	Rep   *report.Reporter
	Con   *console.Console
	Dir   string // for scripts and the join configuration; in RAM
	Root  string // prefix of the paths of kubeadm's leftovers; "" is the root
	Retry retry.Retrier
}

// Limits of the agent.
const (
	onlineLimit = 10 * time.Minute // one run of an online script
	joinTry     = time.Minute      // one join request: the server waits for its cluster
	kubeadmTry  = 15 * time.Minute // one run of kubeadm, whose own limits are 4 and 5 min
	minAgain    = 5 * time.Second  // before the second try
	maxAgain    = 60 * time.Second // before any later try
	agentFlush  = 10 * time.Minute // sending the last events
	stopFlush   = 10 * time.Second // the same, once systemd stops the agent
)

// kubeletConf is the file that kubeadm join writes when it has succeeded.
const kubeletConf = "/etc/kubernetes/kubelet.conf"

// leftovers are the files of a failed kubeadm join. They make the preflight checks of
// the next one fail.
var leftovers = []string{kubeletConf, "/etc/kubernetes/bootstrap-kubelet.conf", "/etc/kubernetes/pki/ca.crt"}

// runAgent is the command "drover-init agent". The state of the boot is in dir.
func runAgent(ctx context.Context, dir string, stdout, stderr io.Writer) int {
	boot, err := state.Load(dir)
	if err != nil {
		fmt.Fprintf(stderr, "drover-init agent: %v (this node was not booted by drover-init, or its agent is done)\n", err)
		return nodeconfig.ExitFinal
	}
	srv, key, err := boot.Server()
	if err != nil {
		fmt.Fprintf(stderr, "drover-init agent: the state in %s: %v\n", dir, err)
		return nodeconfig.ExitFinal
	}
	con := console.New(stdout, console.Uptime)
	defer con.Close()
	srv.BootID = bootID()
	a := newAgent(boot, srv, key, con, dir)
	a.Rep.Start(func(f func()) { f() })
	defer a.Rep.Stop()
	defer a.sendRest(ctx)
	if err := a.run(ctx); err != nil {
		con.Printf("agent", "error: %v", err)
		if errors.Is(err, errNoKubeadm) {
			return nodeconfig.ExitFinal
		}
		return 1
	}
	// The secrets of the boot are needed no longer.
	if err := state.Remove(dir); err != nil {
		con.Printf("agent", "error: %v", err)
		return 1
	}
	return 0
}

func newAgent(boot state.Boot, srv *client.Server, key hpke.PrivateKey, con *console.Console, dir string) *agent {
	rep := report.New(con)
	rep.Send = srv.SendEvent
	rep.Resume(boot.Unsent)
	return &agent{
		State: boot, Key: key, Srv: srv, Rep: rep, Con: con, Dir: dir,
		Retry: retry.Retrier{Backoff: retry.Backoff{Base: minAgain * 2, Max: maxAgain}}, // half of it is random
	}
}

// sendRest waits until the server knows how the agent ended. A server that is away comes back
// within minutes, and would have the node on its way for ever.
func (a *agent) sendRest(ctx context.Context) {
	a.Rep.Flush(ctx, agentFlush)
	a.Rep.Flush(context.Background(), stopFlush)
}

// bootID returns the boot ID of the running kernel, which the kubelet reports in the Node
// too. Without /proc it is empty, and the server does not delete the Node of an
// earlier boot.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

// run runs the online scripts, then joins the cluster. It returns when both are done, or
// with an error that a retry does not heal.
func (a *agent) run(ctx context.Context) error {
	if err := a.disks(ctx); err != nil {
		return err
	}
	if err := a.scripts(ctx); err != nil {
		return err
	}
	a.Con.Printf("online", "%s is online", a.State.Node)
	a.Rep.Report(boots.StepOnline, a.State.Address.String())
	if !a.State.Join {
		a.Con.Printf("agent", "there is no cluster to join; done")
		return nil
	}
	return a.join(ctx)
}

// again returns a retrier that reports each failure as an error of a step.
func (a *agent) again(step boots.Step) retry.Retrier {
	r := a.Retry
	r.Notice = func(err error, wait time.Duration) {
		a.Con.Printf(string(step), "error: %v; trying again in %.0f s", err, wait.Seconds())
		a.Rep.Fail(step, err)
	}
	return r
}

// scripts runs the online scripts. It repeats a script that fails until it succeeds: the
// node must not join half prepared, and a service that the script uses may be
// unavailable for a while. A script that has succeeded leaves the state, so that an agent
// that starts again does not repeat it.
func (a *agent) scripts(ctx context.Context) error {
	s := &script.Runner{Dir: filepath.Join(a.Dir, "scripts"), Env: a.State.ScriptEnv(pools.Online), Limit: onlineLimit, Say: a.Con.Printf}
	for _, named := range script.OfStage(a.State.Scripts, pools.Online) {
		again := a.again(boots.StepOnline)
		if err := again.Do(ctx, func(ctx context.Context) error { return s.Run(ctx, named) }); err != nil {
			return err
		}
		a.State.Scripts = slices.DeleteFunc(a.State.Scripts, func(s pools.NamedScript) bool { return s.Name == named.Name })
		if err := a.State.Save(a.Dir); err != nil {
			a.Con.Printf("online", "warning: %v; the script %q runs again if the agent does", err, named.Name)
		}
	}
	return nil
}

// errNoKubeadm is the error of an image that lacks it.
var errNoKubeadm = errors.New("the image has no kubeadm, so this node cannot join its cluster")

// join runs kubeadm until it succeeds, each time with a new token.
func (a *agent) join(ctx context.Context) error {
	kubeadm, err := exec.LookPath("kubeadm")
	if err != nil {
		err = fmt.Errorf("%w (PATH is %s)", errNoKubeadm, os.Getenv("PATH"))
		a.Rep.Fail(boots.StepJoined, err)
		return err
	}
	if _, err := os.Stat(a.Root + kubeletConf); err == nil {
		// An agent before this one was stopped after kubeadm had succeeded. The root
		// is in RAM, so that only a join of this boot can have made the file.
		a.done("an earlier run of the agent joined the cluster")
		return nil
	}
	again := a.again(boots.StepJoined)
	tries := 0
	err = again.Do(ctx, func(ctx context.Context) error {
		var config pools.JoinConfig
		err := a.Srv.Ask(ctx, "join", a.Key, joinTry, &config)
		if refused, ok := errors.AsType[client.Refused](err); ok {
			return fmt.Errorf("the server refuses this boot (a newer boot of this machine, or a server that forgot it; a reboot heals both): %w", refused)
		}
		if err != nil {
			return fmt.Errorf("join configuration: %w", err)
		}
		tries++
		return a.kubeadm(ctx, kubeadm, config)
	})
	if err != nil {
		return err
	}
	a.done(fmt.Sprintf("kubeadm join succeeded, run %d", tries))
	return nil
}

func (a *agent) done(detail string) {
	a.Con.Printf("joined", "%s", detail)
	a.Rep.Report(boots.StepJoined, detail)
}

// kubeadm runs one kubeadm join. The configuration has the token, so that it is no
// argument but a file in RAM, for as long as kubeadm runs. After a failed run
// this method removes the leftovers.
func (a *agent) kubeadm(ctx context.Context, path string, config pools.JoinConfig) (err error) {
	file := filepath.Join(a.Dir, "kubeadm-join.yaml")
	defer func() { err = errors.Join(err, nodeconfig.Ignore(os.Remove(file), unix.ENOENT)) }()
	if err := nodeconfig.WriteFile(file, []byte(config.Kubeadm), 0o600); err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, kubeadmTry, fmt.Errorf("not done after %v", kubeadmTry))
	defer cancel()
	cmd := exec.Command(path, "join", "--config", file)
	cmd.Env = append(os.Environ(), "HOME=/root")
	var said []string
	err = program.Run(limited, cmd, func(line string) {
		said = append(said, line)
		if len(said) > 200 {
			said = said[100:]
		}
		a.Con.Printf("kubeadm", "%s", line)
	})
	if err == nil || ctx.Err() != nil { // the agent is stopped: kubeadm may have succeeded
		return err
	}
	err = fmt.Errorf("kubeadm join: %w: %s", err, kubeadmErrors(said))
	return errors.Join(err, a.cleanUp(ctx))
}

// kubeadmErrors returns the lines that kubeadm marked as errors, at most the last five.
// Without any it returns the last three lines.
func kubeadmErrors(said []string) string {
	var bad []string
	for _, line := range said {
		l := strings.ToLower(strings.TrimSpace(line))
		if strings.HasPrefix(l, "error") || strings.HasPrefix(l, "[error") || strings.Contains(l, "error execution phase") {
			bad = append(bad, strings.TrimSpace(line))
		}
	}
	if len(bad) == 0 {
		return strings.Join(said[max(0, len(said)-3):], "; ")
	}
	return strings.Join(bad[max(0, len(bad)-5):], "; ")
}

// cleanUp removes everything that would make a later try fail: the leftovers, and a
// kubelet that kubeadm started, since kubeadm requires its port to be free.
func (a *agent) cleanUp(ctx context.Context) error {
	if systemctl, err := exec.LookPath("systemctl"); err == nil {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		err := program.Run(ctx, exec.Command(systemctl, "stop", "kubelet.service"), func(line string) {
			a.Con.Printf("kubelet", "%s", line)
		})
		if err != nil {
			a.Con.Printf("kubelet", "error: stop: %v; going on", err)
		}
	}
	var errs []error
	for _, path := range leftovers {
		errs = append(errs, nodeconfig.Ignore(os.Remove(a.Root+path), unix.ENOENT))
	}
	return errors.Join(errs...)
}
