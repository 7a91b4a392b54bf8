package imagebuild_test

import (
	"context"
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/imagebuild"
)

// TestBuildDirChanges: a tree that changes during the build gives an error.
func TestBuildDirChanges(t *testing.T) {
	for name, change := range map[string]func(file string) error{
		"shorter": func(file string) error { return os.Truncate(file, 1) },
		"replaced": func(file string) error {
			return errors.Join(os.WriteFile(file+"~", []byte("other"), 0o600), os.Rename(file+"~", file))
		},
		"link": func(file string) error {
			return errors.Join(os.Remove(file), os.Symlink("../../../../etc/shadow", file))
		},
		"gone": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			b := builder(t)
			root := t.TempDir()
			for _, f := range with(machine(), []string{"lib", "usr/", "usr/lib/", "etc/"}, "opt/file=value") {
				write(t, filepath.Join(root, describe(f).Name), []byte(describe(f).content))
			}
			b.Source = "dir:" + root
			b.Progress = func(p imagebuild.Progress) {
				if p.Phase == "writing initrd" && p.Done == 0 {
					if err := change(filepath.Join(root, "opt/file")); err != nil {
						t.Error(err)
					}
				}
			}
			_, err := b.Build(t.Context())
			if want := `root.squashfs: "opt/file": `; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got error %v, want one with %q", err, want)
			}
			nothingVisible(t, b.Images)
		})
	}
}

func TestBuildRefuses(t *testing.T) {
	kernel := "boot/vmlinuz-" + kver
	mods := "usr/lib/modules/" + kver + "/"
	tests := []struct {
		name  string
		files []string
		edit  func(b *imagebuild.Builder)
		want  string
	}{
		{"no kernel", with(machine(), []string{kernel}), nil, "the image has no kernel"},
		{"two kernels", with(machine(), nil, "boot/vmlinuz-6.2=x", "usr/lib/modules/6.2/modules.dep="), nil, "choose one with --kernel-version: 6.1.0-9-test, 6.2"},
		{"empty kernel", with(machine(), []string{kernel}, kernel+"="), nil, "the kernel 6.1.0-9-test of the image is an empty file"},
		{"no systemd", with(machine(), []string{"usr/lib/systemd/systemd"}, "sbin/openrc=x"), nil, "the image has no systemd (usr/lib/systemd/systemd) (its init system seems to be OpenRC)"},
		{"microcode", machine(), func(b *imagebuild.Builder) { b.Microcode = "some" }, `microcode "some" is not auto, all, none`},
		{"other kernel", machine(), func(b *imagebuild.Builder) { b.KernelVersion = "5.0" }, `no kernel "5.0", only 6.1.0-9-test`},
		{"no modules", with(machine(), nil, "boot/vmlinuz-6.2=x"), func(b *imagebuild.Builder) { b.KernelVersion = "6.2" }, "no usr/lib/modules/6.2"},
		{"no modules.dep", with(machine(), []string{mods + "modules.dep"}), nil, `run "depmod 6.1.0-9-test" in the image`},
		{"module listed but missing", with(machine(), []string{mods + "kernel/drivers/block/loop.ko"}), nil, "loop.ko is missing, although modules.dep lists it"},
		{"essential module", with(machine(), []string{mods + "modules.dep"}, mods+"modules.dep=kernel/drivers/block/loop.ko:"), nil, `has no module "squashfs"`},
		{"unknown extra module", machine(), func(b *imagebuild.Builder) { b.Modules = []string{"nvmf"} }, `has no module "nvmf"`},
		{"name", machine(), func(b *imagebuild.Builder) { b.Name = "../x" }, `image name "../x"`},
		{"hidden name", machine(), func(b *imagebuild.Builder) { b.Name = ".x" }, `image name ".x"`},
		{"level", machine(), func(b *imagebuild.Builder) { b.Level = 23 }, "level 23 is not between 1 and 22"},
		{"exclude", machine(), func(b *imagebuild.Builder) { b.Excludes = []string{"a[b"} }, `exclude pattern "a[b"`},
		{"no init", machine(), func(b *imagebuild.Builder) { b.Init += ".missing" }, "program for the initrd's /init"},
		{"init is a script", machine(), func(b *imagebuild.Builder) { b.Init = strings.TrimPrefix(b.Source, "tar:") }, "not an executable for Linux"},
		{"dynamic init", machine(), func(b *imagebuild.Builder) { write(t, b.Init, staticELF(t, elf.EM_X86_64, true)) }, "not a static executable"},
		{"init for another processor", machine(), func(b *imagebuild.Builder) { write(t, b.Init, staticELF(t, elf.EM_AARCH64, false)) }, "built for EM_AARCH64, but the image is for amd64"},
		{"no source", machine(), func(b *imagebuild.Builder) { b.Source = "debian:12" }, `source "debian:12" is not one of dir:PATH`},
		{"source missing", machine(), func(b *imagebuild.Builder) { b.Source += ".missing" }, "no such file"},
		{"dir is a file", machine(), func(b *imagebuild.Builder) { b.Source = "dir:" + b.Init }, "not a directory"},
		{"tar is a directory", machine(), func(b *imagebuild.Builder) { b.Source = "tar:" + filepath.Dir(b.Init) }, "not a regular file"},
		{"too large", machine(), func(b *imagebuild.Builder) { b.MaxSize = 20 }, "the image is larger than 20 bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := builder(t, test.files...)
			if test.edit != nil {
				test.edit(&b)
			}
			_, err := b.Build(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
			nothingVisible(t, b.Images)
		})
	}
}

// nothingVisible checks that no generation and no visible file exists.
func nothingVisible(t *testing.T, images string) {
	t.Helper()
	err := filepath.WalkDir(images, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != ".lock" {
			t.Errorf("%s was left behind", path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if list, err := imagebuild.Open(images).List(); err != nil || len(list) > 0 {
		t.Errorf("images are %v, %v, want none", list, err)
	}
}

func TestBuildCancelled(t *testing.T) {
	for _, phase := range []string{"reading", "writing initrd", "writing root.squashfs"} {
		t.Run(phase, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			b := builder(t, machine()...)
			b.Progress = func(p imagebuild.Progress) {
				if strings.HasPrefix(p.Phase, phase) {
					cancel()
				}
			}
			if _, err := b.Build(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("got error %v, want %v", err, context.Canceled)
			}
			nothingVisible(t, b.Images)
		})
	}
}

// TestBuildTar2sqfsFails: the error has the message of the program.
func TestBuildTar2sqfsFails(t *testing.T) {
	b := builder(t, machine()...)
	bin := t.TempDir()
	script := "#!/bin/sh\n[ \"$1\" = --version ] && { echo tar2sqfs 9.9; exit 0; }\necho 'disk on fire' >&2\nexit 3\n"
	write(t, filepath.Join(bin, "tar2sqfs"), []byte(script))
	if err := os.Chmod(filepath.Join(bin, "tar2sqfs"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	_, err := b.Build(t.Context())
	if want := "root.squashfs: tar2sqfs: exit status 3: disk on fire"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want one with %q", err, want)
	}
	nothingVisible(t, b.Images)

	t.Setenv("PATH", t.TempDir())
	_, err = b.Build(t.Context())
	if want := "install squashfs-tools-ng"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want one with %q", err, want)
	}
}

func TestBuildCleansUpAfterDeadBuilds(t *testing.T) {
	b := builder(t, machine()...)
	dead := filepath.Join(b.Images, "test", ".build-123")
	write(t, filepath.Join(dead, "root.squashfs"), []byte("half"))
	if err := os.Symlink("nowhere", filepath.Join(b.Images, "test", ".build-current")); err != nil {
		t.Fatal(err)
	}
	build(t, b)
	entries, err := os.ReadDir(filepath.Join(b.Images, "test"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".build-") {
			t.Errorf("%s is still there", e.Name())
		}
	}
}

func TestBuildOneAtATime(t *testing.T) {
	b := builder(t, machine()...)
	var inner error
	again := b
	b.Progress = func(imagebuild.Progress) {
		if inner == nil {
			_, inner = again.Build(t.Context())
		}
	}
	build(t, b)
	if want := "another build of it is running"; inner == nil || !strings.Contains(inner.Error(), want) {
		t.Errorf("got error %v, want one with %q", inner, want)
	}
}
