package parts

import (
	"os"
	"os/exec"
	"slices"
	"strings"
)

// A Need is something that a Debian package brings.
type Need struct {
	// Name is a program to be found in PATH, or the absolute path of a file.
	Name string
	// Package is the Debian package that has it.
	Package string
}

// Needs returns what this package, and whoever makes a squashfs of the node
// image, runs beside the Go tools.
func Needs() []Need {
	return []Need{
		{"buildah", "buildah"},
		{"mmdebstrap", "mmdebstrap"},
		{"tar2sqfs", "squashfs-tools-ng"},
	}
}

// Missing returns the Debian packages that bring those of [Needs] and of more
// that are not there, sorted; nil when nothing is missing:
//
//	if p := parts.Missing(); p != nil {
//		return fmt.Errorf("please run: apt-get install %s", strings.Join(p, " "))
//	}
func Missing(more ...Need) []string {
	var packages []string
	for _, n := range append(Needs(), more...) {
		if !n.met() {
			packages = append(packages, n.Package)
		}
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}

// sbin is where Debian keeps programs that a plain user's PATH leaves out.
const sbin = "/usr/local/sbin:/usr/sbin:/sbin"

func (n Need) met() bool {
	if strings.HasPrefix(n.Name, "/") {
		_, err := os.Stat(n.Name)
		return err == nil
	}
	if _, err := exec.LookPath(n.Name); err == nil {
		return true
	}
	for dir := range strings.SplitSeq(sbin, ":") {
		if _, err := exec.LookPath(dir + "/" + n.Name); err == nil {
			return true
		}
	}
	return false
}
