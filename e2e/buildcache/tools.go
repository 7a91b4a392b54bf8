package buildcache

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// toolsPackages are the Debian packages with the programs of kube-proxy and flannel, and
// with a shell that copies a file.
var toolsPackages = []string{"iptables", "nftables", "iproute2", "busybox-static"}

const toolsTar = "tools.tar"

// tools returns the part with a tar of these packages and their dependencies. They are
// unpacked but not installed: 50 MB, where a system has 150.
func tools(log io.Writer) part {
	args := []string{"--mode=root", "--variant=extract", "--include=" + strings.Join(toolsPackages, ","), "bookworm"}
	return part{kind: "tools", key: hashOf(args...), make: func(ctx context.Context, dir string) error {
		return timed(log, "tools", func() error {
			return run(command(ctx, "mmdebstrap", append(args, filepath.Join(dir, toolsTar))...), io.Discard)
		})
	}}
}

// toolsLinks are the links to the programs, which Debian's maintainer scripts would make.
var toolsLinks = map[string]string{
	"bin/sh":                     "busybox",
	"bin/cp":                     "busybox",
	"usr/sbin/iptables":          "xtables-nft-multi",
	"usr/sbin/iptables-save":     "xtables-nft-multi",
	"usr/sbin/iptables-restore":  "xtables-nft-multi",
	"usr/sbin/ip6tables":         "xtables-nft-multi",
	"usr/sbin/ip6tables-save":    "xtables-nft-multi",
	"usr/sbin/ip6tables-restore": "xtables-nft-multi",
}

// toolsLayer writes a layer with the programs, libraries and tables of a tar of packages,
// and with links to the programs.
func toolsLayer(t *tar.Writer, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	seen := map[string]bool{}
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		plain := tar.Header{Typeflag: h.Typeflag, Name: path.Clean(h.Name), Linkname: h.Linkname, Mode: h.Mode, Size: h.Size}
		switch h.Typeflag {
		case tar.TypeReg, tar.TypeSymlink, tar.TypeDir:
		case tar.TypeLink:
			plain.Linkname = path.Clean(h.Linkname)
		default:
			continue
		}
		if !wanted(plain.Name) {
			continue
		}
		seen[plain.Name] = true
		if err := t.WriteHeader(&plain); err != nil {
			return err
		}
		if _, err := io.Copy(t, r); err != nil {
			return err
		}
	}
	return linkTools(t, seen)
}

// linkTools writes the links into a layer that has the given files.
func linkTools(t *tar.Writer, seen map[string]bool) error {
	for _, name := range slices.Sorted(maps.Keys(toolsLinks)) {
		target := path.Join(path.Dir(name), toolsLinks[name])
		if seen[name] || !seen[target] {
			return fmt.Errorf("cannot link %s: it is there (%t), or %s is not", name, seen[name], target)
		}
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: toolsLinks[name], Mode: 0o777}); err != nil {
			return err
		}
	}
	return nil
}

// wanted reports whether a program in a container may need a file.
func wanted(name string) bool {
	for _, no := range []string{"/gconv/", "/locale/", "/systemd/", "/apt/", "/dpkg/"} {
		if strings.Contains("/"+name+"/", no) {
			return false
		}
	}
	for _, yes := range []string{"bin", "sbin", "lib", "lib64", "usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "etc/iproute2", "etc/protocols", "etc/services"} {
		if name == yes || strings.HasPrefix(name, yes+"/") {
			return true
		}
	}
	return false
}
