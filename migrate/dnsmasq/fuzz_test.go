package dnsmasq

import (
	"testing"

	"drover/migrate"
)

// FuzzConf: no text of dnsmasq.conf, and none of its files of hosts and options, ends the
// program, and whatever is written is a farm.
func FuzzConf(f *testing.F) {
	for _, text := range []string{
		"dhcp-range=set:a,10.0.0.1,10.0.0.9,255.255.255.0,12h\ndhcp-host=02:00:00:00:00:01,10.0.0.2,n1,set:b\ndhcp-option=tag:b,42,10.0.0.3\n",
		"dhcp-option=252,\"a,b\\n\" # x\ntag-if=set:a,tag:!b\ndhcp-match=set:b,option:client-arch,7\ndhcp-boot=tag:b,x,y,10.0.0.1\n",
		"dhcp-host=id:01:02,[fd00::1],infinite\ndhcp-range=fd00::1,fd00::9,64\ndhcp-circuitid=set:p,1\ndhcp-range=tag:p,10.0.0.1,10.0.0.1\n",
		"dhcp-option=encap:175,190,1b\ndhcp-option=vi-encap:311,1,x\ndhcp-option=249,1.2.3.0/24,5.6.7.8\ndhcp-mac=set:a,02:*:*:*:*:*\ndhcp-ignore=tag:!known\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		farm := migrate.NewFarm(migrate.Options{})
		r := NewReader(farm)
		for _, plain := range []bool{false, true} {
			_ = r.parse("x", text, plain, func(d directive) error { // an error is a fine answer
				if plain {
					d.key = "dhcp-host"
				}
				r.Directive(d.at, d.key, d.fields)
				return nil
			})
		}
		r.Finish()
		farm.Finish()
	})
}
