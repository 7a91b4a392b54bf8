package script

import (
	"net/netip"

	"drover/pools"
	"drover/pools/resolve"
)

// Begun is a boot that begins with a script.
type Begun struct {
	MAC   pools.MAC // of the machine: perhaps another card than that of the client's address
	Nonce string
}

// begin returns the script of a boot before it is written. Anyone can send a request by TFTP
// with the address of a machine.
func (f *Files) begin(p *resolve.Plan) *script {
	return &script{Plan: p, Device: f.device(p, netip.Addr{}), unproved: f.scheme == "tftp"}
}

// bootScript is a script that begins a boot.
type bootScript struct {
	content
	begins Begun // zero if the script shows a problem
}

// begins returns the boot of a script that was written.
func (s script) begins() Begun {
	if s.nonce == "" {
		return Begun{}
	}
	return Begun{s.MAC, s.nonce}
}
