package bootfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/imagebuild"
	"drover/imagebuild/engine"
	"drover/imagebuild/oci"
)

const packagedInit = "/usr/lib/drover/drover-init"

// buildHelp is the help text of drover image build.
const buildHelp = `Build turns SOURCE into kernel, initrd and squashfs: a new generation of the image
NAME. Until a generation of NAME is promoted, NAME means the last build that was not
staged. --channel and --promote stage the build, and promote it on the running server
(drover image promote). SOURCE is one of

  dir:PATH                   a root file system on disk
  tar:FILE                   a tar of one; plain, .gz or .zst
  oci:DIR[:TAG]              an OCI image layout
  oci-archive:FILE[:TAG]     a tar of one
  docker-archive:FILE[:TAG]  a tar of docker save or podman save
  docker://IMAGE             an image in a registry

It needs no root and no container engine, only tar2sqfs (squashfs-tools-ng).
With --file it builds the container image first, with buildah, podman or docker,
whichever is installed. CONTEXT is the directory of the files that the Dockerfile
copies, by default its own; --target is the stage, by default "node" if there is one
of that name, or else the last.

The image must hold systemd and exactly one kernel (boot/vmlinuz-VERSION or
usr/lib/modules/VERSION/vmlinuz, or choose with --kernel-version) with its modules
and modules.dep. Build names network drivers whose firmware the image lacks, and
attributes of files that a squashfs cannot store.

--initrd-file PATH=FILE puts a file into the initrd; --initrd-file FILE appends a cpio
archive to it. --microcode chooses the processor microcode in the initrd: auto is that
of AMD and of Intel's server processors up to 1.3 MB; all; none; or models to have in
addition, such as 06-8f,06-6a.

SSH host keys, machine ids, logs, caches, /boot and the contents of /tmp, /run,
/proc and /sys are left out. --exclude leaves out more: * and ? match within one
element of a path, ** matches any number of elements. A match is left out with
everything below it; DIR/** keeps the directory.

The same source gives the same generation. SOURCE_DATE_EPOCH, if set, is the
latest time of any file in it.`

func newImageBuildCommand(version string) *cobra.Command {
	b := imagebuild.Builder{Version: version}
	var recipe engine.Recipe
	var platform string
	var output cli.Output
	var after promotion
	cmd := &cobra.Command{
		Use:   "build --name NAME {SOURCE | --file DOCKERFILE [CONTEXT]}",
		Short: "Make an image from a container image, a directory or a Dockerfile",
		Long:  buildHelp,
		Example: `  buildah push localhost/node:1 oci:node && drover image build --name debian-12 oci:node
  drover image build --name debian-12 oci-archive:node.tar:v7 --level 15
  drover image build --name debian-12 docker://registry.example.org/node:7
  drover image build --name debian-12 --file Dockerfile.image --build-arg K8S_SOURCE=apt
  drover image build --name test dir:/srv/root --module nvme --exclude 'usr/share/doc'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := chooseSource(&b, &recipe, args)
			if err == nil {
				err = completeBuilder(&b, platform)
			}
			if err != nil {
				return &cli.Error{Code: cli.Usage, Err: err}
			}
			if err := after.check(cmd.Context()); err != nil {
				return err
			}
			b.Stage = b.Stage || after.channel != ""
			image, err := buildImage(cmd, &b, recipe)
			if err != nil {
				return err
			}
			if err := after.do(cmd.Context(), output.Log(cmd), image.Ref()); err != nil {
				return err
			}
			if !b.Stage {
				after.hint(cmd.Context(), cmd.ErrOrStderr(), image.Name, image.ID)
			}
			return output.Print(cmd, image, func(w io.Writer) error { return printImage(w, listed{Image: image}) })
		},
	}
	buildFlags(cmd, &b, &platform)
	recipeFlags(cmd, &recipe)
	after.flags(cmd)
	output.Flag(cmd, "text", "json", "yaml")
	return cmd
}

// buildFlags adds the flags of a build.
func buildFlags(cmd *cobra.Command, b *imagebuild.Builder, platform *string) {
	f := cmd.Flags()
	f.StringVar(&b.Name, "name", "", "name of the image: lower-case letters, digits, '.', '_' and '-'")
	f.StringVar(&b.Images, "images", defaultImages, "directory of images")
	f.StringVar(&b.Init, "init", "", "program for /init of the initrd (default: drover-init beside drover, then "+packagedInit+")")
	f.IntVar(&b.Level, "level", imagebuild.DefaultLevel, "zstd level of the squashfs, 1 to 22; 15 for releases")
	f.StringArrayVar(&b.Excludes, "exclude", nil, "also leave out what matches this pattern (repeatable)")
	f.BoolVar(&b.KeepBoot, "keep-boot", false, "keep /boot")
	f.StringArrayVar(&b.Modules, "module", nil, "also put this kernel module into the initrd (repeatable)")
	f.StringVar(&b.KernelVersion, "kernel-version", "", "which kernel, when the image has several")
	f.StringArrayVar(&b.InitrdFiles, "initrd-file", nil, "PATH=FILE, a file for the initrd, or a cpio archive (repeatable)")
	f.StringVar(&b.Microcode, "microcode", "auto", "processor microcode in the initrd: auto, all, none or models")
	f.BoolVar(&b.Stage, "stage", false, "change nothing for any boot: image promote does that later")
	f.StringVar(platform, "platform", "linux/amd64", "which variant of a multi-platform image")
	_ = cmd.MarkFlagDirname("images")
}

// recipeFlags adds the flags of a build from a Dockerfile.
func recipeFlags(cmd *cobra.Command, r *engine.Recipe) {
	f := cmd.Flags()
	f.StringVar(&r.File, "file", "", "build this Dockerfile first, with "+engine.Engines)
	f.StringVar(&r.Target, "target", "", "with --file: the stage")
	f.StringArrayVar(&r.Args, "build-arg", nil, "with --file: NAME=VALUE, an argument (repeatable)")
	f.StringArrayVar(&r.Contexts, "build-context", nil, "with --file: NAME=DIR, a further context (repeatable)")
}

// chooseSource sets the source of a build, or with --file the context of the recipe.
func chooseSource(b *imagebuild.Builder, r *engine.Recipe, args []string) error {
	if r.File == "" {
		if r.Target != "" || len(r.Args)+len(r.Contexts) > 0 {
			return errors.New("--target, --build-arg and --build-context are for --file")
		}
		if len(args) != 1 {
			return errors.New("want one SOURCE, or --file DOCKERFILE")
		}
		b.Source = args[0]
		return nil
	}
	b.Source, b.Origin = "oci:image", "file:"+r.File // the engine says where it is
	if len(args) == 1 {
		r.Context = args[0]
	}
	return r.Check()
}

// buildImage builds an image and prints the progress.
func buildImage(cmd *cobra.Command, b *imagebuild.Builder, recipe engine.Recipe) (imagebuild.Image, error) {
	if recipe.File != "" {
		dir, err := os.MkdirTemp("", "drover-image-")
		if err != nil {
			return imagebuild.Image{}, err
		}
		defer os.RemoveAll(dir)
		recipe.Platform, recipe.Output = b.Platform.String(), cmd.ErrOrStderr()
		if b.Source, err = recipe.Build(cmd.Context(), dir); err != nil {
			return imagebuild.Image{}, err
		}
	}
	progress := newProgressPrinter(cmd.ErrOrStderr(), time.Now)
	defer progress.end()
	b.Progress = progress.show
	b.Log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	return b.Build(cmd.Context())
}

// completeBuilder sets the fields of a builder that have no flag of their own. Its
// errors are errors of usage.
func completeBuilder(b *imagebuild.Builder, platform string) (err error) {
	if b.Name == "" {
		return errors.New("--name is missing")
	}
	if b.Platform, err = oci.ParsePlatform(platform); err != nil {
		return err
	}
	if s := os.Getenv("SOURCE_DATE_EPOCH"); s != "" {
		sec, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH=%q is not a number of seconds", s)
		}
		b.Epoch = time.Unix(sec, 0)
	}
	b.Init = cmp.Or(b.Init, findInit())
	return b.Check()
}

// findInit returns the path of drover-init: beside this program, or the packaged one.
func findInit() string {
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "drover-init")
		if st, err := os.Stat(beside); err == nil && st.Mode().IsRegular() {
			return beside
		}
	}
	return packagedInit
}
