package nodeconfig

import (
	"cmp"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"

	"drover/pools"
)

// tenant adds whom the node boots for. The key is that of the tenant: root on a node cannot make a
// mark that the nodes of another tenant take for their own.
func (m *making) tenant(c *pools.NodeConfig) error {
	p := m.plan
	c.Tenant = pools.DiskTenant{
		Name:   pools.TenantName(cmp.Or(p.Cluster, p.Gateway), p.Pool),
		Change: cmp.Or(p.DiskChange, pools.DiskWipe),
	}
	if len(m.Secret) == 0 {
		return nil
	}
	var err error
	if c.Tenant.Key, err = hkdf.Key(sha256.New, m.Secret, nil, "drover disk mark "+c.Tenant.Name, 32); err != nil {
		return fmt.Errorf("key of the disks of %s: %w", c.Tenant.Name, err)
	}
	return nil
}
