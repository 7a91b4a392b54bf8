package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/node/client"
	"drover/node/cmdline"
	"drover/node/fetch"
	"drover/node/report"
	"drover/node/retry"
	"drover/node/tftp"
	"drover/pools"
	"drover/pools/boots"
)

// leaseROM leases an address as a UEFI PXE ROM, and learns the loader.
func (m *machine) leaseROM(ctx context.Context) error {
	ack, err := m.lease(ctx, &m.swarm.clients.rom)
	if err != nil {
		return err
	}
	m.from, m.loader = ack.ServerIPAddr.String(), bootFile(ack)
	if m.loader == "" || ack.ServerIPAddr.IsUnspecified() {
		return fmt.Errorf("the ACK has loader %q at %s", m.loader, m.from)
	}
	return nil
}

// bootFile returns the boot file of an ACK: option 67, or the field.
func bootFile(ack *dhcpv4.DHCPv4) string {
	if name := ack.BootFileNameOption(); name != "" {
		return strings.TrimRight(name, "\x00")
	}
	return ack.BootFileName
}

// tftpStall is the time without a packet after which a ROM gives up.
const tftpStall = 15 * time.Second

// readLoader reads the loader by TFTP.
func (m *machine) readLoader(ctx context.Context) error {
	r, err := tftp.OpenFrom(ctx, &net.UDPAddr{IP: m.addr.AsSlice()}, net.JoinHostPort(m.from, "69"), m.loader, tftpStall)
	if err != nil {
		return err
	}
	defer r.Close()
	n, err := io.Copy(io.Discard, r)
	m.swarm.bytes.Add(n)
	if err == nil && n != loaderSize {
		err = fmt.Errorf("%s has %d bytes, want %d", m.loader, n, loaderSize)
	}
	return err
}

// leaseIPXE leases an address as iPXE, and learns the script.
func (m *machine) leaseIPXE(ctx context.Context) error {
	ack, err := m.lease(ctx, &m.swarm.clients.ipxe)
	if err != nil {
		return err
	}
	if m.script = bootFile(ack); !strings.HasPrefix(m.script, "http://") {
		return fmt.Errorf("the ACK has script %q", m.script)
	}
	return nil
}

var (
	kernelLine = regexp.MustCompile(`(?m)^kernel --name kernel .*$`)
	initrdLine = regexp.MustCompile(`(?m)^initrd --name initrd .*$`)
)

// readScript reads the boot script, and the command line in it as drover-init does.
func (m *machine) readScript(ctx context.Context) error {
	m.web = m.client(nil)
	text, _, err := m.get(ctx, m.script, 64<<10)
	if err != nil {
		return err
	}
	var args string
	m.kernel, args = tries(kernelLine.FindString(text), "kernel --name kernel ")
	m.initrd, _ = tries(initrdLine.FindString(text), "initrd --name initrd ")
	if m.kernel == nil || m.initrd == nil {
		return fmt.Errorf("the script boots nothing:\n%s", text)
	}
	m.args, err = cmdline.Parse(args)
	if err == nil && m.args.MAC != m.mac {
		err = violation{fmt.Errorf("the script is for %s", m.args.MAC)}
	}
	return err
}

// tries returns the URLs of a line of a script, "COMMAND URL ARGS || COMMAND URL ARGS || goto
// LABEL", and the arguments.
func tries(line, command string) (urls []string, args string) {
	for try := range strings.SplitSeq(line, " || ") {
		if rest, ok := strings.CutPrefix(try, command); ok {
			var url string
			url, args, _ = strings.Cut(rest, " ")
			urls = append(urls, url)
		}
	}
	return urls, args
}

func (m *machine) readKernel(ctx context.Context) error { return m.readFile(ctx, m.kernel, kernelSize) }
func (m *machine) readInitrd(ctx context.Context) error { return m.readFile(ctx, m.initrd, initrdSize) }

// readFile reads a file as iPXE does: whole, and once from each server until one has it.
func (m *machine) readFile(ctx context.Context, urls []string, size int64) error {
	var failed error
	for _, url := range urls {
		_, n, err := m.get(ctx, url, 0)
		if err == nil && n == size {
			return nil
		}
		failed = errors.Join(failed, err)
		if err == nil {
			failed = fmt.Errorf("%s has %d bytes, want %d", url, n, size)
		}
	}
	return failed
}

// fileLimit is the time limit of one file by HTTP, as of firmware.
const fileLimit = 2 * time.Minute

// get reads a file: the first keep bytes as a text, and the size.
func (m *machine) get(ctx context.Context, url string, keep int64) (text string, size int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, fileLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", 0, err
	}
	resp, err := m.web.Do(req)
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", 0, client.StatusError(resp)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, keep))
	if err != nil {
		return "", 0, err
	}
	n, err := io.Copy(io.Discard, resp.Body)
	return string(b), n + int64(len(b)), err
}

// leaseInit starts the kernel: drover-init leases an address, and begins to report.
func (m *machine) leaseInit(ctx context.Context) error {
	m.web.CloseIdleConnections()
	m.started = time.Now()
	if _, err := m.lease(ctx, &m.swarm.clients.init); err != nil {
		return err
	}
	m.web = m.client(m.args.Pin)
	m.srv = &client.Server{Base: m.args.URL, Secure: m.args.Secure, Also: m.args.Also, MAC: m.mac, Nonce: m.args.Nonce, Client: m.web}
	m.rep = &report.Reporter{
		Uptime: func() time.Duration { return time.Since(m.started) },
		Send:   m.srv.SendEvent,
		Notice: func(e boots.Event, err error) {
			m.swarm.note(m, fmt.Errorf("event %s: %w", e.Step, err))
			m.again("lost event")
		},
	}
	m.rep.Start(func(f func()) { f() })
	m.rep.Report(boots.StepInit, "a machine of the swarm")
	m.rep.Report(boots.StepNetwork, m.addr.String())
	return nil
}

// retrier counts failed tries.
func (m *machine) retrier(step boots.Step) retry.Retrier {
	return retry.Retrier{Notice: func(err error, _ time.Duration) {
		m.again(string(step))
		m.swarm.note(m, fmt.Errorf("%s: %w", step, err))
		m.rep.Fail(step, err)
	}}
}

// readImage fetches the root image in turn, and checks it.
func (m *machine) readImage(ctx context.Context) error {
	f := &fetch.Fetcher{
		Client: m.web, URL: m.srv.URL(m.args.Root), Also: m.srv.URLs(m.args.Root), Digest: m.args.Digest, Retry: m.retrier(boots.StepImage),
		Queued: func(int, time.Duration) { m.swarm.queued.Add(1) },
	}
	if f.FindChunks(ctx) != nil {
		m.again("digests of chunks")
	}
	f.Interval, f.Progress = 1, func(done, total int64, _ float64) {
		if done > total/2 {
			m.swarm.gate.pass(ctx, m.index, halfImage)
		}
	}
	path := filepath.Join(m.swarm.inside, fmt.Sprintf("root-%d", m.index))
	if _, err := f.Fetch(ctx, path); err != nil {
		return err
	}
	m.rep.Report(boots.StepImage, "sha256 is right")
	return os.Remove(path)
}

// configTry is the time limit of one config request.
const configTry = 30 * time.Second

// claim binds the boot to a new key, and opens the config that is sealed to it.
func (m *machine) claim(ctx context.Context) (err error) {
	if m.key, err = pools.NewKey(); err != nil {
		return err
	}
	m.config = pools.NodeConfig{}
	again := m.retrier(boots.StepConfig)
	err = again.Do(ctx, func(ctx context.Context) error {
		err := m.srv.Ask(ctx, "config", m.key, configTry, &m.config)
		if refused, ok := errors.AsType[client.Refused](err); ok {
			return retry.Final{Err: refused}
		}
		return err
	})
	if err != nil {
		return err
	}
	if want := fmt.Sprintf("n%d", m.index); m.swarm.declared(m.index) && m.config.Hostname != want {
		return violation{fmt.Errorf("the config is of %q, want %q", m.config.Hostname, want)}
	}
	m.srv.SignEvents(m.config.EventKey)
	for _, s := range []boots.Step{boots.StepConfig, boots.StepSwitch, boots.StepOnline} {
		m.rep.Report(s, "")
	}
	return nil
}

// flushLimit is the time limit of the events that wait at the end of a boot.
const flushLimit = time.Minute

// flush waits until the server has all events.
func (m *machine) flush(ctx context.Context) error {
	m.rep.Flush(ctx, flushLimit)
	unsent := m.rep.Stop()
	m.rep = nil
	if len(unsent) > 0 {
		return fmt.Errorf("%d events are not sent", len(unsent))
	}
	return nil
}
