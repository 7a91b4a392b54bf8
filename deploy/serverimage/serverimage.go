// Package serverimage makes the container image of drover's server, without a container
// engine: an OCI archive for one or more architectures, which every engine imports and
// every registry takes.
//
// The image has the program, a user for it, the certificates of authorities that it knows other
// servers by, such as a provider of OpenID Connect, and the licences of what was linked into it;
// nothing else: no shell, no libraries, no ipmitool. On request it has node images and loaders,
// too, so that a farm is one image. The program has
// the two capabilities that it needs as file capabilities: Kubernetes can give a user who is
// not root no others. An engine that runs the image has to allow both (--cap-add), or the
// kernel refuses to start the program.
//
// Equal programs, files and folders give equal archives. The package does not compile anything.
package serverimage

import (
	"archive/tar"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"drover/deploy/oci"
)

// User is the user and the group of the server, by number.
const User = 65532

// Where the image has what is not the program's own.
const (
	Images  = "usr/share/drover/images"
	Loaders = "usr/share/drover/loaders"
)

// Config has the content of an image.
type Config struct {
	Name     string            // with registry and tag: "localhost/drover:0.1.0"
	Programs map[string]string // file of the program, by architecture ("amd64")
	Images   string            // drover's directory of images; default none
	Loaders  string            // drover's directory of loaders; default none

	Authorities string // file with root certificates, PEM; default none
	Notices     string // file with the licences of what was linked into the programs; default none
}

// Write writes the image as an archive.
func Write(w io.Writer, c Config) error {
	if !strings.Contains(c.Name, "/") || len(c.Programs) == 0 {
		return fmt.Errorf("image %q: want a name with a registry, as in localhost/drover:0.1.0, and a program", c.Name)
	}
	dir, err := os.MkdirTemp("", "drover-server-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := layout(dir, c); err != nil {
		return fmt.Errorf("image %q: %w", c.Name, err)
	}
	return oci.Archive(w, dir)
}

// layout writes the image into a folder.
func layout(dir string, c Config) error {
	l := oci.Layout{Dir: dir}
	var extra []oci.Blob
	for _, folder := range []struct{ name, from string }{{Loaders, c.Loaders}, {Images, c.Images}} {
		if folder.from == "" {
			continue
		}
		layer, err := l.Layer(func(t *tar.Writer) error { return addFolder(t, folder.name, folder.from) })
		if err != nil {
			return err
		}
		extra = append(extra, layer)
	}
	var images []oci.Image
	for _, arch := range slices.Sorted(maps.Keys(c.Programs)) {
		program, err := l.Layer(func(t *tar.Writer) error { return addServer(t, c, arch) })
		if err != nil {
			return err
		}
		images = append(images, oci.Image{
			Name: c.Name, Arch: arch, User: fmt.Sprintf("%d:%d", User, User),
			Layers:     append(slices.Clone(extra), program), // the programs change most often
			Entrypoint: []string{"/usr/bin/drover"}, Cmd: []string{"serve"},
		})
	}
	add := func() error { return l.AddIndex(c.Name, images...) }
	if len(images) == 1 { // engines import it whatever their architecture
		add = func() error { return l.Add(images[0]) }
	}
	return errors.Join(add(), l.Close())
}

// capabilities returns the extended attribute security.capability of a program that may
// bind ports below 1024 and send raw frames: struct vfs_cap_data of linux/capability.h,
// revision 2, with the flag that makes both effective.
func capabilities() string {
	const revision, effective = 0x02000000, 1
	return string(slices.Concat(
		binary.LittleEndian.AppendUint32(nil, revision|effective),
		binary.LittleEndian.AppendUint32(nil, 1<<unix.CAP_NET_BIND_SERVICE|1<<unix.CAP_NET_RAW), // permitted
		make([]byte, 12), // inheritable; capabilities above 31
	))
}

// authorities is where Go looks for root certificates, as Debian has them.
const authorities = "etc/ssl/certs/ca-certificates.crt"

// addServer writes the program for an architecture, and the files that it runs with.
func addServer(t *tar.Writer, c Config, arch string) error {
	for _, dir := range []tar.Header{
		{Name: "etc/", Mode: 0o755}, {Name: "etc/drover/", Mode: 0o755}, {Name: "etc/ssl/", Mode: 0o755}, {Name: "etc/ssl/certs/", Mode: 0o755},
		{Name: "tmp/", Mode: 0o1777}, {Name: "usr/", Mode: 0o755}, {Name: "usr/bin/", Mode: 0o755}, {Name: "usr/share/", Mode: 0o755},
		{Name: "usr/share/doc/", Mode: 0o755}, {Name: "usr/share/doc/drover/", Mode: 0o755},
		{Name: "var/", Mode: 0o755}, {Name: "var/lib/", Mode: 0o755}, {Name: "var/lib/drover/", Mode: 0o700, Uid: User, Gid: User},
	} {
		dir.Typeflag = tar.TypeDir
		if err := t.WriteHeader(&dir); err != nil {
			return err
		}
	}
	if err := addText(t, "etc/passwd", fmt.Sprintf("root:x:0:0::/:\ndrover:x:%d:%d::/var/lib/drover:\n", User, User)); err != nil {
		return err
	}
	if err := addText(t, "etc/group", fmt.Sprintf("root:x:0:\ndrover:x:%d:\n", User)); err != nil {
		return err
	}
	for _, f := range []struct{ name, from string }{{authorities, c.Authorities}, {"usr/share/doc/drover/third-party-notices", c.Notices}} {
		if f.from == "" {
			continue
		}
		text, err := os.ReadFile(f.from)
		if err == nil {
			err = addText(t, f.name, string(text))
		}
		if err != nil {
			return err
		}
	}
	program := c.Programs[arch]
	info, err := os.Stat(program)
	if err != nil {
		return err
	}
	err = t.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: "usr/bin/drover", Mode: 0o755, Size: info.Size(), Format: tar.FormatPAX,
		PAXRecords: map[string]string{"SCHILY.xattr.security.capability": capabilities()},
	})
	if err != nil {
		return err
	}
	return oci.AddFile(t, program)
}

func addText(t *tar.Writer, name, text string) error {
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
		return err
	}
	_, err := io.WriteString(t, text)
	return err
}

// addFolder writes what a folder holds, readable to all, without hidden files: those are
// locks and notes of the tools that made it.
func addFolder(t *tar.Writer, name, from string) error {
	return filepath.WalkDir(from, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		if rel != "." && strings.HasPrefix(d.Name(), ".") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return addEntry(t, path.Join(name, filepath.ToSlash(rel)), file, d)
	})
}

// addEntry writes a file, a folder or a link.
func addEntry(t *tar.Writer, name, file string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: info.Size(), Format: tar.FormatPAX}
	switch {
	case d.IsDir():
		h.Typeflag, h.Name, h.Mode, h.Size = tar.TypeDir, name+"/", 0o755, 0
	case d.Type() == fs.ModeSymlink:
		h.Typeflag, h.Size = tar.TypeSymlink, 0
		if h.Linkname, err = os.Readlink(file); err != nil {
			return err
		}
	case !d.Type().IsRegular():
		return fmt.Errorf("%s is no file, folder or link", file)
	}
	if err := t.WriteHeader(h); err != nil || h.Typeflag != tar.TypeReg {
		return err
	}
	return oci.AddFile(t, file)
}
