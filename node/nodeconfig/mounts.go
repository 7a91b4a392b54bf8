package nodeconfig

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"drover/internal/unitfile"
	"drover/pools"
)

// networkFS are file systems that wait for the network (systemd.mount(5)).
var networkFS = []string{"nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "9p"}

// deviceTimeout is the time that systemd waits for a disk. Its own default is 90 s.
const deviceTimeout = "10s"

// Device returns the device node of a mount of a disk; "" for other mounts.
func Device(m pools.Mount) string {
	if strings.HasPrefix(m.Source, "/dev/") {
		return m.Source
	}
	for key, dir := range map[string]string{"LABEL": "by-label", "UUID": "by-uuid", "PARTLABEL": "by-partlabel", "PARTUUID": "by-partuuid"} {
		if name, ok := strings.CutPrefix(m.Source, key+"="); ok {
			return "/dev/disk/" + dir + "/" + strings.Trim(name, `"`)
		}
	}
	return ""
}

// IsOptional reports whether a node runs without the mount.
func IsOptional(m pools.Mount) bool {
	return slices.Contains(strings.Split(m.Options, ","), "nofail")
}

// mounts writes a unit for each mount and makes its directory. Units in /etc take
// precedence over those of the image for the same path; lines in /etc/fstab do not. As
// with fstab, a mount that fails stops the start, unless it is "nofail" or a disk: without
// its disk a node starts, so that its agent can report that.
func (a *Applier) mounts(id Identity) error {
	var errs []error
	for _, m := range id.Mounts {
		if err := a.mount(m); err != nil {
			errs = append(errs, fmt.Errorf("mount %q: %w", m.Path, err))
		}
	}
	return errors.Join(errs...)
}

func (a *Applier) mount(m pools.Mount) error {
	if err := checkPath(m.Path); err != nil {
		return err
	}
	source := cmp.Or(m.Source, m.Type)
	if m.Type == "" || strings.ContainsAny(m.Type+m.Options, " \t") {
		return fmt.Errorf("type %q and options %q must be one word each", m.Type, m.Options)
	}
	if err := checkLines([]string{m.Path, source, m.Type, m.Options}); err != nil {
		return err
	}
	target, dir := "local-fs.target", ".requires"
	if slices.Contains(networkFS, m.Type) || slices.Contains(strings.Split(m.Options, ","), "_netdev") {
		target = "remote-fs.target"
	}
	if IsOptional(m) || Device(m) != "" {
		dir = ".wants"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by drover-init from the node's config.\n[Unit]\n")
	if !IsOptional(m) {
		fmt.Fprintf(&b, "Before=%s\n", target)
	}
	fmt.Fprintf(&b, "\n[Mount]\nWhat=%s\nWhere=%s\nType=%s\n", noSpecifiers(source), noSpecifiers(m.Path), noSpecifiers(m.Type))
	if m.Options != "" {
		fmt.Fprintf(&b, "Options=%s\n", noSpecifiers(m.Options))
	}
	name := escapeUnitPath(m.Path) + ".mount"
	path := "/etc/systemd/system/" + name
	return errors.Join(
		os.MkdirAll(a.path(m.Path), 0o755),
		a.write(path, b.String()),
		Symlink(path, a.path("/etc/systemd/system/"+target+dir+"/"+name)),
		a.disk(m, name))
}

// disk writes the time that systemd waits for the disk of a mount, and for an optional one
// a service that mounts a tmpfs in its place: containerd cannot work on the root, which is
// an overlay itself.
func (a *Applier) disk(m pools.Mount, unit string) error {
	device := Device(m)
	if device == "" {
		return nil
	}
	timeout := deviceTimeout
	for option := range strings.SplitSeq(m.Options, ",") {
		if t, ok := strings.CutPrefix(option, "x-systemd.device-timeout="); ok {
			timeout = noSpecifiers(t)
		}
	}
	err := a.write("/etc/systemd/system/"+escapeUnitPath(device)+".device.d/50-drover.conf", "# Written by drover-init.\n[Unit]\nJobRunningTimeoutSec="+timeout+"\n")
	if err != nil || !IsOptional(m) {
		return err
	}
	name := "drover-tmpfs-" + escapeUnitPath(m.Path) + ".service"
	err = a.write("/etc/systemd/system/"+name, `# Written by drover-init: a tmpfs in place of a disk that is not there.
[Unit]
DefaultDependencies=no
After=`+unit+`
Before=local-fs.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'mountpoint -q "$$0" || mount -t tmpfs -o mode=0755 drover-tmpfs "$$0"' `+unitfile.Quote(m.Path)+`

[Install]
WantedBy=local-fs.target
`)
	return errors.Join(err, a.enable(name, map[string]bool{}))
}

// noSpecifiers escapes the character that begins a specifier of systemd.
func noSpecifiers(s string) string { return strings.ReplaceAll(s, "%", "%%") }
