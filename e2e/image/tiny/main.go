// Tiny is the whole system of a machine that shows that it came up: it says who
// it was told to be, takes its address, runs drover's agent, which reports that
// to the server, and idles.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"drover/node/nic"
	"drover/pools"
)

// note is a file that the config gives the machine.
const note = "/etc/tiny.note"

func main() {
	if err := run(); err != nil {
		say("error: %v", err)
	}
	say("done")
	for {
		_ = unix.Pause() // a first process must not end
	}
}

func say(format string, args ...any) { fmt.Printf("tiny: "+format+"\n", args...) }

func run() error {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err
	}
	say("host %s", unix.ByteSliceToString(u.Nodename[:]))
	say("kernel %s on %s", unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Machine[:]))
	text, err := os.ReadFile(note)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // not every config gives one
		return err
	}
	say("note %s", bytes.TrimSpace(text))
	say("lockdown %s", lockdown())
	text, err = argument("drover.mac")
	if err != nil {
		return err
	}
	mac, err := net.ParseMAC(string(text))
	if err != nil {
		return err
	}
	take := lease
	if text, _ = argument("drover.url"); bytes.HasPrefix(text, []byte("http://[")) { // chains have a URL
		take = lease6
	}
	card, address, err := take(mac)
	if err != nil {
		return fmt.Errorf("card %s: %w", mac, err)
	}
	say("card %s %s has %s", card, mac, address)
	if err := sayDisks(); err != nil {
		return err
	}
	agent := exec.Command("/run/drover/drover-init", "agent")
	agent.Stdout, agent.Stderr = os.Stdout, os.Stderr
	return agent.Run()
}

// sayDisks prints the file systems and swap that the machine has beside those of the
// kernel. It counts the boots in a file on each.
func sayDisks() error {
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return err
	}
	for line := range bytes.Lines(mounts) {
		f := bytes.Fields(line)
		if len(f) < 3 || !bytes.HasPrefix(f[1], []byte("/var/")) && !bytes.HasPrefix(f[1], []byte("/srv/")) {
			continue
		}
		name := string(f[1]) + "/marker"
		marker, err := os.ReadFile(name)
		if err != nil {
			marker = []byte("none")
		}
		say("mount %s %s %s with marker %s", f[1], f[2], f[0], marker)
		if err := os.WriteFile(name, []byte{'1'}, 0o644); err != nil {
			return err
		}
	}
	swaps, err := os.ReadFile("/proc/swaps")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for line := range bytes.Lines(swaps) {
		if bytes.HasPrefix(line, []byte("/")) {
			say("swap %s", bytes.Fields(line)[0])
		}
	}
	unix.Sync()
	return nil
}

// lockdown tells how far the kernel keeps root out of itself: under Secure Boot
// it does.
func lockdown() string {
	const dir = "/sys/kernel/security"
	_ = unix.Mount("securityfs", dir, "securityfs", 0, "") // then there is no file
	b, err := os.ReadFile(dir + "/lockdown")
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(b))
}

// argument reads an argument of the kernel command line.
func argument(name string) ([]byte, error) {
	line, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return nil, err
	}
	for word := range bytes.FieldsSeq(line) {
		if value, ok := bytes.CutPrefix(word, []byte(name+"=")); ok {
			return value, nil
		}
	}
	return nil, fmt.Errorf("no %s on the kernel command line", name)
}

// lease takes the address that DHCP has for a card.
func lease(mac net.HardwareAddr) (card string, address *net.IPNet, err error) {
	links, err := netlink.LinkList()
	if err != nil {
		return "", nil, err
	}
	for _, l := range links {
		if !bytes.Equal(l.Attrs().HardwareAddr, mac) {
			continue
		}
		if err := netlink.LinkSetUp(l); err != nil {
			return "", nil, err
		}
		card = l.Attrs().Name
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		c, err := nclient4.New(card, nclient4.WithRetry(20))
		if err != nil {
			return "", nil, err
		}
		defer c.Close()
		got, err := c.Request(ctx)
		if err != nil {
			return "", nil, err
		}
		address = &net.IPNet{IP: got.ACK.YourIPAddr, Mask: got.ACK.SubnetMask()}
		return card, address, netlink.AddrReplace(l, &netlink.Addr{IPNet: address})
	}
	return "", nil, errors.New("there is no such card")
}

// lease6 takes the address that DHCPv6 has for a card, as drover-init does.
func lease6(mac net.HardwareAddr) (card string, address *net.IPNet, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	n, err := nic.Find(ctx, pools.MAC(mac), func() {}, say)
	if err != nil {
		return "", nil, err
	}
	base, err := argument("drover.url")
	if err != nil {
		return "", nil, err
	}
	u, err := url.Parse(string(base))
	if err != nil {
		return "", nil, err
	}
	n.Server = u.Hostname()
	if err := n.Up(ctx); err != nil {
		return "", nil, err
	}
	if err := n.Connect(ctx); err != nil {
		return "", nil, err
	}
	a := n.Lease.Address
	return n.Name, &net.IPNet{IP: a.Addr().AsSlice(), Mask: net.CIDRMask(a.Bits(), 128)}, nil
}
