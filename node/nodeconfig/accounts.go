package nodeconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"drover/pools"
)

// owner is the user and the group of a file by number: root's, unless set.
type owner struct{ user, group int }

// owner finds "user" or "user:group" of the image, by name or number. Without a group it is
// the user's own.
func (a *Applier) owner(s string) (owner, error) {
	user, group, hasGroup := strings.Cut(s, ":")
	var o owner
	fields, err := a.account("/etc/passwd", user)
	switch {
	case err != nil:
		return o, err
	case fields == nil: // a number that the image does not know
		o.user, _ = strconv.Atoi(user)
		o.group = o.user
	case len(fields) < 4:
		return o, fmt.Errorf("user %q: its line in the image's /etc/passwd is broken", user)
	default:
		o.user, _ = strconv.Atoi(fields[2])
		o.group, _ = strconv.Atoi(fields[3])
	}
	if !hasGroup {
		return o, nil
	}
	if fields, err = a.account("/etc/group", group); err != nil {
		return o, err
	}
	if fields == nil {
		o.group, _ = strconv.Atoi(group)
	} else {
		o.group, _ = strconv.Atoi(fields[2])
	}
	return o, nil
}

// account returns the line of a name or number in passwd(5) or group(5); nil for a number
// that has none.
func (a *Applier) account(file, name string) ([]string, error) {
	b, err := os.ReadFile(a.path(file))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	_, notNumber := strconv.ParseUint(name, 10, 31)
	for line := range strings.Lines(string(b)) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) < 3 {
			continue
		}
		if _, err := strconv.ParseUint(fields[2], 10, 32); err != nil {
			continue
		}
		if fields[0] == name || notNumber == nil && fields[2] == name {
			return fields, nil
		}
	}
	if notNumber == nil {
		return nil, nil
	}
	return nil, fmt.Errorf("owner %q is not in the image's %s", name, file)
}

// password sets the hash of root's password in shadow(5).
func (a *Applier) password(id Identity) error {
	const file = "/etc/shadow"
	if id.RootPasswordHash == "" {
		return nil
	}
	if !pools.IsPasswordHash(id.RootPasswordHash) {
		return errors.New("rootPasswordHash is not a hash of crypt(5)")
	}
	path, mode, own := a.path(file), os.FileMode(0o600), owner{}
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var s unix.Stat_t
	if err == nil {
		if err := unix.Stat(path, &s); err != nil {
			return err
		}
		mode, own = os.FileMode(s.Mode&0o777), owner{int(s.Uid), int(s.Gid)}
	}
	// The date of the last change is a day of the past: 0 would ask for another password.
	line := []string{"root", id.RootPasswordHash, "1", "0", "99999", "7", "", "", ""}
	var out strings.Builder
	found := false
	for old := range strings.Lines(string(b)) {
		fields := strings.Split(strings.TrimRight(old, "\n"), ":")
		if fields[0] == "root" && len(fields) == len(line) {
			found = true
			fields[1] = id.RootPasswordHash
			if fields[2] == "0" || fields[2] == "" {
				fields[2] = "1"
			}
			old = strings.Join(fields, ":") + "\n"
		}
		out.WriteString(old)
	}
	if !found {
		out.WriteString(strings.Join(line, ":") + "\n")
	}
	return writeFile(path, []byte(out.String()), mode, own)
}
