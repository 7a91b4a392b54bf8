package rootfs

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// percent is a size in the options of a mount unit, where a % is written twice.
var percent = regexp.MustCompile(`(^|,)size=([0-9]{1,3})%%?(,|$)`)

// LimitTmpfs makes the sizes of the tmpfs units of a root, which are parts of the whole
// RAM, the same parts of the RAM that is available beside the image. Together they would
// otherwise be larger than the RAM, and a full one would end in the out-of-memory killer.
func LimitTmpfs(root string, m Memory) error {
	var errs []error
	seen := map[string]bool{} // a unit in /etc replaces that of the same name
	for _, dir := range []string{"etc/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"} {
		units, _ := filepath.Glob(filepath.Join(root, dir, "*.mount")) // the pattern is good
		for _, unit := range units {
			if name := filepath.Base(unit); !seen[name] {
				seen[name] = true
				errs = append(errs, limitUnit(root, unit, m))
			}
		}
	}
	return errors.Join(errs...)
}

func limitUnit(root, unit string, m Memory) error {
	isTmpfs, options, err := readUnit(unit)
	if errors.Is(err, fs.ErrNotExist) { // a link to nowhere
		return nil
	}
	if err != nil {
		return err
	}
	found := percent.FindStringSubmatch(options)
	if !isTmpfs || found == nil {
		return nil
	}
	n, err := strconv.ParseInt(found[2], 10, 16)
	if err != nil {
		return err
	}
	options = percent.ReplaceAllString(options, fmt.Sprintf("${1}size=%d${3}", m.Available/100*min(n, 100)))
	file := filepath.Join(root, "etc/systemd/system", filepath.Base(unit)+".d", "50-drover-size.conf")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte("# Written by drover-init: a part of the RAM beside the image.\n[Mount]\nOptions="+options+"\n"), 0o644)
}

// readUnit returns the type and the options of a mount unit.
func readUnit(path string) (isTmpfs bool, options string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return false, "", err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		switch key, value, _ := strings.Cut(strings.TrimSpace(s.Text()), "="); strings.TrimSpace(key) {
		case "Type":
			isTmpfs = strings.TrimSpace(value) == "tmpfs"
		case "Options":
			options = strings.TrimSpace(value)
		}
	}
	return isTmpfs, options, s.Err()
}
