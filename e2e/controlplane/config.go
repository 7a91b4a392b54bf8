package controlplane

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// Programs are the files that [Config].BinDir must hold.
var Programs = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kubeadm", "kubectl"}

func (c Config) withDefaults() (Config, error) {
	if c.Name == "" || c.BinDir == "" || c.Dir == "" {
		return c, errors.New("name, program directory and directory are needed")
	}
	for _, name := range Programs {
		if _, err := os.Stat(filepath.Join(c.BinDir, name)); err != nil {
			return c, fmt.Errorf("program missing: %w", err)
		}
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return c, err
	}
	c.Dir = dir
	if !c.Address.IsValid() {
		c.Address = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	c.PodCIDR = cmp.Or(c.PodCIDR, "10.244.0.0/16")
	c.ServiceCIDR = cmp.Or(c.ServiceCIDR, "10.96.0.0/16")
	c.Version = cmp.Or(c.Version, "v1.37.1")
	if c.Log == nil {
		c.Log = io.Discard
	}
	if c.Exec == nil {
		c.Exec = exec.Command
	}
	for _, port := range []*int{&c.Port, &c.EtcdPort, &c.EtcdPeerPort, &c.ControllerPort} {
		if err := pickPort(port); err != nil {
			return c, err
		}
	}
	return c, nil
}

// pickPort fills in a port that nobody listens on. It stays below 32768, where
// Linux starts to pick the source ports of connections: one of those could take
// the port before its server does.
func pickPort(port *int) error {
	if *port != 0 {
		return nil
	}
	for range 100 {
		n := 20000 + rand.IntN(12000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(n)))
		if err != nil {
			continue
		}
		*port = n
		return l.Close()
	}
	return errors.New("no free port between 20000 and 32000")
}
