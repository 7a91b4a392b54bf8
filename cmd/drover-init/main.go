// Command drover-init is the first process of a node that boots over the
// network, and later the agent that joins the node to its cluster.
//
// As /init of the initramfs it mounts the kernel's file systems, loads the
// modules of the hardware at hand, asks DHCP for an address, fetches the
// node's root image into RAM, checks its digest, puts an overlay on it, fetches
// the node's configuration, writes it into that root, and starts the root's own
// init. Before it leaves it puts a copy of itself under /run/drover and enables
// a systemd unit, which runs "drover-init agent" once the real system is
// online: the agent runs the operator's online scripts and kubeadm join.
//
// Nothing in it waits without an end and without saying so. Each step is a line
// on the console and an event sent to the server. An error says what failed and
// what happens next; what may heal is tried again; what does not heal ends in a
// reboot (initramfs), because a reboot gets a fresh boot script, or in a retry
// for ever (agent), because the node may be of use to whoever looks at it.
//
// The kernel command line is its only input besides the server's answers:
//
//	drover.url=http://10.28.0.2:80      base of the server's node-facing listener
//	drover.https=https://10.28.0.2:8444 where config, join and events go by TLS instead
//	drover.pin=sha256:HEX               digest of that listener's key; the only thing checked of it
//	drover.mac=52-54-00-12-34-56        the MAC that the boot script was made for
//	drover.nonce=HEX                    names this boot; sent with each request
//	drover.image=sha256:HEX             digest of the root image
//	drover.root=/images/N/D/root.squashfs   where the image is, below drover.url
//	drover.timeout=900                  seconds after which a boot that got nowhere reboots
//	drover.shell=1                      after an error, leave the screen alone until the timeout
//	drover.rescue=1                     stop in a shell of the image before the config is fetched
//	BOOTIF=01-52-54-00-12-34-56         used when drover.mac is absent
//
// It does not know pools, tags, images' contents or how join tokens are made:
// the server decides, drover-init does as told. There is no shell in the
// initramfs, and none is wanted: what a node did is on the server's page, and
// the rescue shell is the image's own.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"

	"drover/cmd/drover-init/rootfs"

	"golang.org/x/sys/unix"
)

func main() {
	if os.Getpid() == 1 && rootfs.IsRAMRoot("/") {
		bootNode() // does not return
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	code := run(ctx, os.Args, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

const usage = `drover-init is the first process of a network-booted node. It is not meant to be
run by hand: as process 1 of an initramfs it boots the node, and a systemd unit
that it writes runs its agent.

usage:
  drover-init agent     run the node's online scripts, then join its cluster
  drover-init version   print the version
  drover-init help      print this text
`

// run does what the arguments say and returns the exit code: 0 done, 1 failed,
// 2 usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	// The kernel calls its module helper as "modprobe -q -- NAME". In the
	// initramfs, where there is no other modprobe, a link makes that us.
	if filepath.Base(args[0]) == "modprobe" {
		return modprobe(args[1:], stderr)
	}
	if len(args) != 2 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	switch args[1] {
	case "agent":
		return runAgent(ctx, stdout, stderr)
	case "version", "--version":
		fmt.Fprintln(stdout, "drover-init", version())
		return 0
	case "help", "--help", "-h":
		fmt.Fprint(stdout, usage)
		return 0
	}
	fmt.Fprintf(stderr, "drover-init: unknown command %q\n\n%s", args[1], usage)
	return 2
}

// version is what the Go toolchain recorded of the source.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && v == "(devel)" {
			v = s.Value
		}
	}
	return v + " " + info.GoVersion
}
