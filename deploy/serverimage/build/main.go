// Build writes the container image of drover's server as an OCI archive; package
// serverimage describes it.
//
//	go run ./deploy/serverimage/build -o FILE [-name NAME] [-images DIR] [-loaders DIR] [-notices FILE] ARCH=PROGRAM...
//
// The image has the root certificates of this host: they are Debian's, of its package ca-certificates.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"drover/deploy/serverimage"
	"drover/internal/atomicfile"
	"drover/pools"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	c := serverimage.Config{Programs: map[string]string{}}
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	out := flags.String("o", "drover-image.tar", "the archive")
	flags.StringVar(&c.Name, "name", "localhost/drover:"+pools.Version, "name and tag of the image")
	flags.StringVar(&c.Images, "images", "", "directory of node images that go into the image")
	flags.StringVar(&c.Loaders, "loaders", "", "directory of loaders that go into the image")
	flags.StringVar(&c.Authorities, "authorities", "/etc/ssl/certs/ca-certificates.crt", "root certificates, PEM: of the package ca-certificates")
	flags.StringVar(&c.Notices, "notices", "", "file with the licences of what was linked into the programs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for _, arg := range flags.Args() {
		arch, program, ok := strings.Cut(arg, "=")
		if !ok || c.Programs[arch] != "" {
			return fmt.Errorf("%q: want ARCH=PROGRAM, once for each architecture", arg)
		}
		c.Programs[arch] = program
	}
	if err := os.MkdirAll(filepath.Dir(*out), 0o755); err != nil {
		return err
	}
	return atomicfile.Create(*out, 0o644, func(f *os.File) error { return serverimage.Write(f, c) })
}
