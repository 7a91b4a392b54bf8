package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"drover/node/client"
	"drover/node/cmdline"
	"drover/node/console"
	"drover/node/disks"
	"drover/node/kmod"
	"drover/node/lldp"
	"drover/node/nic"
	"drover/node/nodeconfig"
	"drover/node/report"
	"drover/node/retry"
	"drover/node/rootfs"
	"drover/node/script"
	"drover/node/state"
	"drover/pools"
	"drover/pools/boots"
)

// boot is the boot of one node, from the initramfs to the init of its root image. Its
// methods are the steps, in order.
type boot struct {
	con     *console.Console
	random  <-chan struct{} // closed when the kernel has enough entropy
	args    cmdline.Args
	mods    *kmod.Modules
	net     *nic.NIC
	srv     *client.Server
	rep     *report.Reporter
	endKeep context.CancelFunc // ends the renewal of the lease
	kept    chan struct{}      // closed when it has ended

	switches *lldp.Listener   // nil: it does not listen
	reported *pools.Inventory // to the server; nil: nothing

	panicSysctl string // the value of kernel.panic before bootNode set it

	ends []*time.Timer // end a boot without progress, the watchdog last

	state   state.Boot // passed to the agent
	config  pools.NodeConfig
	storage *disks.Preparer
	restore func() error // removes the temporary resolv.conf

	step   boots.Step // in progress
	detail string     // reported at the end of the step
}

// Time limits of parts of a boot.
const (
	configTry    = 30 * time.Second       // one config request
	preInitLimit = 120 * time.Second      // one script before the root's init
	flushLimit   = 2 * time.Second        // events, before the network goes down
	agentFiles   = state.Dir + "/scripts" // directory of the running scripts
	imageFile    = rootfs.ImageDir + "/root.sqfs"
)

// run runs the steps. It returns only with an error.
func (b *boot) run(ctx context.Context) error {
	for _, s := range []struct {
		step   boots.Step
		do     func(context.Context) error
		report bool // report the step as done
	}{
		{boots.StepInit, b.prepare, true},
		{boots.StepNetwork, b.connect, true},
		{boots.StepImage, b.sendInventory, false},
		{boots.StepImage, b.fetchImage, true},
		{boots.StepConfig, b.sendNeighbours, false},
		{boots.StepConfig, b.openRoot, false},
		{boots.StepConfig, b.rescue, false},
		{boots.StepConfig, b.fetchConfig, false},
		{boots.StepConfig, b.setClock, false},
		{boots.StepConfig, b.stage(pools.Initrd), false},
		{boots.StepWipe, b.wipeDisks, false},
		{boots.StepConfig, b.prepareDisks, false},
		{boots.StepConfig, b.applyConfig, false},
		{boots.StepConfig, b.limitTmpfs, false},
		{boots.StepConfig, b.stage(pools.PreInit), false},
		{boots.StepConfig, b.stage(pools.PostInit), false},
		{boots.StepConfig, b.checkNetwork, false},
		{boots.StepConfig, b.debugShell, false},
		{boots.StepConfig, b.configured, true},
		{boots.StepSwitch, b.leave, true},
	} {
		b.step, b.detail = s.step, ""
		if err := b.do(ctx, s.do); err != nil {
			return err
		}
		if s.report {
			b.con.Printf(string(s.step), "%s", b.detail)
			b.rep.Report(s.step, b.detail)
		}
	}
	return b.switchRoot()
}

// retry returns a retrier that reports each failure as an error of the current step.
func (b *boot) retry() retry.Retrier {
	return retry.Retrier{Notice: func(err error, wait time.Duration) {
		b.con.Printf(string(b.step), "error: %v; retrying in %.1f s, rebooting at %.0f s", err, wait.Seconds(), b.args.Timeout.Seconds())
		b.rep.Fail(b.step, err)
	}}
}

// say returns a function that prints lines with a topic.
func (b *boot) say(topic string) func(string, ...any) {
	return func(format string, args ...any) { b.con.Printf(topic, format, args...) }
}

// prepare loads the modules of the devices in this machine, and those of the root file
// system.
func (b *boot) prepare(ctx context.Context) error {
	if err := linkModprobe(); err != nil {
		b.con.Printf("modules", "the kernel cannot ask for modules by itself: %v", err)
	}
	mods, err := systemModules()
	if err != nil {
		b.con.Printf("modules", "%v; going on with what is built into the kernel", err)
		mods = &kmod.Modules{Insert: kmod.Insert}
	}
	b.mods = mods
	b.plug()
	for _, name := range []string{"loop", "squashfs", "overlay", "af_packet", "ipv6"} {
		if err := mods.Load(name); err != nil && !errors.Is(err, kmod.ErrNotFound) {
			b.con.Printf("modules", "error: %v", err)
		}
	}
	known, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return err
	}
	for _, fs := range []string{"squashfs", "overlay"} {
		if !strings.Contains(string(known), "\t"+fs+"\n") {
			return fmt.Errorf("the kernel does not know file system %s, and the initrd has no module for it", fs)
		}
	}
	b.detail = fmt.Sprintf("drover-init runs, %d modules loaded", len(mods.Loaded()))
	return b.waitRandom(ctx)
}

// collectRandom makes the kernel collect entropy, and closes the channel when it has
// enough. A machine without RDRAND has too little this early. Only a blocking read makes
// the kernel collect more, and the DHCP client's reads do not block.
func collectRandom() <-chan struct{} {
	ready := make(chan struct{})
	go func() {
		_, _ = rand.Read(make([]byte, 32)) // never an error
		close(ready)
	}()
	return ready
}

// waitRandom waits until the kernel has enough entropy.
func (b *boot) waitRandom(ctx context.Context) error {
	for start := time.Now(); ; {
		select {
		case <-b.random:
			return nil
		case <-ctx.Done():
			return errors.New("the kernel has no good random numbers")
		case <-time.After(5 * time.Second):
			b.con.Printf("init", "the kernel has had no good random numbers for %.0f s; waiting, rebooting at %.0f s", time.Since(start).Seconds(), b.args.Timeout.Seconds())
		}
	}
}

// plug loads the modules of new devices.
func (b *boot) plug() {
	loaded, errs := b.mods.Coldplug("/sys")
	if len(loaded) > 0 {
		b.con.Printf("modules", "%s", strings.Join(loaded, " "))
	}
	for _, err := range errs {
		b.con.Printf("modules", "error: %v; going on without", err)
	}
}

// linkModprobe makes /sbin/modprobe a link to drover-init. The kernel calls it for drivers
// that request further modules.
func linkModprobe() error {
	const modprobe = "/sbin/modprobe" // CONFIG_MODPROBE_PATH
	if _, err := os.Lstat(modprobe); err == nil {
		return nil
	}
	return nodeconfig.Symlink("/init", modprobe)
}

// connect finds the network card and leases an address.
func (b *boot) connect(ctx context.Context) error {
	n, err := nic.Find(ctx, b.args.MAC, b.plug, b.say("network"))
	if err != nil {
		return err
	}
	b.net, n.Server = n, b.args.URL.Hostname()
	b.listen()
	if err := n.Up(ctx); err != nil {
		return err
	}
	again := b.retry()
	if err := again.Do(ctx, n.Connect); err != nil {
		return err
	}
	keep, cancel := context.WithCancel(context.Background())
	b.endKeep, b.kept = cancel, make(chan struct{})
	go guard(b.con, func() {
		defer close(b.kept)
		n.KeepLease(keep)
	})
	if text := n.Lease.ResolvConf(); text != "" {
		// drover-init itself needs it if drover.url has a host name.
		if err := nodeconfig.WriteFile("/etc/resolv.conf", []byte(text), 0o644); err != nil {
			return err
		}
	}
	b.srv = &client.Server{Base: b.args.URL, Secure: b.args.Secure, Also: b.args.Also, MAC: b.args.MAC, Nonce: b.args.Nonce, Client: client.NewHTTP(b.args.Pin)}
	b.rep.Send = b.srv.SendEvent
	b.rep.Start(func(f func()) { guard(b.con, f) })
	b.detail = fmt.Sprintf("%s %s from %s", n.Name, n.Lease.Address, n.Lease.Server)
	return nil
}

// fetchConfig makes the key of the boot and requests the node's config.
func (b *boot) fetchConfig(ctx context.Context) error {
	key, err := pools.NewKey()
	if err != nil {
		return err
	}
	secret, err := key.Bytes()
	if err != nil {
		return err
	}
	again := b.retry()
	err = again.Do(ctx, func(ctx context.Context) error {
		err := b.srv.Ask(ctx, "config", key, configTry, &b.config)
		if refused, ok := errors.AsType[client.Refused](err); ok {
			// Only a new boot script has a valid nonce.
			return retry.Final{Err: refused}
		}
		return err
	})
	if err != nil {
		return err
	}
	b.srv.SignEvents(b.config.EventKey)
	b.state = state.Boot{
		URL: b.args.URL.String(), Pin: b.args.Pin, MAC: b.args.MAC, Nonce: b.args.Nonce, Key: secret, Events: b.config.EventKey,
		Node: b.config.Hostname, Pool: b.config.Pool, Address: b.net.Lease.Address.Addr(),
		Join: b.config.Join, Scripts: script.OfStage(b.config.Scripts, pools.Online), Mounts: b.config.Mounts,
	}
	for _, u := range b.args.Also {
		b.state.Also = append(b.state.Also, u.String())
	}
	if b.args.Secure != nil {
		b.state.Secure = b.args.Secure.String()
	}
	return errors.Join(b.checkRAM(), b.state.Save(state.Dir))
}

// checkRAM returns an error if the node is to join a cluster and has too little RAM for
// that: it would come up, and hang for minutes or lose processes later.
func (b *boot) checkRAM() error {
	if !b.config.Join {
		return nil
	}
	m, err := rootfs.RAM()
	if err != nil {
		return err
	}
	return m.Joins()
}

// applyConfig writes the node's config into the root.
func (b *boot) applyConfig(context.Context) error {
	a := &nodeconfig.Applier{Root: "/", Warn: b.say("config")}
	if err := a.Apply(nodeconfig.Identity{NodeConfig: b.config, MAC: b.args.MAC, Address: b.state.Address}); err != nil {
		return err
	}
	return unix.Sethostname([]byte(b.config.Hostname))
}

// stage returns the function that runs the scripts of a stage before the root's init. A
// script that fails ends the boot: a half configured node must not join.
func (b *boot) stage(stage pools.Stage) func(context.Context) error {
	return func(ctx context.Context) error {
		run := script.OfStage(b.config.Scripts, stage)
		if len(run) == 0 {
			return nil
		}
		b.state.Env = b.environment(ctx)
		s := &script.Runner{Dir: agentFiles, Env: b.state.ScriptEnv(stage), Limit: preInitLimit, Say: b.con.Printf}
		for _, named := range run {
			if err := s.Run(ctx, named); err != nil {
				return fmt.Errorf("%s %w", stage, err)
			}
		}
		return nil
	}
}

// checkNetwork runs netplan's generator, if the root has files for it.
func (b *boot) checkNetwork(ctx context.Context) error {
	return checkNetplan(ctx, "/", b.say("network"))
}

// configured ends the configuration of the root.
func (b *boot) configured(ctx context.Context) error {
	if len(b.state.Scripts) > 0 { // of the agent
		b.state.Env = b.environment(ctx)
		if err := b.state.Save(state.Dir); err != nil {
			return err
		}
	}
	b.detail = fmt.Sprintf("%s of pool %s: %d files, %d units, %d mounts, %d scripts before init",
		b.state.Node, b.state.Pool, len(b.config.Files), len(b.config.Units), len(b.config.Mounts), len(b.config.Scripts)-len(b.state.Scripts))
	return b.restore()
}

// leave reports the step switch-root, while the network is still up.
func (b *boot) leave(context.Context) error {
	b.detail = "starting the node's own init"
	return nil
}

// endReports sends the events that the server does not have. Those for which it is away are left
// to the agent, with the state in dir.
func (b *boot) endReports(dir string) {
	b.rep.Flush(context.Background(), flushLimit)
	if b.state.Unsent = b.rep.Stop(); len(b.state.Unsent) > 0 {
		if err := b.state.Save(dir); err != nil {
			b.con.Printf("report", "error: %d events are lost: %v", len(b.state.Unsent), err)
		}
	}
}

// switchRoot takes the network down, installs the agent, and starts the init of the root
// image.
func (b *boot) switchRoot() error {
	b.endReports(state.Dir)
	b.endKeep()
	<-b.kept
	b.srv.Client.CloseIdleConnections()
	if err := b.net.Down(); err != nil {
		b.con.Printf("network", "error: %v; the node's own network may be slow to start", err)
	}
	if b.panicSysctl != "" {
		_ = os.WriteFile(panicFile, []byte(b.panicSysctl), 0) // back to the value that the kernel had
	}
	b.con.Flush(flushLimit)
	return rootfs.StartInit(os.Args[1:])
}
