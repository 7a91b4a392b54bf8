package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Bridge is the interface that every cabled machine is connected to, and that
// a server on the rack's wire listens on.
const Bridge = "br0"

// Rack is a virtual rack. [Open] makes one.
type Rack struct {
	Name string // of the network namespace, as "ip netns" shows it
	Dir  string // consoles, logs, disks and firmware variables

	ns    *namespace
	lock  *os.File
	mu    sync.Mutex // guards what follows
	procs []*Process
	taps  int
}

// ErrInUse says that another process has a rack of that name open.
var ErrInUse = errors.New("rack is in use by another process")

// nameForm keeps names usable for a namespace, a lock file and a directory.
var nameForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// Open makes the rack of that name, with addrs on its bridge, and keeps its
// files in dir. What a crashed run of the same name left behind is removed
// first. When another process has it open, the error is [ErrInUse].
func Open(name, dir string, addrs ...netip.Prefix) (_ *Rack, err error) {
	if !nameForm.MatchString(name) {
		return nil, fmt.Errorf("rack name %q (want lower-case letters, digits and '-', 32 at most)", name)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	r := &Rack{Name: name, Dir: dir}
	if r.lock, err = lock(name); err != nil {
		return nil, err
	}
	if err := removeNamespace(name); err != nil {
		return nil, errors.Join(fmt.Errorf("left-over rack %q: %w", name, err), unlock(r.lock))
	}
	if r.ns, err = newNamespace(name); err != nil {
		return nil, errors.Join(err, unlock(r.lock))
	}
	if err := r.cable(addrs); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// lock takes the lock of a rack. The kernel drops it with the process.
func lock(name string) (*os.File, error) {
	path := filepath.Join("/run", name+".lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %q", ErrInUse, name), f.Close())
	}
	// The last owner may have removed the file since this process opened it: then
	// this lock has no effect.
	ours, err := f.Stat()
	if now, nerr := os.Stat(path); err != nil || nerr != nil || !os.SameFile(ours, now) {
		return nil, errors.Join(fmt.Errorf("%w: %q", ErrInUse, name), f.Close())
	}
	return f, nil
}

// unlock removes the lock, and its file first.
func unlock(f *os.File) error { return errors.Join(os.Remove(f.Name()), f.Close()) }

// bridgeMAC is the address of the bridge. Without one of its own a bridge takes the lowest
// address of its ports, so that it changes when machines come and go: GRUB, which asks for
// the server's address once, then gets no answer any more.
const bridgeMAC = "52:54:00:77:ff:fe"

// cable sets up the bridge. Forwarding delay 0: a port that is still listening
// for other bridges drops the firmware's first DISCOVERs. A bond sends LACPDUs from cards that
// it does not use, too: a bridge that learns from those sends its packets there.
func (r *Rack) cable(addrs []netip.Prefix) error {
	steps := [][]string{
		{"link", "set", "lo", "up"},
		{"link", "add", Bridge, "address", bridgeMAC, "type", "bridge", "stp_state", "0", "forward_delay", "0", "mcast_snooping", "0", "no_linklocal_learn", "1"},
	}
	for _, a := range addrs {
		step := []string{"addr", "add", a.String(), "dev", Bridge}
		if a.Addr().Is6() {
			step = append(step, "nodad") // without a machine the bridge has no carrier, and could not ask
		}
		steps = append(steps, step)
	}
	steps = append(steps, []string{"link", "set", Bridge, "up"})
	for _, args := range steps {
		if err := r.ip(args...); err != nil {
			return err
		}
	}
	return nil
}

// ip runs iproute2 on the namespace. "ip -n" enters the network namespace
// only, unlike "ip netns exec".
func (r *Rack) ip(args ...string) error { return run("ip", append([]string{"-n", r.Name}, args...)...) }

// bridge returns the bridge that the card is connected to; "": none.
func (n NIC) bridge() string {
	if n.Dark {
		return ""
	}
	return cmp.Or(n.Wire, Bridge)
}

// tap makes the next tap, and puts it on a bridge unless its name is empty.
func (r *Rack) tap(bridge string) (string, error) {
	r.mu.Lock()
	name := fmt.Sprintf("tap%d", r.taps)
	r.taps++
	r.mu.Unlock()
	if err := r.ip("tuntap", "add", "dev", name, "mode", "tap"); err != nil {
		return "", err
	}
	if bridge != "" {
		if err := r.ip("link", "set", name, "master", bridge); err != nil {
			return "", err
		}
	}
	return name, r.ip("link", "set", name, "up")
}

// Throttle limits what an interface of the rack sends (for a tap: what its
// guest receives) to a rate that tc understands, such as "40mbit". An empty
// rate lifts the limit.
func (r *Rack) Throttle(iface, rate string) error {
	if rate == "" {
		return run("tc", "-n", r.Name, "qdisc", "del", "dev", iface, "root")
	}
	return run("tc", "-n", r.Name, "qdisc", "replace", "dev", iface, "root", "tbf",
		"rate", rate, "burst", "64kb", "latency", "400ms")
}

// Sent returns how many bytes an interface of the rack has sent (for a tap: how
// many its guest has received).
func (r *Rack) Sent(iface string) (int64, error) {
	out, err := exec.Command("ip", "-n", r.Name, "-j", "-s", "link", "show", "dev", iface).Output()
	if err != nil {
		return 0, fmt.Errorf("ip link show dev %s: %w", iface, err)
	}
	var links []struct {
		Stats struct {
			TX struct {
				Bytes int64 `json:"bytes"`
			} `json:"tx"`
		} `json:"stats64"`
	}
	if err := json.Unmarshal(out, &links); err != nil || len(links) != 1 {
		return 0, fmt.Errorf("ip link show dev %s: %d links, %w", iface, len(links), err)
	}
	return links[0].Stats.TX.Bytes, nil
}

// Dial connects to an address on the rack's wire, its loopback included.
func (r *Rack) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return r.ns.dial(ctx, network, addr)
}

// Listen listens on an address of the rack, for what guests are to send to the
// test itself.
func (r *Rack) Listen(network, addr string) (l net.Listener, err error) {
	err = r.ns.do(func() error {
		l, err = net.Listen(network, addr)
		return err
	})
	return l, err
}

// Enter moves the calling thread onto the rack's wire, for good: the goroutine
// must be locked to it and never unlock, so that the thread ends with it.
func (r *Rack) Enter() error { return enter(r.Name) }

// HTTPClient returns a client that dials on the rack's wire.
func (r *Rack) HTTPClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{DialContext: r.Dial, DisableKeepAlives: true},
		Timeout:   30 * time.Second,
	}
}

// keep adds p to the processes that Close ends.
func (r *Rack) keep(p *Process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.procs = append(slices.DeleteFunc(r.procs, func(p *Process) bool { return !p.Running() }), p)
}

// Close ends everything on the rack, the last started first, and removes it.
// The files in Dir stay.
func (r *Rack) Close() error {
	r.mu.Lock()
	procs := slices.Clone(r.procs)
	r.mu.Unlock()
	for _, p := range slices.Backward(procs) {
		grace := 5 * time.Second
		if strings.HasPrefix(p.Name, guestPrefix) {
			grace = 0 // a power cut: nothing to save
		}
		_ = p.Stop(grace) // a process that had to be killed is no error of the rack
	}
	return errors.Join(r.ns.close(), unlock(r.lock))
}
