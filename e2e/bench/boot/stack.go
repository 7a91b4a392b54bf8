package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"drover/e2e/buildcache"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
	"drover/imagebuild"
)

// droverStack is drover with one node.
func (b *bench) droverStack() stack {
	return stack{"drover", false, func(ctx context.Context, rack *lab.Rack) (func() error, error) {
		dir := filepath.Join(rack.Dir, "drover")
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
			return nil, err
		}
		config := filepath.Join(dir, "drover.yaml")
		text := fmt.Sprintf(`server: {interfaces: [%s], address: %s, api: "%s"}
subnets: [{cidr: %s, router: %s, lease: 1h}]
tags:
  all:
    kernelArgs: %s
    units:
      bench-up.service:
        enable: true
        content: |
%s
pools:
  - name: compute
    image: %s
    tags: []
    nodes: [{name: n1, macs: ["%s"], ip: %s}]
`, lab.Bridge, bootServer, bootAPI, bootSubnet, bootServer, kernelArgs, indent(upUnit, "          "), site.Image, bootMAC, bootIP)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			return nil, err
		}
		d := &lab.Drover{Binary: b.drover, Config: config, State: dir, Images: b.site.Images, Loaders: b.site.Loaders, API: bootAPI}
		if err := rack.StartDrover(ctx, d); err != nil {
			return nil, err
		}
		return d.Stop, nil
	}}
}

func indent(text, by string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(by + line)
	}
	return b.String()
}

// handStack is dnsmasq for DHCP and TFTP, nginx, and live-boot with the same
// kernel and root.
func (b *bench) handStack(initrds InitrdSizes) (stack, error) {
	dir := filepath.Join(b.dir, "hand")
	www := filepath.Join(dir, "www")
	if err := os.MkdirAll(www, 0o755); err != nil {
		return stack{}, err
	}
	err := errors.Join(
		os.Symlink(filepath.Join(initrds.imageFiles, imagebuild.KernelFile), filepath.Join(www, "kernel")),
		// live-boot expects this suffix.
		os.Symlink(filepath.Join(initrds.imageFiles, imagebuild.SquashfsFile), filepath.Join(www, "root.squashfs")),
		withUnit(filepath.Join(www, "initrd"), filepath.Join(initrds.initramfs, buildcache.LiveInitramfs)),
		os.WriteFile(filepath.Join(www, "boot.ipxe"), []byte(fmt.Sprintf(`#!ipxe
kernel http://%[1]s/kernel initrd=initrd boot=live ip=dhcp fetch=http://%[1]s/root.squashfs %[2]s
initrd http://%[1]s/initrd
boot
`, bootServer, kernelArgs)), 0o644))
	if err != nil {
		return stack{}, err
	}
	return stack{"by-hand", true, func(ctx context.Context, rack *lab.Rack) (func() error, error) {
		return b.startHand(ctx, rack, dir, www)
	}}, nil
}

// startHand starts both programs.
func (b *bench) startHand(ctx context.Context, rack *lab.Rack, dir, www string) (func() error, error) {
	config, err := b.nginxConfig(dir, "worker_processes auto;", fmt.Sprintf("server { listen %s:80; root %s; }", bootServer, www))
	if err != nil {
		return nil, err
	}
	nginx := b.nginxCommand(dir, config)
	// dnsmasq sends no ping before it gives the known machine its address. Option 175.176
	// keeps iPXE from waiting for a proxy, in both stacks.
	dnsmasq := []string{b.programs.Program("dnsmasq"), "--keep-in-foreground", "--user=root", "--conf-file=/dev/null", "--port=0", "--pid-file",
		"--bind-interfaces", "--interface=" + lab.Bridge, "--dhcp-authoritative",
		"--dhcp-range=10.77.0.0,static", "--dhcp-host=" + bootMAC + "," + bootIP + ",n1,1h", "--dhcp-option=option:router," + bootServer,
		"--dhcp-leasefile=" + filepath.Join(dir, "leases"),
		"--enable-tftp", "--tftp-root=" + b.site.Loaders,
		"--dhcp-match=set:ipxe,175", "--dhcp-boot=tag:!ipxe,undionly.kpxe", "--dhcp-boot=tag:ipxe,http://" + bootServer + "/boot.ipxe",
		"--dhcp-option=encap:175,176,01",
	}
	var running []*lab.Process
	stop := func() error {
		var errs []error
		for _, p := range running {
			var exit *exec.ExitError
			if err := p.Stop(10 * time.Second); err != nil && !errors.As(err, &exit) { // dnsmasq exits with a status other than 0 at the signal
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	}
	for name, args := range map[string][]string{"nginx": nginx, "dnsmasq": dnsmasq} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = append(os.Environ(), b.programs.Env())
		p, err := rack.Start("hand-"+name, cmd)
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		running = append(running, p)
	}
	for _, p := range running {
		if err := settled(ctx, p); err != nil {
			return nil, errors.Join(err, stop())
		}
	}
	return stop, nil
}

// settled waits for a server to bind its sockets, and returns an error if it ended
// instead.
func settled(ctx context.Context, p *lab.Process) error {
	select {
	case <-p.Done():
		text, _ := os.ReadFile(p.Log) // for the error only
		return fmt.Errorf("%s ended:\n%s", p.Name, text)
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second):
		return nil
	}
}
