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
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
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
	mac, err := bootMAC()
	if err != nil {
		return err
	}
	card, address, err := lease(mac)
	if err != nil {
		return fmt.Errorf("card %s: %w", mac, err)
	}
	say("card %s %s has %s", card, mac, address)
	agent := exec.Command("/run/drover/drover-init", "agent")
	agent.Stdout, agent.Stderr = os.Stdout, os.Stderr
	return agent.Run()
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

// bootMAC reads which card the machine booted from.
func bootMAC() (net.HardwareAddr, error) {
	line, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return nil, err
	}
	for word := range strings.FieldsSeq(string(line)) {
		if mac, ok := strings.CutPrefix(word, "drover.mac="); ok {
			return net.ParseMAC(mac)
		}
	}
	return nil, errors.New("no drover.mac on the kernel command line")
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
