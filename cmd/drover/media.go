package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/imagebuild"
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
	cmd := &cobra.Command{
		Use:   "media FILE",
		Short: "Write a boot medium for machines whose firmware cannot netboot",
		Long: `Media writes a small UEFI boot medium that does what firmware's PXE would: it
gets an address by DHCP and goes on with this server. It is for machines whose
firmware cannot netboot, and for the virtual media of an iLO.

On it are shim and signed GRUB, as drover loaders install put them there, so that
it boots with Secure Boot on as well, and a config that names the server. It holds
no secret and nothing of a node: one medium does for all.

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
			fmt.Fprintln(cmd.OutOrStdout(), done)
			return nil
		},
	}
	cli.ConfigFlag(cmd, &o.config)
	f := cmd.Flags()
	f.StringVar(&o.loaders, "loaders", defaultLoaders, "directory of boot loaders")
	f.StringVar(&o.server, "server", "", "`address` of this server for the machines (default: server.address of the config)")
	f.StringVar(&o.format, "format", "", "esp|iso|img (default: what the name of FILE ends in)")
	f.StringSliceVar(&o.archs, "arch", nil, "x64|arm64 (default: those that there are loaders of)")
	_ = cmd.MarkFlagDirname("loaders")
	return cmd
}

// mediaArch are the files of an architecture: shim under the name that firmware
// looks for on a medium, the others under those that shim asks for.
type mediaArch struct {
	name  string
	files map[string]string // path on the medium: loader
}

func mediaArchs() []mediaArch {
	of := func(arch, suffix string) mediaArch {
		return mediaArch{arch, map[string]string{
			"EFI/BOOT/BOOT" + strings.ToUpper(suffix) + ".EFI": "shim" + suffix + ".efi",
			"EFI/BOOT/grub" + suffix + ".efi":                  "grub" + suffix + ".efi",
			"EFI/BOOT/mm" + suffix + ".efi":                    "mm" + suffix + ".efi",
		}}
	}
	return []mediaArch{of("x64", "x64"), of("arm64", "aa64")}
}

// write makes the medium and says what it made.
func (o *mediaOptions) write(name string) (string, error) {
	format, err := o.mediaFormat(name)
	if err != nil {
		return "", &cli.Error{Code: cli.Usage, Err: err}
	}
	server, err := o.address()
	if err != nil {
		return "", err
	}
	files, archs, err := o.loaderFiles()
	if err != nil {
		return "", err
	}
	if files["grub/grub.cfg"], err = mediaConfig(server); err != nil {
		return "", err
	}
	m := imagebuild.Media{Files: files, Label: "DROVER"}
	if err := m.Write(name, format); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: %s for %s, boots from %s", name, format, strings.Join(archs, " and "), server), nil
}

func (o *mediaOptions) mediaFormat(name string) (imagebuild.MediaFormat, error) {
	word := o.format
	if word == "" {
		word = strings.TrimPrefix(strings.ToLower(filepath.Ext(name)), ".")
	}
	if f := imagebuild.MediaFormat(word); slices.Contains(imagebuild.MediaFormats, f) {
		return f, nil
	}
	if o.format == "" {
		return "", fmt.Errorf("%s: say with --format what it is to be: esp, iso or img", name)
	}
	return "", fmt.Errorf("--format %q (want esp, iso or img)", o.format)
}

// address is what machines know this server by.
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
	if a := farm.Address(); a.IsValid() {
		return a, nil
	}
	return netip.Addr{}, fmt.Errorf("%s: server.address is not set: name the server with --server", o.config)
}

// loaderFiles reads the loaders of the architectures that are wanted, or of those
// that are there.
func (o *mediaOptions) loaderFiles() (files map[string][]byte, archs []string, err error) {
	root, err := openLoaders(o.loaders)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	for _, name := range o.archs {
		if !slices.ContainsFunc(mediaArchs(), func(a mediaArch) bool { return a.name == name }) {
			return nil, nil, &cli.Error{Code: cli.Usage, Err: fmt.Errorf("--arch %q (want x64 or arm64)", name)}
		}
	}
	files = map[string][]byte{}
	var missing []error
	for _, a := range mediaArchs() {
		if o.archs != nil && !slices.Contains(o.archs, a.name) {
			continue
		}
		if err := a.read(root, files); err != nil {
			missing = append(missing, err)
			continue
		}
		archs = append(archs, a.name)
	}
	// Of those that were asked for none may be missing, else one does.
	if len(archs) == 0 || len(missing) > 0 && o.archs != nil {
		return nil, nil, fmt.Errorf("%s: %w\nget them with: apt-get install shim-signed grub-efi-amd64-signed && drover loaders install",
			o.loaders, errors.Join(missing...))
	}
	return files, archs, nil
}

// read adds the files of an architecture. MokManager is for people at the
// console and may be missing.
func (a mediaArch) read(root *os.Root, files map[string][]byte) error {
	found := map[string][]byte{}
	for name, loader := range a.files {
		content, err := root.ReadFile(loader)
		switch {
		case errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(loader, "mm"):
		case err != nil:
			return fmt.Errorf("no loader for %s: %w", a.name, err)
		default:
			found[name] = content
		}
	}
	maps.Copy(files, found)
	return nil
}

//go:embed media.grub.tmpl
var mediaTemplate string

// mediaConfig is the config of GRUB on the medium.
func mediaConfig(server netip.Addr) ([]byte, error) {
	t, err := template.New("media.grub.tmpl").Parse(mediaTemplate)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, struct{ Server netip.Addr }{server})
	return b.Bytes(), err
}
