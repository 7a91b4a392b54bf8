package bootfile

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/imagebuild"
	"drover/imagebuild/loaders"
	"drover/pools/resolve"
)

const defaultLoaders = cli.DefaultState + "/loaders"

func newLoadersCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "loaders",
		Short: "Install and list the boot loaders that firmware is given",
		Long: `Loaders are files in one directory, which TFTP and HTTP serve: iPXE for each
kind of firmware, and shim with signed GRUB for machines with Secure Boot.
Install takes them from the packages on this host, or from a directory.`,
	}
	cmd.PersistentFlags().StringVar(&dir, "loaders", defaultLoaders, "directory of boot loaders")
	_ = cmd.MarkPersistentFlagDirname("loaders")
	return cli.Group(cmd, newLoadersInstallCommand(&dir), newLoadersListCommand(&dir))
}

func newLoadersInstallCommand(dir *string) *cobra.Command {
	var in loaders.Installer
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Copy boot loaders from this host's packages, or from a directory",
		Long: `Install looks for every loader that drover knows where the packages of Debian
and Ubuntu keep it, and copies what is there. The table names the
packages of the others.

With --from it searches below a directory instead: one that packages were unpacked
into (dpkg-deb --extract FILE DIR, for another architecture), the src directory
of an iPXE that was built, or one that holds the files under the names that
firmware asks for.

Each file is checked to be a program for its architecture, and replaced in one
step: a machine that is loading it gets the old one or the new one. A file that
install did not put there, or that has been changed since, is kept; --force
replaces it.`,
		Example: `  apt-get install ipxe shim-signed grub-efi-amd64-signed && drover loaders install
  drover loaders install --from ipxe/src --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			in.Dir = *dir
			done, err := in.Install(cmd.Context())
			if done == nil {
				return err
			}
			if err == nil && !slices.ContainsFunc(done, func(l loaders.Installed) bool { return l.Action != loaders.ActionMissing }) {
				err = fmt.Errorf("no loader found below %s: install the package ipxe, or name a directory with --from", in.From)
			}
			return errors.Join(err, output.Print(cmd, done, func(w io.Writer) error { return printInstalled(w, done) }))
		},
	}
	f := cmd.Flags()
	f.StringVar(&in.From, "from", "/", "directory to look below")
	f.BoolVar(&in.DryRun, "dry-run", false, "only show what would be done")
	f.BoolVar(&in.Force, "force", false, "also replace files that install did not put there")
	_ = cmd.MarkFlagDirname("from")
	output.Flag(cmd, "text", "json", "yaml")
	cli.OnHost(cmd, "name a directory with --loaders", "loaders")
	return cmd
}

func newLoadersListCommand(dir *string) *cobra.Command {
	var output cli.Output
	var images string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the installed boot loaders",
		Long: `List shows each file of the directory of loaders: its firmware, its version if
known, whether it carries a signature for Secure Boot, its digest and its source.
It names a missing loader if machines need it to boot an image of this host: those of
x86-64, those of arm64, or both. Without images it names those of x86-64.`,
		Example: "  drover loaders list\n  drover loaders list -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := loaders.List(*dir)
			if list == nil {
				return err
			}
			for _, missing := range missingLoaders(list, images) {
				fmt.Fprintln(cmd.ErrOrStderr(), missing)
			}
			return errors.Join(err, output.Print(cmd, list, func(w io.Writer) error { return printLoaders(w, list) }))
		},
	}
	cmd.Flags().StringVar(&images, "images", defaultImages, "directory of images, which say for what machines loaders are needed")
	_ = cmd.MarkFlagDirname("images")
	output.Flag(cmd, "text", "json", "yaml")
	cli.OnHost(cmd, "name a directory with --loaders", "loaders")
	return cmd
}

// missingLoaders returns a line for each loader that machines need which boot the images of a
// directory, and that the list lacks.
func missingLoaders(list []loaders.Info, images string) (out []string) {
	platforms := map[string]bool{}
	built, _ := imagebuild.Open(images).List() // drover image list reports damaged ones
	for _, i := range built {
		platforms[i.Platform] = true
	}
	if len(built) == 0 {
		platforms[""] = true
	}
	for _, f := range resolve.NeedLoaders(platforms) {
		name := f.Loader()
		if slices.ContainsFunc(list, func(l loaders.Info) bool { return l.File == name }) {
			continue
		}
		if l, ok := loaders.Find(name); ok {
			out = append(out, fmt.Sprintf("missing: %s for %s (package %s): drover loaders install", name, firmwares(l.Firmware), l.Package))
		}
	}
	return out
}

func printInstalled(w io.Writer, list []loaders.Installed) error {
	return cli.Table(w, list, "FILE\tFIRMWARE\tVERSION\tSHA256\tACTION\tSOURCE", func(l loaders.Installed) []any {
		source := l.Source
		if l.Action == loaders.ActionMissing {
			source = "would come with package " + l.Package
		}
		return []any{l.File, firmwares(l.Firmware), l.Version, short(l.SHA256), l.Action, source}
	})
}

func printLoaders(w io.Writer, list []loaders.Info) error {
	return cli.Table(w, list, "FILE\tFIRMWARE\tVERSION\tSIGNED\tSIZE\tSHA256\tSOURCE", func(l loaders.Info) []any {
		signed := ""
		if l.Signed {
			signed = "yes"
		}
		return []any{l.File, firmwares(l.Firmware), l.Version, signed, l.Size, short(l.SHA256), l.Source}
	})
}

// short returns the first 12 digits of a digest.
func short(digest string) string { return digest[:min(len(digest), 12)] }

// firmwares renders a list of firmware.
func firmwares(list []string) string { return strings.Join(list, ", ") }
