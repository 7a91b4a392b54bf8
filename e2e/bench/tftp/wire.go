package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// wire is two network namespaces with a pair of veth interfaces between them.
type wire struct{ srv, cli string }

// processors is the number of processors. The package comment says what runs on which.
const processors = 2

// serverIP has the address of the servers on each processor.
var serverIP = [processors]string{"10.69.0.1", "10.69.0.3"}

func newWire() (*wire, error) {
	id := fmt.Sprintf("drvbench%d", os.Getpid())
	w := &wire{srv: id + "s", cli: id + "c"}
	for _, args := range []string{
		"netns add " + w.srv,
		"netns add " + w.cli,
		"-n " + w.srv + " link add srv type veth peer name cli netns " + w.cli,
		"-n " + w.srv + " addr add " + serverIP[0] + "/24 dev srv",
		"-n " + w.srv + " addr add " + serverIP[1] + "/24 dev srv",
		"-n " + w.cli + " addr add 10.69.0.2/24 dev cli",
		"-n " + w.srv + " link set srv up",
		"-n " + w.srv + " link set lo up",
		"-n " + w.cli + " link set cli up",
	} {
		if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			w.close()
			return nil, fmt.Errorf("ip %s: %w\n%s", args, err, out)
		}
	}
	return w, nil
}

func (w *wire) close() {
	for _, ns := range []string{w.srv, w.cli} {
		_ = exec.Command("ip", "netns", "del", ns).Run()
	}
}

// atClient runs f on a thread of its own in the clients' namespace, on
// processor 0.
func (w *wire) atClient(f func() error) error {
	errs := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		errs <- func() error {
			ns, err := os.Open(filepath.Join("/run/netns", w.cli))
			if err != nil {
				return err
			}
			defer ns.Close()
			if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
				return err
			}
			var set unix.CPUSet
			set.Set(0)
			if err := unix.SchedSetaffinity(0, &set); err != nil {
				return err
			}
			return f()
		}()
	}()
	return <-errs
}
