// Package ifname predicts the name that udev of the root image will give to a network
// card: systemd.net-naming-scheme(7) and systemd.link(5). In drover-init a card has the
// kernel's name, eth0, and scripts that configure the network of the running system need
// that system's, such as eno1.
//
//	p := &ifname.Predictor{Root: "/", Builtin: ifname.Udevadm, CommandLine: line}
//	name, err := p.Name(ctx, "eth0", mac)
//
// It renames nothing.
package ifname

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Predictor predicts names for one root.
type Predictor struct {
	Root        string // with /etc, /usr and /sys
	CommandLine string // of the kernel
	// Builtin runs a builtin of udev, net_id or path_id, for a device of /sys, and returns
	// its output.
	Builtin func(ctx context.Context, builtin, syspath string) ([]byte, error)
}

// udevadm are the paths of udev's program. Process 1 has no PATH.
var udevadm = []string{"/usr/bin/udevadm", "/bin/udevadm", "/usr/sbin/udevadm", "/sbin/udevadm"}

// Udevadm runs a builtin with the udevadm of the root directory.
func Udevadm(ctx context.Context, builtin, syspath string) ([]byte, error) {
	i := slices.IndexFunc(udevadm, func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.Mode().IsRegular()
	})
	if i < 0 {
		return nil, &exec.Error{Name: "udevadm", Err: exec.ErrNotFound}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, udevadm[i], "test-builtin", builtin, syspath)
	cmd.WaitDelay = time.Second
	return cmd.Output()
}

// card is a network card with its properties in udev.
type card struct {
	name  string
	mac   net.HardwareAddr
	props map[string]string
	sys   string
	root  string
}

// Name returns the name that the card, which has the kernel's name old, will have. It
// returns old with an error if udev of the root cannot be asked.
func (p *Predictor) Name(ctx context.Context, old string, mac net.HardwareAddr) (string, error) {
	c := &card{name: old, mac: mac, props: map[string]string{}, sys: "/sys/class/net/" + old, root: p.Root}
	for _, builtin := range []string{"path_id", "net_id"} {
		out, err := p.Builtin(ctx, builtin, c.sys)
		if errors.Is(err, exec.ErrNotFound) {
			return old, fmt.Errorf("the image has no udevadm: %w", err)
		}
		for line := range strings.Lines(string(out)) { // of a card without a path path_id is an error
			if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
				c.props[key] = value
			}
		}
		if err != nil && builtin == "net_id" && len(c.props) == 0 {
			return old, fmt.Errorf("udevadm test-builtin %s: %w", builtin, err)
		}
	}
	policies := !slices.Contains(strings.Fields(p.CommandLine), "net.ifnames=0")
	for _, file := range p.linkFiles() {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // udev cannot read it either
		}
		if l := readLink(string(b)); l.matches(c) {
			return l.nameOf(c, policies), nil
		}
	}
	return old, nil
}

// linkDirs are the directories of .link files in systemd's order.
var linkDirs = []string{"/etc/systemd/network", "/run/systemd/network", "/usr/local/lib/systemd/network", "/usr/lib/systemd/network", "/lib/systemd/network"}

// linkFiles returns the .link files in the order in which udev tries them. Of files with
// one name the first directory's counts.
func (p *Predictor) linkFiles() []string {
	byName := map[string]string{}
	for _, dir := range linkDirs {
		found, _ := filepath.Glob(filepath.Join(p.Root, dir, "*.link")) // the pattern is right
		for _, file := range found {
			if _, has := byName[filepath.Base(file)]; !has {
				byName[filepath.Base(file)] = file
			}
		}
	}
	var files []string
	for _, file := range byName {
		files = append(files, file)
	}
	slices.SortFunc(files, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })
	return files
}

// link is a .link file: values by key.
type link struct{ match, set map[string][]string }

// readLink reads a .link file. A key that is set again appends; an empty value removes the
// values before it.
func readLink(text string) link {
	l := link{map[string][]string{}, map[string][]string{}}
	var section map[string][]string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line == "[Match]":
			section = l.match
		case line == "[Link]":
			section = l.set
		case line[0] == '[':
			section = nil
		case section != nil:
			key, value, _ := strings.Cut(line, "=")
			key = strings.TrimSpace(key)
			if section[key] = append(section[key], strings.Fields(value)...); strings.TrimSpace(value) == "" {
				delete(section, key)
			}
		}
	}
	return l
}

// matches reports whether all conditions fit. One that this package does not know does
// not; without any, udev ignores the file.
func (l link) matches(c *card) bool {
	for key, values := range l.match {
		if !c.fits(key, values) {
			return false
		}
	}
	return len(l.match) > 0
}

func (c *card) fits(key string, values []string) bool {
	switch key {
	case "MACAddress", "PermanentMACAddress":
		return slices.ContainsFunc(values, func(v string) bool {
			mac, err := net.ParseMAC(v)
			return err == nil && mac.String() == c.mac.String()
		})
	case "OriginalName":
		return matchAny(values, c.name)
	case "Path":
		return matchAny(values, c.props["ID_PATH"])
	case "Driver":
		driver, err := os.Readlink(filepath.Join(c.root, c.sys, "device/driver"))
		return err == nil && matchAny(values, filepath.Base(driver))
	case "Type":
		return matchAny(values, "ether")
	}
	return false
}

// matchAny reports whether a value is one of the globs; of those behind a "!", none.
func matchAny(globs []string, value string) bool {
	if rest, inverted := strings.CutPrefix(globs[0], "!"); inverted {
		return !matchAny(append([]string{rest}, globs[1:]...), value)
	}
	return value != "" && slices.ContainsFunc(globs, func(glob string) bool {
		ok, err := path.Match(glob, strings.ReplaceAll(value, "/", "-"))
		return ok && err == nil
	})
}

// policyProps are the properties that name policies take their names from.
var policyProps = map[string]string{
	"database": "ID_NET_NAME_FROM_DATABASE", "onboard": "ID_NET_NAME_ONBOARD",
	"slot": "ID_NET_NAME_SLOT", "path": "ID_NET_NAME_PATH", "mac": "ID_NET_NAME_MAC",
}

// nameOf returns the name that the file gives to the card.
func (l link) nameOf(c *card, policies bool) string {
	b, _ := os.ReadFile(filepath.Join(c.root, c.sys, "name_assign_type")) // an error: the driver does not say
	assigned := strings.TrimSpace(string(b))
	for _, policy := range l.set["NamePolicy"] {
		if !policies {
			break
		}
		switch {
		case policy == "kernel" && assigned == "2": // NET_NAME_PREDICTABLE
			return c.name
		case policy == "keep" && (assigned == "3" || assigned == "4"): // NET_NAME_USER, NET_NAME_RENAMED
			return c.name
		case c.props[policyProps[policy]] != "":
			return c.props[policyProps[policy]]
		}
	}
	if name := l.set["Name"]; len(name) > 0 {
		return name[0]
	}
	return c.name
}
