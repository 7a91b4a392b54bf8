package bootfile

import (
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/imagebuild/loaders"
	"drover/imagebuild/media"
	"drover/pools/config"
)

// mediaOptions are the flags of drover media.
type mediaOptions struct {
	config, loaders, server string
	format                  string
	archs                   []string
}

func newMediaCommand() *cobra.Command {
	var o mediaOptions
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "media FILE",
		Short: "Write a boot medium for machines whose firmware cannot netboot",
		Long: `Media writes a small UEFI boot medium that does the work of PXE: it gets an
address by DHCP and loads the rest from this server. It is for machines whose
firmware cannot netboot, and for the virtual media of an iLO.

It holds shim and signed GRUB, as drover loaders install wrote them, so that it
boots with Secure Boot on as well, and a config that names the server. It holds no
secret and nothing of a node: one medium serves all machines.

  esp  a FAT32 file system alone, for a partition or a stick
  img  a disk with a GPT and that file system, for a USB stick
  iso  a CD, for virtual media`,
		Example: `  drover media boot.iso
  drover media --format img --arch x64 stick.img
  drover media --server 10.28.0.2 boot.iso         # without a config file`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			done, err := o.write(args[0])
			if err != nil {
				return err
			}
			return output.Print(cmd, done, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s: %s for %s, boots from %s\n", done.File, done.Format, strings.Join(done.Archs, " and "), done.Server)
				return err
			})
		},
	}
	cli.ConfigFlag(cmd, &o.config)
	f := cmd.Flags()
	f.StringVar(&o.loaders, "loaders", defaultLoaders, "directory of boot loaders")
	f.StringVar(&o.server, "server", "", "`address` of this server for the machines (default: server.address of the config)")
	f.StringVar(&o.format, "format", "", "esp|iso|img (default: the ending of FILE)")
	f.StringSliceVar(&o.archs, "arch", nil, "x64|arm64 (default: those with installed loaders)")
	_ = cmd.MarkFlagDirname("loaders")
	output.Flag(cmd, "text", "json", "yaml")
	return cmd
}

// written is a medium.
type written struct {
	File   string       `json:"file"`
	Format media.Format `json:"format"`
	Archs  []string     `json:"archs"`
	Server netip.Addr   `json:"server"`
}

// write makes the medium.
func (o *mediaOptions) write(name string) (written, error) {
	format, err := o.mediaFormat(name)
	if err != nil {
		return written{}, &cli.Error{Code: cli.Usage, Err: err}
	}
	server, err := o.address()
	if err != nil {
		return written{}, err
	}
	for _, arch := range o.archs {
		if !slices.Contains(media.Archs, arch) {
			return written{}, &cli.Error{Code: cli.Usage, Err: fmt.Errorf("--arch %q (want x64 or arm64)", arch)}
		}
	}
	root, err := loaders.Open(o.loaders)
	if err != nil {
		return written{}, err
	}
	defer root.Close()
	m, archs, err := media.New(root, o.archs, server)
	if err != nil {
		return written{}, err
	}
	if err := m.Write(name, format); err != nil {
		return written{}, err
	}
	return written{name, format, archs, server}, nil
}

func (o *mediaOptions) mediaFormat(name string) (media.Format, error) {
	word := cmp.Or(o.format, strings.TrimPrefix(strings.ToLower(filepath.Ext(name)), "."))
	if f := media.Format(word); slices.Contains(media.Formats, f) {
		return f, nil
	}
	if o.format == "" {
		return "", fmt.Errorf("%s: say with --format what it is to be: esp, iso or img", name)
	}
	return "", fmt.Errorf("--format %q (want esp, iso or img)", o.format)
}

// address returns the server's address for the machines.
func (o *mediaOptions) address() (netip.Addr, error) {
	if o.server != "" {
		a, err := netip.ParseAddr(o.server)
		if err != nil || !a.Is4() || a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() {
			return a, &cli.Error{Code: cli.Usage, Err: fmt.Errorf("--server %q is not an IPv4 address that machines could ask", o.server)}
		}
		return a, nil
	}
	farm, err := config.Load(o.config)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%w\nname the server with --server to do without the config", err)
	}
	switch a := farm.Address(); {
	case a.Is4():
		return a, nil
	case a.Is6():
		return a, fmt.Errorf("%s: this server has no IPv4 address, and boot media are for IPv4", o.config)
	}
	return netip.Addr{}, fmt.Errorf("%s: server.address is not set: name the server with --server", o.config)
}
