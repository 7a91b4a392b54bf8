// Command drover-init is the first process of a node that boots over the
// network, and later the agent that joins the node to its cluster.
//
// As /init of the initramfs it mounts the kernel's file systems, loads the modules of
// the machine's hardware, leases an address by DHCPv4 or DHCPv6, fetches the node's root
// image into RAM, checks its digest, and mounts it with an overlay. Then it fetches the
// node's configuration, writes it into that root, and starts the root's own init. Before
// that it copies itself to /run/drover and enables a systemd unit, which runs "drover-init
// agent" once the system is online: the agent runs the operator's online scripts and
// kubeadm join.
//
// Every wait has a limit and is reported. Each step is a line on the console and an
// event to the server. An error names the failure and the next action. drover-init
// retries after errors that may heal. After any other error the initramfs reboots,
// because a reboot gets a new boot script; the agent retries for ever, so that the node
// can be inspected.
//
// The kernel command line is its only input besides the server's answers:
//
//	drover.url=http://10.28.0.2:80      base of the server's node-facing listener; an IPv6 address means DHCPv6
//	drover.https=https://10.28.0.2:8444 where config, join and events go by TLS instead
//	drover.pin=sha256:HEX               digest of that listener's key; nothing else of it is checked
//	drover.also=10.28.0.3,10.28.0.4     other servers, which go on with the boot when that one does not answer
//	drover.mac=52-54-00-12-34-56        the MAC that the boot script was made for
//	drover.nonce=HEX                    identifies this boot; sent with each request
//	drover.image=sha256:HEX             digest of the root image
//	drover.root=/images/N/D/root.squashfs   path of the image, below drover.url
//	drover.timeout=900                  seconds after which an unfinished boot reboots
//	drover.shell=1                      after an error, wait for the timeout, so that the screen can be read
//	drover.debug=on-failure             run a shell of the image on the console after an error; "always": also before the root's init
//	drover.rescue=1                     stop in a shell of the image before the config is fetched
//	BOOTIF=01-52-54-00-12-34-56         used when drover.mac is absent
//
// It does not know pools, tags, the contents of images, or how join tokens are made: the
// server decides, and drover-init executes. The initramfs has no shell: the history of a
// boot is on the server's page, and the rescue shell is the image's own.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"drover/node/rootfs"
	"drover/node/state"
	"drover/pools"
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

// run runs the command of the arguments and returns the exit code: 0 done, 1 failed,
// 2 usage, [nodeconfig.ExitFinal] an agent that need not start again.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	// The kernel calls its module helper as "modprobe -q -- NAME". In the
	// initramfs that is a link to this program.
	if filepath.Base(args[0]) == "modprobe" {
		return modprobe(args[1:], stderr)
	}
	if len(args) != 2 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	switch args[1] {
	case "agent":
		return runAgent(ctx, state.Dir, stdout, stderr)
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

// version returns the version, and the commit if the Go toolchain recorded it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return pools.Version + ", commit " + s.Value
			}
		}
	}
	return pools.Version
}
