package nodeconfig

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// unitDirs are the directories of units, in systemd's order.
var unitDirs = []string{"/etc/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"}

// unitTypes are the suffixes of units that a config may name.
var unitTypes = []string{".service", ".socket", ".timer", ".mount", ".automount", ".target", ".path", ".slice", ".swap"}

// units writes the units, then enables those with enable: true. The [Install] section
// may be in a unit's own file, in a drop-in, or in the image.
func (a *Applier) units(id Identity) error {
	var errs []error
	names := slices.Sorted(maps.Keys(id.Units))
	for _, name := range names {
		err := checkUnit(name)
		if u := id.Units[name]; err == nil && u.Content != "" {
			err = a.write("/etc/systemd/system/"+name, u.Content)
		}
		errs = append(errs, err)
	}
	for _, name := range names {
		if id.Units[name].Enable && checkUnit(name) == nil {
			errs = append(errs, a.enable(name, map[string]bool{}))
		}
	}
	return errors.Join(errs...)
}

// masks makes units that nothing starts. A mask takes the place of a unit in the image; a
// unit of the operator takes the place of its mask.
func (a *Applier) masks(id Identity) error {
	var errs []error
	for _, name := range id.MaskUnits {
		err := checkUnit(name)
		if err == nil {
			err = Symlink("/dev/null", a.path("/etc/systemd/system/"+name))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func checkUnit(name string) error {
	ok := slices.Contains(unitTypes, filepath.Ext(name)) && len(name) < 256
	for _, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		ok = ok && (letter || strings.IndexByte(`:-_.\@`, c) >= 0)
	}
	if !ok || name[0] == '.' {
		return fmt.Errorf("%q is not the name of a systemd unit", name)
	}
	return nil
}

// enable makes the links of the [Install] section, as systemctl enable does, without a
// running systemd. The map seen ends cycles of Also=.
func (a *Applier) enable(name string, seen map[string]bool) error {
	if seen[name] {
		return nil
	}
	seen[name] = true
	path, content, err := a.findUnit(name)
	if err != nil {
		return err
	}
	install := installSection(content)
	if len(install) == 0 {
		a.Warn("unit %q has no [Install] section: nothing starts it", name)
		return nil
	}
	var errs []error
	for key, values := range install {
		for _, v := range values {
			v = expandUnit(v, name)
			if err := checkUnit(v); err != nil {
				errs = append(errs, fmt.Errorf("unit %q: %s=: %w", name, key, err))
				continue
			}
			switch key {
			case "WantedBy", "RequiredBy", "UpheldBy":
				dir := map[string]string{"WantedBy": ".wants", "RequiredBy": ".requires", "UpheldBy": ".upholds"}[key]
				errs = append(errs, Symlink(path, a.path("/etc/systemd/system/"+v+dir+"/"+name)))
			case "Alias":
				errs = append(errs, Symlink(path, a.path("/etc/systemd/system/"+v)))
			case "Also":
				errs = append(errs, a.enable(v, seen))
			}
		}
	}
	return errors.Join(errs...)
}

// findUnit returns the path of a unit in the running system, and its text. For an instance
// (name@x.service) it returns the template (name@.service).
func (a *Applier) findUnit(name string) (path, content string, err error) {
	names := []string{name}
	if template := unitTemplate(name); template != "" {
		names = append(names, template)
	}
	for _, n := range names {
		for _, dir := range unitDirs {
			path := filepath.Join(dir, n)
			if target, err := os.Readlink(a.path(path)); err == nil && target == "/dev/null" {
				return "", "", fmt.Errorf("unit %q is masked in the image", name)
			}
			b, err := os.ReadFile(a.path(path))
			if err == nil {
				return path, string(b), nil
			}
		}
	}
	return "", "", fmt.Errorf("unit %q is neither in the config nor in the image", name)
}

// unitTemplate returns the template of an instance; "" for other units.
func unitTemplate(name string) string {
	prefix, rest, ok := strings.Cut(name, "@")
	if ok && !strings.HasPrefix(rest, ".") {
		return prefix + "@" + filepath.Ext(name)
	}
	return ""
}

// installSection reads the [Install] section of a unit (systemd.syntax(7)). An empty value
// removes the values before it.
func installSection(content string) map[string][]string {
	install := map[string][]string{}
	in := false
	content = strings.ReplaceAll(content, "\\\n", " ")
	for line := range strings.SplitSeq(content, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			in = line == "[Install]"
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !in || !ok || line[0] == '#' || line[0] == ';' {
			continue
		}
		key = strings.TrimSpace(key)
		if values := strings.Fields(value); len(values) > 0 {
			install[key] = append(install[key], values...)
		} else {
			delete(install, key)
		}
	}
	return install
}

// expandUnit replaces the specifiers that are useful in an [Install] section.
func expandUnit(value, name string) string {
	stem := strings.TrimSuffix(name, filepath.Ext(name))
	prefix, instance, _ := strings.Cut(stem, "@")
	return strings.NewReplacer("%%", "%", "%i", instance, "%p", prefix, "%n", name, "%N", stem).Replace(value)
}

// escapeUnitPath escapes a path as systemd-escape --path does.
func escapeUnitPath(path string) string {
	var b strings.Builder
	for i, c := range []byte(strings.Trim(path, "/")) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		switch {
		case c == '/':
			b.WriteByte('-')
		case letter, c == ':', c == '_', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}

// The files that the agent's unit needs; they are in RAM.
const (
	StateFile    = "/run/drover/boot.json"
	AgentProgram = "/run/drover/drover-init"
)

// ExitFinal is the exit status of an agent that systemd does not start again: EX_CONFIG of
// sysexits.h.
const ExitFinal = 78

// agentUnit writes the unit of the agent. It is a oneshot that lasts until the node has
// joined: "systemctl status drover-agent" shows where a node hangs. Its output is on
// the console too. systemd starts an agent again that was killed, for want of memory
// perhaps, and leaves it alone if that happens to kubeadm or a script. Restart= of a oneshot
// needs systemd 244.
func (a *Applier) agentUnit(Identity) error {
	unit := `# Written by drover-init.
[Unit]
Description=drover: run the online scripts and join the cluster
Wants=network-online.target
After=network-online.target containerd.service
ConditionPathExists=` + StateFile + `
StartLimitIntervalSec=0

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=` + AgentProgram + ` agent
Restart=on-failure
RestartSec=10
RestartPreventExitStatus=` + strconv.Itoa(ExitFinal) + `
OOMPolicy=continue
StandardOutput=journal+console
StandardError=inherit
TimeoutStartSec=infinity

[Install]
WantedBy=multi-user.target
`
	if err := a.write("/etc/systemd/system/drover-agent.service", unit); err != nil {
		return err
	}
	return a.enable("drover-agent.service", map[string]bool{})
}
