package doctor

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"drover/imagebuild"
	"drover/internal/atomicfile"
	"drover/pools"
	"drover/pools/resolve"
	"drover/server/certificate"
)

// loaderFiles checks that there are loaders for the images of pools.
func (d *doctor) loaderFiles() {
	images, platforms := imagebuild.Open(d.images), map[string]bool{}
	for _, p := range d.farm.Config.Pools {
		if p.Image == "" {
			continue
		}
		image, _ := lookup(images, p.Image) // imageFiles reports a missing one
		platforms[image.Platform] = true
	}
	missing := 0
	for _, f := range resolve.NeedLoaders(platforms) {
		if _, err := os.Stat(filepath.Join(d.loaders, f.Loader())); err != nil {
			missing++
			how := fault
			if f == pools.UEFIarm64 { // U-Boot needs none
				how = warning
			}
			d.add("loaders", how, fmt.Sprintf("for %s: %v", f, err), "drover loaders install")
		}
	}
	if missing == 0 {
		d.add("loaders", ok, d.loaders, "")
	}
}

// lookup returns the generation of a reference. Only the running server knows what a channel has, and
// reports one that is not there: here any generation of the image will do.
func lookup(images *imagebuild.Dir, ref string) (imagebuild.Image, error) {
	name, channel, _ := pools.SplitImage(ref)
	if all, err := images.Generations(name); channel != "" && len(all) > 0 {
		return all[0], err
	}
	if channel != "" {
		ref = name
	}
	return images.Lookup(ref)
}

// imageFiles checks the images of pools.
func (d *doctor) imageFiles() {
	images, seen := imagebuild.Open(d.images), map[string]bool{}
	for _, p := range d.farm.Config.Pools {
		if p.Image == "" || seen[p.Image] {
			continue
		}
		seen[p.Image] = true
		i, err := lookup(images, p.Image)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			d.add("images", fault, fmt.Sprintf("pool %s: %v", p.Name, err), "drover image build --name "+pools.ImageName(p.Image))
		case err != nil:
			d.add("images", fault, fmt.Sprintf("pool %s: %v", p.Name, err), "build it again: drover image build --name "+pools.ImageName(p.Image))
		default:
			d.whole(&i)
		}
	}
}

// whole checks that the files of an image have their sizes.
func (d *doctor) whole(i *imagebuild.Image) {
	for name, f := range i.Files {
		info, err := os.Stat(filepath.Join(i.Path, name))
		if err == nil && info.Size() != f.Size {
			err = fmt.Errorf("%s has %d bytes, and should have %d", name, info.Size(), f.Size)
		}
		if err != nil {
			d.add("images", fault, fmt.Sprintf("image %s is damaged: %v", i.Name, err), "build it again: drover image build --name "+i.Name)
			return
		}
	}
	d.add("images", ok, i.Name+" is there", "")
}

// soon is the time before the end of a certificate from which on doctor warns.
const soon = 30 * 24 * time.Hour

// ends reports the end of a credential.
func (d *doctor) ends(check, what string, end time.Time, remedy string) {
	switch left := end.Sub(d.now()); {
	case left <= 0:
		d.add(check, fault, fmt.Sprintf("%s ended at %s", what, end.UTC().Format(time.DateTime)), remedy)
	case left < soon:
		d.add(check, warning, fmt.Sprintf("%s ends at %s", what, end.UTC().Format(time.DateTime)), remedy)
	default:
		d.add(check, ok, fmt.Sprintf("%s ends at %s", what, end.UTC().Format(time.DateTime)), "")
	}
}

// maxFile bounds the files that doctor reads, in bytes.
const maxFile = 1 << 20

// certificates checks the certificates of the listeners.
func (d *doctor) certificates() {
	cfg := d.farm.Config.Server
	switch t := cfg.APITLS; {
	case t == nil:
	case t.SelfSigned:
		d.ownAuthority()
	default:
		d.certificate("server.apiTLS", d.farm.Path(t.Cert))
	}
	if t := cfg.NodeTLS; t != nil {
		d.certificate("server.nodeTLS", d.farm.Path(t.Cert))
	}
}

// certificate checks a file with the certificate of a listener.
func (d *doctor) certificate(name, file string) {
	data, err := atomicfile.Read(file, maxFile)
	var c *x509.Certificate
	if err == nil {
		c, err = certificate.ParseCert(data)
	}
	if err != nil {
		d.add("certificates", fault, fmt.Sprintf("%s: %v", name, err), "put a certificate there")
		return
	}
	d.ends("certificates", fmt.Sprintf("%s: %s with pin %s", name, file, certificate.Pin(c)), c.NotAfter, "renew it, and put it in its place")
}

// ownAuthority checks the authority that drover makes for the certificate of its API.
func (d *doctor) ownAuthority() {
	file := filepath.Join(d.state, certificate.OwnCert)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		d.add("certificates", ok, "server.apiTLS: the first start makes its authority", "")
		return
	}
	d.certificate("server.apiTLS", file)
}

// stateDirectory checks that the files of the state belong to its owner, and that secrets
// are for the owner alone.
func (d *doctor) stateDirectory() {
	info, err := os.Stat(d.state)
	if errors.Is(err, fs.ErrNotExist) {
		d.add("state", ok, d.state+" does not exist yet: the first start makes it", "")
		return
	}
	if err != nil {
		d.add("state", fault, err.Error(), "let the user of the server enter it")
		return
	}
	owner := ownerOf(info)
	entries, err := os.ReadDir(d.state)
	if err != nil {
		d.add("state", skipped, err.Error(), "run drover doctor as root")
		return
	}
	good := true
	if err := atomicfile.CheckDirectory(d.state); err != nil {
		good = false
		d.add("state", fault, err.Error(), "chmod go-w "+d.state)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // it has gone
		}
		path := filepath.Join(d.state, e.Name())
		if ownerOf(info) != owner && !e.IsDir() {
			good = false
			d.add("state", fault, fmt.Sprintf("%s belongs to user %d, and the directory to %d", path, ownerOf(info), owner), fmt.Sprintf("chown --reference=%s %s", d.state, path))
		}
		if secret := e.Name() == "api.token" || filepath.Ext(e.Name()) == ".key"; secret && info.Mode().Perm()&0o077 != 0 {
			good = false
			d.add("state", fault, fmt.Sprintf("%s is a secret that others can read (mode %s)", path, info.Mode()), "chmod 600 "+path)
		}
	}
	if good {
		d.add("state", ok, d.state, "")
	}
}

func ownerOf(info fs.FileInfo) uint32 {
	if s, isStat := info.Sys().(*syscall.Stat_t); isStat {
		return s.Uid
	}
	return 0
}

// The least room on a disk: with less, the state and the next image do not fit.
const (
	leastBytes  = 256 << 20
	leastInodes = 1000
)

// disks checks the room on the disks of the server's directories.
func (d *doctor) disks() {
	for _, dir := range []string{d.state, d.images, d.loaders} {
		var s unix.Statfs_t
		if err := unix.Statfs(dir, &s); err == nil { // other checks report what is missing
			d.disk(dir, &s)
		}
	}
}

// disk checks the room on the disk of one directory.
func (d *doctor) disk(dir string, s *unix.Statfs_t) {
	room := s.Bavail * uint64(s.Bsize)
	switch {
	case s.Flags&unix.ST_RDONLY != 0 && dir == d.state:
		d.add("disk", fault, dir+" is on a file system that is mounted read-only", "mount it with -o remount,rw, after a look at the kernel's log")
	case room < leastBytes:
		d.add("disk", fault, fmt.Sprintf("%s has room for %d MB", dir, room>>20), "make room; drover image list shows the generations of images")
	case s.Files > 0 && s.Ffree < leastInodes:
		d.add("disk", fault, fmt.Sprintf("%s has room for %d files", dir, s.Ffree), "remove small files, or make a file system with more inodes")
	default:
		d.add("disk", ok, fmt.Sprintf("%s has room for %d MB", dir, room>>20), "")
	}
}

// firstYear is before any year in which this program runs.
const firstYear = 2026

// clock checks the time: tokens and certificates of clusters are of minutes.
func (d *doctor) clock() {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	d.clockAt(d.now(), err == nil && state == unix.TIME_ERROR)
}

// clockAt checks a time, of a clock that nothing may keep right.
func (d *doctor) clockAt(now time.Time, free bool) {
	const remedy = "run chrony or systemd-timesyncd: timedatectl set-ntp true"
	switch {
	case now.Year() < firstYear:
		d.add("clock", fault, "the clock says "+now.UTC().Format(time.DateTime), "set it, and "+remedy)
	case free:
		d.add("clock", warning, "nothing keeps the clock right: the kernel calls it unsynchronized", remedy)
	default:
		d.add("clock", ok, "it is synchronized", "")
	}
}
