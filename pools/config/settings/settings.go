// Package settings checks the settings of a tag that are for the operating system of its
// nodes: files, units, scripts, accounts, network.
//
// It does not know lines and files of the config, and what a node does with a setting.
package settings

import (
	"maps"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"drover/pools"
	"drover/pools/config/mistake"
	"drover/pools/crontab"
	"drover/pools/option"
)

// maxFile bounds a file, unit or script, in bytes; a node keeps all of it in RAM.
const maxFile = 1 << 20

// Checker checks tags. Its patterns are compiled once for each check of a config.
type Checker struct {
	sysctl, module, unit, zone, name, owner, variable, device, label, disk *regexp.Regexp
}

// New returns a Checker.
func New() *Checker {
	return &Checker{
		sysctl:   regexp.MustCompile(`^[a-z0-9_]+([./][A-Za-z0-9_*:@-]+)+$`),
		module:   regexp.MustCompile(`^[A-Za-z0-9_-]+$`),
		unit:     regexp.MustCompile(`^[A-Za-z0-9:_.@\\-]+\.(service|socket|target|mount|automount|swap|path|timer|slice)$`),
		zone:     regexp.MustCompile(`^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+){0,2}$`),
		name:     regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`),
		owner:    regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?$`),
		variable: regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`),
		device:   regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,14}$`),  // dev_valid_name of Linux: no ":", and neither . nor ..
		label:    regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?$`), // XFS takes 12 bytes
		disk:     regexp.MustCompile(`^/dev/[A-Za-z0-9*]{1,31}$`),
	}
}

// checking is the check of one tag. fail gets each mistake with the field that it is in.
type checking struct {
	checker *Checker
	fail    func(field string, err error)
}

// Check calls fail with each mistake in the settings, and the field below the tag that it
// is in: "files./etc/motd". The errors have hints.
func (k *Checker) Check(t pools.Tag, fail func(field string, err error)) {
	c := checking{k, func(field string, err error) {
		if err != nil {
			fail(field, err)
		}
	}}
	c.system(t)
	c.mounts(t.Mounts.Items)
	c.disks(t)
	c.names(t)
	c.accounts(t)
	c.files(t.Files)
	c.units(t)
	c.scripts(t.Scripts)
	c.network(t.Network)
}

func (c checking) system(t pools.Tag) {
	for _, m := range t.Modules.Items {
		if !c.checker.module.MatchString(m) {
			c.fail("modules", pools.Hint("names only: br_netfilter", "%q is not the name of a kernel module", m))
		}
	}
	if t.Timezone != "" && !c.checker.zone.MatchString(t.Timezone) {
		c.fail("timezone", pools.Hint("write Europe/Prague or UTC", "%q is not a time zone", t.Timezone))
	}
	for _, key := range keys(t.Sysctls) {
		at := "sysctls." + key
		if !c.checker.sysctl.MatchString(key) {
			c.fail(at, pools.Hint("write net.ipv4.ip_forward", "%q is not the name of a sysctl", key))
		}
		c.fail(at, oneLine("sysctl "+key, t.Sysctls[key]))
	}
	for i, line := range t.Cron.Items {
		_, err := crontab.Parse(line)
		c.fail(index("cron", i), within("cron", err))
	}
	if s := t.DebugShell; s != "" {
		c.fail("debugShell", oneOf("debugShell", s, pools.ShellNever, pools.ShellOnFailure, pools.ShellAlways))
	}
}

func (c checking) mounts(all []pools.Mount) {
	for i, m := range all {
		at := index("mounts", i)
		c.fail(at, within("mount", absPath(m.Path)))
		if m.Type == "" {
			c.fail(at, pools.Hint("type: tmpfs", "mount %s has no type", m.Path))
		}
		for _, v := range []string{m.Path, m.Type, m.Source, m.Options} {
			if strings.ContainsAny(v, " \t\r\n") {
				c.fail(at, pools.Hint("fstab has no way to write it", "mount %s: %q has white space", m.Path, v))
			}
		}
	}
}

// names checks host names, name servers and the variables of the operator.
func (c checking) names(t pools.Tag) {
	for _, name := range keys(t.Hosts) {
		at, what := "hosts."+name, "host "+strconv.Quote(name)
		if !option.IsDomain(name) || strings.HasSuffix(name, ".") {
			c.fail(at, pools.Hint("write api.example.org: 10.28.0.9", "%s is not a host name", what))
		}
		if len(t.Hosts[name]) == 0 {
			c.fail(at, pools.Hint("api.example.org: 10.28.0.9", "%s has no address", what))
		}
		for _, a := range t.Hosts[name] {
			if ip, err := netip.ParseAddr(a); err != nil || ip.Zone() != "" || ip.IsUnspecified() {
				c.fail(at, pools.Hint("write api.example.org: 10.28.0.9", "%s: %q is not the address of a host", what, a))
			}
		}
	}
	for i, a := range t.DNS.Items {
		if a.IsValid() && (a.Zone() != "" || a.IsUnspecified() || a.IsMulticast()) { // an invalid one was reported
			c.fail(index("dns", i), pools.Hint("dns: [10.28.0.1]", "%s is not the address of a name server", a))
		}
	}
	for i, d := range t.Search.Items {
		if !option.IsDomain(d) {
			c.fail(index("search", i), pools.Hint("search: [example.org]", "%q is not a domain name", d))
		}
	}
	for _, name := range keys(t.Env) {
		at := "env." + name
		switch {
		case !c.checker.variable.MatchString(name):
			c.fail(at, pools.Hint("use letters, digits and '_'", "%q is not the name of a variable", name))
		case strings.HasPrefix(name, "DROVER_"), slices.Contains([]string{"PATH", "HOME", "IFS", "ENV", "BASH_ENV"}, name):
			c.fail(at, pools.Hint("use a name of your own", "variable %s is set by drover or the shell", name))
		}
		c.fail(at, oneLine("variable "+name, t.Env[name]))
	}
}

// accounts checks the settings for root's logins. Errors do not quote secrets.
func (c checking) accounts(t pools.Tag) {
	for i, k := range t.SSHAuthorizedKeys.Items {
		c.fail(index("sshAuthorizedKeys", i), sshKey(k))
	}
	const field = "rootPasswordHash"
	s := t.RootPasswordHash
	c.fail(field, within(field, CheckReference(s.Reference)))
	if s.Text != "" && !pools.IsPasswordHash(s.Text) {
		c.fail(field, pools.Hint("write the output of mkpasswd, such as $6$..., or * for no password", "rootPasswordHash is not a hash of crypt(5)"))
	}
}

// sshKey checks an authorized_keys line: options are not supported.
func sshKey(line string) error {
	f := strings.Fields(line)
	if strings.ContainsAny(line, "\r\n") || len(f) < 2 {
		return pools.Hint("one line: ssh-ed25519 AAAA... comment", "an SSH key has a type and a key in one line")
	}
	for _, prefix := range []string{"ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-"} {
		if strings.HasPrefix(f[0], prefix) {
			return nil
		}
	}
	return pools.Hint("one line: ssh-ed25519 AAAA... comment", "%q is not a type of SSH key", f[0])
}

// absPath checks the path of a file or mount on the node.
func absPath(p string) error {
	switch {
	case !path.IsAbs(p):
		return pools.Hint("start it with /", "path %q is not absolute", p)
	case path.Clean(p) != p || p == "/":
		return pools.Hint("no trailing /, no . or ..", "path %q is not clean", p)
	case strings.ContainsFunc(p, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return pools.Hint("remove them", "path %q has control characters", p)
	}
	return nil
}

func oneLine(what, v string) error {
	if strings.ContainsAny(v, "\r\n\x00") {
		return pools.Hint("write it in one line", "%s has a line break in its value", what)
	}
	return nil
}

func oneOf[T ~string](what string, got T, known ...T) error {
	if slices.Contains(known, got) {
		return nil
	}
	var names []string
	for _, k := range known {
		names = append(names, string(k))
	}
	return pools.Hint(mistake.Hint(string(got), names, "known: "+strings.Join(names, ", ")), "unknown %s %q", what, got)
}

// within puts what in front of the text of an error, and keeps its hint.
func within(what string, err error) error {
	if err == nil {
		return nil
	}
	msg, hint := mistake.Explain(what, err)
	return &pools.HintError{Msg: msg, Hint: hint}
}

func index(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
