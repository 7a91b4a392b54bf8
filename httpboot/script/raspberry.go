package script

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"strings"

	"drover/pools"
)

// Names that a Raspberry Pi 4 or 5 requests. Its boot loader puts a directory before them,
// the serial number by default, or the MAC (TFTP_PREFIX). If that directory has no file
// to start with, the board asks without it.
const (
	piConfig      = "config.txt"
	piCommandLine = "cmdline.txt"
	piFiles       = "drover"       // directory of kernel and initrd, by the names in config.txt
	piCommon      = "raspberry-pi" // directory of loaders that all boards have in common
)

// raspberryPi opens a file of a Raspberry Pi that the directory of loaders does not have
// under the requested name: one that is made from the machine's Plan, or one that all
// boards have in common. ok is false if the name is not one of a Raspberry Pi.
func (f *Files) raspberryPi(c *client, name string) (opened content, ok bool, err error) {
	dir, file, isBoard := strings.Cut(name, "/")
	if isBoard = isBoard && isBoardDir(dir); !isBoard {
		file = name
	}
	switch file {
	case piConfig:
		opened, err = f.piConfig(c)
	case piCommandLine:
		opened, err = f.piCommandLine(c)
	case path.Join(piFiles, kernelFile), path.Join(piFiles, initrdFile):
		opened, err = f.piImage(c, path.Base(file))
	default:
		if !isBoard {
			return nil, false, nil
		}
		opened, err = f.piLoader(file)
	}
	return opened, true, err
}

// isBoardDir reports whether a directory is that of one board: 8 hex digits of a serial
// number, or a MAC.
func isBoardDir(dir string) bool {
	_, err := pools.ParseMAC(dir)
	return err == nil || isHex(strings.ToLower(dir), 8, 8)
}

// piLoader opens a file that all boards have in common. A board tries many names, and
// needs few of them.
func (f *Files) piLoader(file string) (content, error) {
	opened, size, err := f.r.loader(path.Join(piCommon, file))
	if errors.Is(err, fs.ErrNotExist) && !strings.HasPrefix(file, "start") {
		err = optional{err}
	}
	return diskFile(opened, size, err)
}

// piScript returns the data of a machine's scripts. The boot loader of a Raspberry Pi has
// no way to show a problem: it gets an error, and asks again.
func (f *Files) piScript(c *client) (script, error) {
	if err := c.known(); err != nil {
		return script{}, err
	}
	s := script{Plan: c.Plan, files: files{Kernel: path.Join(piFiles, kernelFile), Initrd: path.Join(piFiles, initrdFile)}}
	if s.Local() {
		return s, forbidden("node %s boots from its local disk, for this boot", c.Plan.Node)
	}
	return s, nil
}

// piConfig writes config.txt, which names the files to load.
func (f *Files) piConfig(c *client) (content, error) {
	s, err := f.piScript(c)
	if err != nil {
		return nil, err
	}
	return f.r.file("boot."+string(raspberryPi)+".tmpl", s)
}

// piCommandLine begins a boot, and writes its kernel command line.
func (f *Files) piCommandLine(c *client) (content, error) {
	if err := c.known(); err != nil {
		return nil, err
	}
	s := f.begin(c.Plan)
	if err := f.r.write(s, raspberryPi); err != nil {
		return nil, &Error{Msg: s.Problem, Err: err}
	}
	if _, err := f.piScript(c); err != nil { // after write, which takes the next boot
		return nil, err
	}
	return bootScript{text{bytes.NewReader([]byte(s.Args + "\n"))}, s.begins()}, nil
}

// piImage opens kernel or initrd of the boot that cmdline.txt began. Lines of config.txt
// have 98 characters, too few for the names of other boot programs.
func (f *Files) piImage(c *client, file string) (content, error) {
	if err := c.known(); err != nil {
		return nil, err
	}
	img, ok := f.r.issued.image(c.Plan)
	if !ok {
		var err error
		if img, err = f.r.imageOf(c.Plan); err != nil {
			return nil, &Error{Msg: "no image for this machine, see the server's log", Err: err}
		}
	}
	return f.image(c, path.Join(img.Name, img.Generation, file))
}
