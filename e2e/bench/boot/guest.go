package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"drover/e2e/bench/stats"
	"drover/e2e/lab"
)

// Boot is one way of a machine from power-on to multi-user.
type Boot struct {
	Seconds float64 `json:"seconds"` // on the host's clock, from power-on
	Kernel  float64 `json:"kernel"`  // of these, until the kernel started: firmware, loader, download of kernel and initrd
	Init    float64 `json:"init"`    // until the root's init was started
	Root    float64 `json:"root"`    // until that printed its first message
	Fetched float64 `json:"fetched"` // MB received by the machine's network card
	Used    float64 `json:"used"`    // MB of RAM that are not available at multi-user
	Host    float64 `json:"host"`    // processor seconds of the virtual machine
}

// swift returns the time of a boot without the part from the start of the root's init to
// its first message. With live-boot on this emulator that part is 14 to 32 s of processor
// time, for an unknown reason; drover must be faster without it too.
func (b Boot) swift() float64 { return b.Seconds - (b.Root - b.Init) }

// stack is a way to boot a machine.
type stack struct {
	name   string
	router bool // no program of the stack answers iPXE's router solicitations: the bench does
	start  func(context.Context, *lab.Rack) (stop func() error, err error)
}

const (
	bootServer = "10.77.0.1"
	bootMAC    = "52:54:00:77:01:01"
	bootIP     = "10.77.0.21"
	bootSubnet = "10.77.0.0/24"
	bootAPI    = "127.0.0.1:8443"

	// bootPatience is the time limit of a boot on a busy host.
	bootPatience = 10 * time.Minute
)

// upUnit prints the time of multi-user and the free RAM on the console. Both roots have it.
const upUnit = `[Unit]
Description=Tells that multi-user is reached
DefaultDependencies=no
After=multi-user.target
[Service]
Type=oneshot
StandardOutput=tty
TTYPath=/dev/console
ExecStart=/bin/sh -c 'read up rest </proc/uptime; while read key value unit; do case $$key in MemTotal:) total=$$value;; MemAvailable:) free=$$value;; esac; done </proc/meminfo; echo; echo "bench-up $$up $$total $$free kB"'
[Install]
WantedBy=multi-user.target
`

// kernelArgs are the kernel arguments of both stacks. They turn off the import of container
// images, which the node image of the lab does at each boot.
const kernelArgs = "console=ttyS0,115200 no_timer_check systemd.mask=drover-images.service"

var (
	lineUp     = regexp.MustCompile(`bench-up [0-9.]+ ([0-9]+) ([0-9]+) kB`) // with its end: an incomplete line does not match
	lineKernel = regexp.MustCompile(`Linux version `)
	lineInit   = regexp.MustCompile(`Not activating Mandatory Access Control`) // Debian's kernel says so when /sbin/init is started
	lineRoot   = regexp.MustCompile(`systemd\[1\]: systemd [0-9]+.* running in system mode`)
)

// measureBoot boots a machine from each stack in turn.
func (b *bench) measureBoot(ctx context.Context, r *Report) (err error) {
	initrds, err := b.initrds(ctx)
	if err != nil {
		return err
	}
	r.Initrd = &initrds
	hand, err := b.handStack(initrds)
	if err != nil {
		return err
	}
	rack, err := lab.Open("drover-bench-boot", filepath.Join(b.dir, "rack"), netip.MustParsePrefix(bootServer+"/24"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rack.Close()) }()
	r.Boots = map[string][]Boot{}
	for round := range b.boots {
		for _, s := range []stack{b.droverStack(), hand} {
			b.say("boot %d of %d by %s; load average of the host %s", round+1, b.boots, s.name, stats.LoadAverage())
			boot, err := b.boot(ctx, rack, s, fmt.Sprintf("%s-%d", s.name, round+1))
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			b.say("  %.1f s: kernel after %.1f, init after %.1f, systemd after %.1f; %.0f MB fetched, %.0f MB RAM used, %.1f s of processor time",
				boot.Seconds, boot.Kernel, boot.Init, boot.Root, boot.Fetched, boot.Used, boot.Host)
			r.Boots[s.name] = append(r.Boots[s.name], boot)
		}
	}
	return nil
}

// boot boots one machine.
func (b *bench) boot(ctx context.Context, rack *lab.Rack, s stack, name string) (boot Boot, err error) {
	ctx, cancel := context.WithTimeout(ctx, bootPatience)
	defer cancel()
	stop, err := s.start(ctx, rack)
	if err != nil {
		return boot, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if s.router {
		router, failed := startRouter(ctx, rack)
		if failed != nil {
			return boot, failed
		}
		defer func() { err = errors.Join(err, router.stop()) }()
	}
	g, err := rack.PowerOn(lab.Machine{
		Name: name, NICs: []lab.NIC{{MAC: bootMAC, Boot: true}}, Memory: b.memory, CPUs: b.cpus, CPU: b.cpu,
	})
	if err != nil {
		return boot, err
	}
	defer func() { err = errors.Join(err, g.PowerOff()) }()
	since := func() float64 { return time.Since(g.Started).Seconds() }
	for _, step := range []struct {
		line *regexp.Regexp
		at   *float64
	}{{lineKernel, &boot.Kernel}, {lineInit, &boot.Init}, {lineRoot, &boot.Root}} {
		if _, err := g.WaitConsole(ctx, step.line); err != nil {
			return boot, tellConsole(err, g)
		}
		*step.at = since()
	}
	line, err := g.WaitConsole(ctx, lineUp)
	if err != nil {
		return boot, tellConsole(err, g)
	}
	boot.Seconds = since()
	if boot.Used, err = usedRAM(line); err != nil {
		return boot, err
	}
	fetched, err := rack.Sent(g.Taps[0])
	boot.Fetched = float64(fetched) / 1e6
	run, rerr := stats.RunTime(g.Pid())
	boot.Host = run.Seconds()
	return boot, errors.Join(err, rerr)
}

// usedRAM returns the used RAM from the line of upUnit, in MB.
func usedRAM(line string) (float64, error) {
	m := lineUp.FindStringSubmatch(line)
	if m == nil {
		return 0, fmt.Errorf("the console says %q", line)
	}
	total, terr := strconv.ParseFloat(m[1], 64)
	free, ferr := strconv.ParseFloat(m[2], 64)
	return (total - free) * 1024 / 1e6, errors.Join(terr, ferr)
}

// tellConsole adds the last lines of the console to an error.
func tellConsole(err error, g *lab.Guest) error {
	for _, line := range g.Tail(15) {
		err = fmt.Errorf("%w\n%s", err, line)
	}
	return err
}
