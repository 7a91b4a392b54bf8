package buildcache

import (
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
)

// Arm64 is a system of Debian 12 for arm64, whose programs this host emulates where it has
// another processor.
type Arm64 struct {
	Root string // its files; nobody writes to them
	qemu string // of this host
}

// NewArm64 makes the smallest system that can install packages. The first time takes a minute.
func NewArm64(ctx context.Context, log io.Writer) (Arm64, error) {
	// Unpacked, not installed: the package would register itself for the whole host.
	emulator, err := systemRoot(ctx, log, "emulator", []string{"--mode=root", "--variant=extract", "--include=qemu-user-static", debian12.suite})
	if err != nil {
		return Arm64{}, err
	}
	a := Arm64{qemu: filepath.Join(emulator, "usr/bin/qemu-aarch64-static")}
	args := []string{"--mode=root", "--skip=check/qemu", "--variant=essential", "--arch=arm64", "--include=adduser,usr-is-merged"}
	args = append(append(args, debian12.hooks...), debian12.suite)
	p := part{kind: "arm64", key: hashOf(args...), make: func(ctx context.Context, dir string) error {
		return timed(log, "arm64", func() error {
			return run(a.Command(ctx, `mmdebstrap "$@"`, append(slices.Clone(args), filepath.Join(dir, "root"))...), io.Discard)
		})
	}}
	dir, err := p.path(ctx, share(log))
	a.Root = filepath.Join(dir, "root")
	return a, err
}

// emulate lets the kernel start programs for arm64 with $0. The magic is the head of their ELF
// files; F opens the emulator now, so that a chroot need not have it.
const emulate = `set -e
mount --make-rprivate /
mount -t proc proc /proc
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
printf %s ':arm64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:'"$0:F" >/proc/sys/fs/binfmt_misc/register
`

// Command returns a shell of this host in which programs for arm64 run. Its users are those of the
// host, in a namespace of their own: so nothing is registered for other programs (Linux 6.7).
func (a Arm64) Command(ctx context.Context, line string, args ...string) *exec.Cmd {
	cmd := command(ctx, "sh", append([]string{"-c", emulate + line, a.qemu}, args...)...)
	same := []syscall.SysProcIDMap{{Size: 1<<32 - 1}}
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID
	cmd.SysProcAttr.UidMappings, cmd.SysProcAttr.GidMappings, cmd.SysProcAttr.GidMappingsEnableSetgroups = same, same, true
	return cmd
}
