package migrate_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drover/e2e/importtest"
	"drover/migrate"
	"drover/migrate/dhcpd"
	"drover/migrate/dnsmasq"
	"drover/pools"
)

const (
	dnsmasqHead = "dhcp-range=10.28.0.0,static,255.255.255.0\ndhcp-host=52:54:00:28:00:11,10.28.0.11,m1,set:red\n"
	dnsmasqOpen = dnsmasqHead + "dhcp-range=10.28.0.100,10.28.0.150,255.255.255.0,12h\n"
	leased      = "10.28.0.100-10.28.0.150"
)

// closedCase is a config, and the ranges of it that stay open. restricted says that one is left
// out by a rule that drover does not have.
type closedCase struct {
	text       string
	open       []string
	restricted bool
}

// check runs the cases.
func check(t *testing.T, read func(*migrate.Farm, []string) error, cases []closedCase) {
	t.Helper()
	for _, tt := range cases {
		importtest.WantOpen(t, read, tt.text, tt.open, tt.restricted)
	}
}

// lease is a config with a range for the clients with some tags.
func lease(tags string) string {
	return dnsmasqHead + "dhcp-range=" + tags + ",10.28.0.100,10.28.0.150,255.255.255.0,12h\n"
}

// TestDnsmasqSeveralTags: of two tags that depend on what a client sends neither is forgotten.
func TestDnsmasqSeveralTags(t *testing.T) {
	check(t, conf, []closedCase{
		{lease("tag:both") + "tag-if=set:both,tag:pxe,tag:port\ndhcp-vendorclass=set:pxe,PXEClient\ndhcp-circuitid=set:port,ge-0/0/7", []string{leased + " *PXEClient* at ge-0/0/7"}, false},
		{lease("tag:both") + "tag-if=set:both,tag:pxe,tag:efi\ndhcp-vendorclass=set:pxe,PXEClient\ndhcp-vendorclass=set:efi,PXEClient:Arch:00007", nil, true},
		{dnsmasqOpen + "dhcp-ignore=tag:out\ndhcp-vendorclass=set:out,PXEClient\ndhcp-host=00:60:8c:*:*:*,set:out", nil, true},
		{dnsmasqOpen + "dhcp-ignore=tag:out\ndhcp-vendorclass=set:pxe,PXEClient\ntag-if=set:out,tag:red,tag:!pxe", nil, true},
		{lease("tag:!out") + "dhcp-vendorclass=set:pxe,PXEClient\ntag-if=set:out,tag:red,tag:pxe", []string{leased}, false},
		{dnsmasqOpen + "dhcp-ignore=tag:out\ndhcp-vendorclass=set:out,PXEClient\ndhcp-mac=set:out,00:60:8c:*:*:*", nil, true},
	})
}

// TestDnsmasqOpensNothing: what keeps a machine out of a range there keeps it out here.
func TestDnsmasqOpensNothing(t *testing.T) {
	all := []string{leased}
	check(t, conf, []closedCase{
		{dnsmasqOpen, all, false},
		{dnsmasqOpen + "dhcp-ignore=tag:!known", nil, false},
		{dnsmasqOpen + "dhcp-ignore=tag:#known", nil, false},
		{dnsmasqOpen + "dhcp-ignore=#known", nil, false},
		{dnsmasqOpen + "dhcp-ignore=!known", nil, false},
		{dnsmasqOpen + "dhcp-ignore=tag:!red", nil, false},
		{dnsmasqOpen + "dhcp-ignore=tag:red", all, false},
		{dnsmasqOpen + "dhcp-ignore=tag:pxe\ndhcp-vendorclass=set:pxe,PXEClient", []string{"not *PXEClient*", leased}, false},
		{dnsmasqOpen + "dhcp-ignore=tag:!pxe\ndhcp-vendorclass=set:pxe,PXEClient", nil, true},
		{dnsmasqOpen + "dhcp-ignore=tag:!pxe,tag:!known\ndhcp-vendorclass=set:pxe,PXEClient", nil, true},
		{dnsmasqOpen + "dhcp-ignore=tag:cards\ndhcp-mac=set:cards,00:60:8c:*:*:*", nil, true},
		{dnsmasqOpen + "dhcp-ignore=tag:named\ndhcp-name-match=set:named,wpad", nil, true},
		{dnsmasqOpen + "dhcp-ignore=tag:eth7", nil, true},
		{dnsmasqOpen + "dhcp-ignore=set:red", nil, true},
		{dnsmasqOpen + "tag-if=set:out,tag:!known\ndhcp-ignore=tag:out", nil, false},
		{dnsmasqOpen + "tag-if=set:out,tag:!red\ntag-if=set:gone,tag:out\ndhcp-ignore=tag:gone", nil, false},
		{dnsmasqOpen + "tag-if=set:b,tag:!known\n" + strings.Repeat("tag-if=set:a,tag:b\ntag-if=set:b,tag:a\ntag-if=set:a,tag:a\n", 50) + "dhcp-ignore=tag:a", nil, false},
		{dnsmasqOpen + "tag-if=set:a,tag:b\ntag-if=set:b,tag:!known\ndhcp-ignore=tag:a", all, false}, // the lines run in order
		{lease("tag:a") + "tag-if=set:a,tag:b\ntag-if=set:b,tag:!known", nil, false},
		{lease("tag:a") + "tag-if=set:b,tag:!known\ntag-if=set:a,tag:b", all, false},
		{lease("tag:a") + "tag-if=set:a,tag:b\ntag-if=set:b,tag:pxe\ndhcp-vendorclass=set:pxe,PXEClient", nil, true},
		{lease("tag:a") + "tag-if=set:b,tag:pxe\ntag-if=set:a,tag:b\ndhcp-vendorclass=set:pxe,PXEClient", []string{leased + " *PXEClient*"}, false},
		{dnsmasqOpen + strings.Repeat("tag-if=set:a,tag:b\ntag-if=set:b,tag:a\n", 50) + "dhcp-ignore=tag:a", all, false},
		{dnsmasqOpen + "dhcp-ignore=tag:\n", nil, true},
		{dnsmasqOpen + "dhcp-host=52:54:*:*:*:*,ignore", nil, true},
		{dnsmasqOpen + "dhcp-host=bert,ignore", nil, true},
		{dnsmasqOpen + "dhcp-host=52:54:00:28:00:12,tag:red,ignore", all, false},
		{dnsmasqOpen + "dhcp-host=id:01:02,ignore", all, false},
		{lease("tag:known"), nil, false},
		{lease("tag:red"), nil, false},
		{lease("tag:!red"), all, false},
		{lease("tag:!known"), all, false},
		{lease("tag:#known"), all, false},
		{lease("tag:!known") + "dhcp-host=52:54:00:28:00:19,m9", nil, true},
		{lease("tag:!red") + "dhcp-host=52:54:00:28:00:19,m9,set:red", nil, true},
		{dnsmasqOpen + "dhcp-host=52:54:00:28:00:19,m9", all, false},
		{dnsmasqOpen + "dhcp-ignore-some=1", nil, true},
		{lease("tag:eth7"), nil, true},
		{lease("set:lab,tag:lab"), nil, true},
		{lease("tag:pxe") + "dhcp-vendorclass=set:pxe,PXEClient", []string{leased + " *PXEClient*"}, false},
		{lease("tag:pxe") + "dhcp-vendorclass=set:pxe,PXEClient\ndhcp-ignore=tag:!known", nil, false},
		{lease("tag:!pxe") + "dhcp-vendorclass=set:pxe,PXEClient", nil, true},
		{lease("tag:#pxe") + "dhcp-vendorclass=set:pxe,PXEClient", nil, true},
		{lease("tag:cards") + "dhcp-mac=set:cards,00:60:8c:*:*:*", nil, true},
		{lease("tag:cards") + "dhcp-host=00:60:8c:*:*:*,set:cards", nil, true},
		{lease("tag:both") + "tag-if=set:both,tag:pxe,tag:cards\ndhcp-vendorclass=set:pxe,PXEClient\ndhcp-mac=set:cards,00:60:8c:*:*:*", nil, true},
		{lease("tag:both") + "tag-if=set:both,tag:pxe,tag:efi\ndhcp-vendorclass=set:pxe,PXEClient\ndhcp-match=set:efi,option:client-arch,7", []string{leased + " *PXEClient*7"}, false},
		{lease("tag:odd") + "dhcp-match=set:odd,option:client-arch", nil, true},
	})
}

// TestDnsmasqProxyNextToLeases: server.dhcp is for the whole server, so of a network with proxy
// and one with leases only the latter is taken over.
func TestDnsmasqProxyNextToLeases(t *testing.T) {
	for _, order := range []string{"dhcp-range=set:proxy,10.77.0.0,proxy,255.255.255.0\n" + dnsmasqOpen, dnsmasqOpen + "dhcp-range=10.77.0.0,proxy,255.255.255.0\n",
		dnsmasqHead + "dhcp-range=10.77.0.0,proxy,255.255.255.0\n"} {
		r, c := importtest.Text(t, conf, order)
		if c.Server.DHCP == pools.DHCPProxy || !r.Restricted || len(c.Subnets) != 1 || c.Subnets[0].CIDR.String() != "10.28.0.0/24" {
			t.Errorf("%s\ndhcp %q, subnets %v\n%s", order, c.Server.DHCP, c.Subnets, importtest.Report(r))
		}
	}
	r, c := importtest.Text(t, conf, "dhcp-range=10.77.0.0,proxy,255.255.255.0\ndhcp-host=52:54:00:28:00:11,m1\n")
	if c.Server.DHCP != pools.DHCPProxy || r.Restricted {
		t.Errorf("proxy alone: dhcp %q\n%s", c.Server.DHCP, importtest.Report(r))
	}
}

// TestDnsmasqOldNegation: an option of tag:#red is for the machines without the tag.
func TestDnsmasqOldNegation(t *testing.T) {
	_, c := importtest.Text(t, conf, dnsmasqHead+`dhcp-host=52:54:00:28:00:12,10.28.0.12,m2
dhcp-option=tag:#red,option:mtu,9000
dhcp-option=net:red,option:ntp-server,10.28.0.7
dhcp-option=red,option:time-offset,3600
dhcp-option=#red,option:log-server,10.28.0.8
`)
	got := map[string]string{}
	for _, n := range c.Pools[0].Nodes {
		for _, tag := range n.Tags {
			for key := range c.Tags[tag].DHCPOptions {
				got[n.Name] += key + " "
			}
		}
	}
	for name, keys := range map[string][]string{"m1": {"ntp-server ", "time-offset "}, "m2": {"mtu ", "log-server "}} {
		if len(got[name]) != len(keys[0])+len(keys[1]) || !strings.Contains(got[name], keys[0]) || !strings.Contains(got[name], keys[1]) {
			t.Errorf("%s has %q, want %q", name, got[name], keys)
		}
	}
}

// TestDnsmasqInterfaces: drover does not serve an interface that dnsmasq has no DHCP on.
func TestDnsmasqInterfaces(t *testing.T) {
	f := migrate.NewFarm(migrate.Options{})
	file := filepath.Join(t.TempDir(), "dnsmasq.conf")
	if err := os.WriteFile(file, []byte("interface=eth1,eth2\nno-dhcp-interface=eth1\nexcept-interface=eth3\ninterface=eth3\n"+dnsmasqOpen), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dnsmasq.Read(f, []string{file}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if got := f.Finish().Server.Interfaces; !slices.Equal(got, []string{"eth2"}) {
		t.Errorf("interfaces %q", got)
	}
}

// TestDhcpdOpensNothing: permissions, wherever they stand.
func TestDhcpdOpensNothing(t *testing.T) {
	all := []string{leased}
	conf := func(global, subnet, pool string) string {
		return global + "subnet 10.28.0.0 netmask 255.255.255.0 { " + subnet + " pool { " + pool + " range 10.28.0.100 10.28.0.150; } }\n"
	}
	check(t, dhcpd.Read, []closedCase{
		{conf("", "", ""), all, false},
		{conf(`class "allowed" { match hardware; } subclass "allowed" 1:52:54:00:28:00:31;`, "", `allow members of "allowed";`), nil, true},
		{conf(`class "pxe" { match if substring (option vendor-class-identifier, 0, 9) = "PXEClient"; }`, "", `allow members of "pxe";`), nil, true},
		{conf("", "", `deny members of "phones";`), nil, true},
		{conf("", "", `allow members of "a"; allow unknown-clients;`), all, false},
		{conf("", "", "allow all clients;"), all, false},
		{conf("", "", "allow known-clients;"), nil, false},
		{conf("", "", "allow known clients;"), nil, false},
		{conf("", "", `allow known-clients; allow members of "a";`), nil, true},
		{conf("", "", "deny unknown-clients;"), nil, false},
		{conf("", "", "deny known-clients;"), all, false},
		{"host m9 { hardware ethernet 52:54:00:28:00:19; }\n" + conf("", "", "deny known-clients;"), nil, true},
		{"host m9 { hardware ethernet 52:54:00:28:00:19; }\n" + conf("", "", "allow unknown-clients;"), nil, true},
		{"host m9 { hardware ethernet 52:54:00:28:00:19; }\n" + conf("", "", "allow unknown-clients; allow known-clients;"), all, false},
		{"host m9 { hardware ethernet 52:54:00:28:00:19; }\n" + conf("", "", ""), all, false},
		{conf("", "", "deny all clients;"), nil, true},
		{conf("", "", "deny dynamic bootp clients;"), all, false},
		{conf("", "", "allow dynamic bootp clients;"), nil, true},
		{conf("", "", "allow authenticated clients;"), nil, true},
		{conf("", "", "deny unauthenticated clients;"), nil, true},
		{conf("", "", "deny after 4 2030/01/01 00:00:00;"), nil, true},
		{conf("", "", "frobnicate on;"), nil, true},
		{conf("", "frobnicate on;", ""), nil, true},
		{conf("", "deny unknown-clients;", ""), nil, false},
		{conf("deny unknown-clients;", "", ""), nil, false},
		{conf("deny unknown-clients;", "", "allow unknown-clients;"), nil, false}, // the permission of a pool is another one
		{conf("deny unknown-clients;", "allow unknown-clients;", ""), all, false},
		{conf("boot-unknown-clients off;", "", ""), nil, false},
		{conf("ignore booting;", "", ""), nil, true},
		{conf("", "deny booting;", ""), nil, true},
		{conf(`class "black" { match hardware; ignore booting; }`, "", ""), nil, true},
		{conf(`class "black" { match hardware; } subclass "black" 1:52:54:00:28:00:31 { deny booting; }`, "", ""), nil, true},
		{conf(`class "one" { spawn with option agent.circuit-id; lease limit 4; }`, "", ""), nil, true},
		{conf(`if not exists agent.circuit-id { ignore booting; }`, "", ""), nil, true},
		{conf("", `if known { option time-offset 1; } else { deny unknown-clients; }`, ""), nil, true},
		{conf("", "", `if exists user-class { option time-offset 1; }`), all, false},
		{conf(`if exists user-class { filename "a"; } else { filename "b"; }`, "", ""), all, false},
		{conf("deny duplicates; deny declines; deny client-updates; deny bootp;", "", ""), all, false},
	})
	_, c := importtest.Text(t, dhcpd.Read, "subnet 10.28.0.0 netmask 255.255.255.0 { }\ngroup { deny booting; host m1 { hardware ethernet 52:54:00:28:00:11; fixed-address 10.28.0.11; }\n"+
		"host m2 { allow booting; hardware ethernet 52:54:00:28:00:12; fixed-address 10.28.0.12; } }\n")
	if n := c.Pools[0].Nodes; len(n) != 2 || !n[0].Ignore || n[1].Ignore {
		t.Errorf("machines of a group that is denied: %+v", n)
	}
}
