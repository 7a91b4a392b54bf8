package boots

import (
	"slices"

	"drover/pools"
)

// Former returns the tenant whose data is on the disks of a machine when the boot of a nonce
// begins: that of the newest boot before that applied its config. It is empty if that is not known,
// as after a boot for another tenant that reported no config.
func (t *Table) Former(mac pools.MAC, nonce string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	b, _ := t.byNonce(mac, nonce, t.Now())
	at := slices.Index(t.byMAC[mac], b)
	if b == nil || at < 0 {
		return ""
	}
	own := b.Record.tenant()
	for _, before := range slices.Backward(t.byMAC[mac][:at]) {
		r := &before.Record
		last, _ := r.Furthest()
		reached := last.Step.Rank() >= StepConfig.Rank()
		switch {
		case reached:
			return r.tenant()
		case r.tenant() != own && (before.KeyHash != nil || before.NonceHash != nil || r.pastScript()):
			return "" // it may have written to the disks
		}
	}
	return ""
}

// tenant returns whom the machine booted for.
func (r *Record) tenant() string { return pools.TenantName(r.Cluster, r.Pool) }
