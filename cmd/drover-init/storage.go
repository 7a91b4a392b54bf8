package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"

	"drover/node/disks"
	"drover/node/kmod"
	"drover/node/program"
	"drover/node/rootfs"
	"drover/pools"
	"drover/pools/boots"
)

// disksOf returns what prepares the disks of the node. Modules are those of the image, and read
// when a device needs one.
func (b *boot) disksOf(memory rootfs.Memory) *disks.Preparer {
	load := sync.OnceValue(b.imageModules)
	t := b.config.Tenant
	return &disks.Preparer{
		System: disks.Linux{Say: b.say("disks")}, Node: b.config.Hostname, Sys: "/sys", Dev: "/dev", Root: "/", Shared: "/run/drover-disks",
		Tenant: disks.Tenant{Name: t.Name, Former: t.Former, Key: t.Key, Change: t.Change},
		Plug:   func() { disks.Plug("/sys", func(alias string) error { return load()(alias) }) },
		Say:    b.say("disks"),
		Tmpfs:  fmt.Sprintf("mode=0755,size=%d", memory.Available/2),
		Extend: b.extend,
		Erasing: func(line string) {
			b.con.Printf("wipe", "%s", line)
			b.rep.Report(boots.StepWipe, line)
		},
	}
}

// wipeDisks erases the disks of this node that have the data of another tenant, before anything
// of a disk is mounted.
func (b *boot) wipeDisks(ctx context.Context) error {
	memory, err := rootfs.RAM()
	if err != nil {
		return err
	}
	b.storage = b.disksOf(memory)
	_, err = b.storage.Change(ctx, b.config.Disks)
	return err
}

// prepareDisks formats and mounts the disks of the config, before anything is written below
// their mount points, and makes the compressed swap. systemd takes over what is mounted, in
// the place of the image's own units. A missing disk is a warning, unless the config
// requires it.
func (b *boot) prepareDisks(ctx context.Context) error {
	if len(b.config.Disks) == 0 && b.config.Zram == "" {
		return nil
	}
	memory, err := rootfs.RAM()
	if err != nil {
		return err
	}
	load := b.imageModules()
	if b.config.Zram != "" {
		_ = load("zram") // Zram reports that it is missing
		n, err := disks.Linux{Say: b.say("disks")}.Zram(b.config.Zram, memory.Total)
		if err != nil {
			b.warn("disks", fmt.Errorf("zram: %w; going on without", err))
		} else {
			b.con.Printf("disks", "zram: swap of %d MB before compression", n>>20)
		}
	}
	for _, d := range b.config.Disks {
		for _, p := range d.Partitions {
			if p.Kind() != pools.Swap {
				_ = load("fs-" + string(p.Kind())) // as above: mount reports it
			}
		}
	}
	done, warnings, err := b.storage.Prepare(ctx, b.config.Disks)
	for _, line := range done {
		b.con.Printf("disks", "%s", line)
	}
	for _, w := range warnings {
		b.warn("disks", w)
	}
	return err
}

// limitTmpfs limits the file systems in RAM that the config and the image have.
func (b *boot) limitTmpfs(context.Context) error {
	memory, err := rootfs.RAM()
	if err == nil {
		err = rootfs.LimitTmpfs("/", memory)
	}
	if err != nil {
		b.warn("config", fmt.Errorf("the sizes of tmpfs: %w", err))
	}
	return nil
}

// warn reports an error that does not end the boot.
func (b *boot) warn(topic string, err error) {
	b.con.Printf(topic, "warning: %v", err)
	b.rep.Fail(b.step, err)
}

// imageModules returns the function that loads a module of the image by name or alias. The
// image's own modprobe loads one that the kernel cannot decompress.
func (b *boot) imageModules() func(name string) error {
	mods, err := systemModules()
	if err != nil {
		b.con.Printf("modules", "%s; going on with what is loaded", strings.Replace(err.Error(), "the initrd", "the image", 1))
		mods = &kmod.Modules{}
	}
	mods.Insert = func(file, args string) error {
		err := kmod.Insert(file, args)
		if err == nil || strings.HasSuffix(file, ".ko") {
			return err
		}
		cmd := exec.Command("/sbin/modprobe", "-q", kmod.Name(file))
		cmd.Env = []string{"PATH=" + rootfs.SearchPath}
		return program.Run(context.Background(), cmd, func(line string) { b.con.Printf("modules", "modprobe: %s", line) })
	}
	return mods.Load
}
