package main

import (
	"context"
	"net"
	"os"

	"drover/node/ifname"
	"drover/node/script"
)

// environment returns the variables of the node's scripts: those that the scripts of LTSP
// and kubefarm read, then the operator's own. Scripts and files of the operator may change
// the name that the network card will have.
func (b *boot) environment(ctx context.Context) []string {
	line, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		b.con.Printf("network", "%v; the name of the network card may be wrong", err)
	}
	p := &ifname.Predictor{Root: "/", CommandLine: string(line), Builtin: ifname.Udevadm}
	device, err := p.Name(ctx, b.net.Name, net.HardwareAddr(b.net.MAC[:]))
	if err != nil {
		b.con.Printf("network", "%v; scripts get the name %s for the network card", err, device)
	}
	return append(script.LeaseEnv(b.net, device, b.config.Hostname), script.ConfigEnv(b.config.Env)...)
}
