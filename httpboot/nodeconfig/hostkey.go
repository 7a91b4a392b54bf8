package nodeconfig

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/ssh"

	"drover/pools"
)

// hostKeyFile is the file of sshd's host key; ".pub" is added for the public half.
const hostKeyFile = "/etc/ssh/ssh_host_ed25519_key"

// hostKey adds the SSH host key of the node. It is derived from the server's secret and the
// node's name: a node has the same one in each boot, whichever card booted, and cannot derive
// that of another node.
func (m *making) hostKey(c *pools.NodeConfig) error {
	if _, has := c.Files[hostKeyFile]; has || len(m.Secret) == 0 {
		return nil
	}
	seed, err := hkdf.Key(sha256.New, m.Secret, nil, "drover ssh host key ed25519 "+m.plan.Node, ed25519.SeedSize)
	if err != nil {
		return fmt.Errorf("ssh host key: %w", err)
	}
	key := ed25519.NewKeyFromSeed(seed)
	private, err := ssh.MarshalPrivateKey(key, m.plan.Node)
	if err != nil {
		return fmt.Errorf("ssh host key: %w", err)
	}
	public, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("ssh host key: %w", err)
	}
	m.addOwn(c, hostKeyFile, "0600", string(pem.EncodeToMemory(private)))
	m.addOwn(c, hostKeyFile+".pub", "0644", string(ssh.MarshalAuthorizedKey(public)))
	return nil
}
