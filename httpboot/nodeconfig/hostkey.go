package nodeconfig

import (
	"fmt"
	"net/netip"

	"drover/pools"
	"drover/pools/sshca"
)

// The files of sshd's identity. Those of the host key are where sshd looks for them.
const (
	hostKeyFile  = "/etc/ssh/ssh_host_ed25519_key"
	hostCertFile = hostKeyFile + "-cert.pub"
	sshdFile     = "/etc/ssh/sshd_config.d/70-drover.conf"
)

// hostKey adds the SSH host key of the node and its certificate. They are derived from the
// server's secret and the node's name, so they do not depend on the card that booted.
func (m *making) hostKey(c *pools.NodeConfig) error {
	if _, has := c.Files[hostKeyFile]; has || len(m.Secret) == 0 {
		return nil
	}
	p := m.plan
	names := []string{p.Node}
	if c.Domain != "" {
		names = append(names, p.Node+"."+c.Domain)
	}
	for _, a := range []netip.Addr{p.Address, p.Address6} {
		if a.IsValid() {
			names = append(names, a.String())
		}
	}
	host, err := sshca.Keys{Secret: m.Secret}.Host(p.Node, names)
	if err != nil {
		return fmt.Errorf("node %q: %w", p.Node, err)
	}
	m.addOwn(c, hostKeyFile, "0600", host.Private)
	m.addOwn(c, hostKeyFile+".pub", "0644", host.Public)
	m.addOwn(c, hostCertFile, "0644", host.Certificate)
	m.addOwn(c, sshdFile, "0644", written+"HostCertificate "+hostCertFile+"\n")
	return nil
}
