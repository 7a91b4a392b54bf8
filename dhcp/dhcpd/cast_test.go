package dhcpd_test

import (
	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/dhcp/dhcpd"
	"drover/e2e/dhcptest"
	"drover/pools"
)

// The cast of the tests.
var (
	serverAddr, noon, errDisk = dhcptest.ServerAddr, dhcptest.Noon, dhcptest.ErrDisk

	web1, web1b, stray, foreign = dhcptest.Web1, dhcptest.Web1b, dhcptest.Stray, dhcptest.Foreign

	message, option, rom, requested, ciaddr = dhcptest.Message, dhcptest.Option, dhcptest.ROM, dhcptest.Requested, dhcptest.Ciaddr
)

// giaddr makes a packet one of a relay agent.
func giaddr(a string) dhcpv4.Modifier {
	return func(d *dhcpv4.DHCPv4) { dhcptest.Giaddr(a)(d); d.HopCount = 1 }
}

type (
	farm     = dhcptest.Farm
	farmFunc = dhcptest.FarmFunc
	leases   = dhcptest.Leases
)

const (
	discover = dhcpv4.MessageTypeDiscover
	request  = dhcpv4.MessageTypeRequest
	decline  = dhcpv4.MessageTypeDecline
	release  = dhcpv4.MessageTypeRelease
	inform   = dhcpv4.MessageTypeInform
)

func newServer() (*dhcpd.Server, *leases) {
	l := dhcptest.NewLeases()
	return &dhcpd.Server{Responder: dhcp.Responder{Farm: farm{}, Leases: l, Address: serverAddr}}, l
}

func newProxy() (*dhcpd.Server, *leases) {
	s, l := newServer()
	s.Mode = pools.DHCPProxy
	return s, l
}
