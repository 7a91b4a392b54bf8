package lldp_test

import (
	"reflect"
	"strings"
	"testing"

	"drover/e2e/netns"
	"drover/node/lldp"
	"drover/pools"
)

// The parts of an announcement.
var (
	chassis = netns.TLV(1, "\x04\x02\x00\x00\x00\x00\x01")
	port    = netns.TLV(2, "\x05ge-0/0/7")
	ttl     = netns.TLV(3, "\x00\x78")
	end     = netns.TLV(0, "")
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name string
		pdu  []string
		want pools.Neighbour // no chassis: refused
	}{
		{"a switch", []string{chassis, port, ttl, netns.TLV(4, "to rack 7"), netns.TLV(5, "leaf-7"), netns.TLV(6, "Junos"), netns.TLV(7, "\x00\x14\x00\x14"), netns.TLV(127, "\x00\x80\xc2\x01\x00\x01"), end},
			pools.Neighbour{System: "leaf-7", Chassis: "02:00:00:00:00:01", Port: "ge-0/0/7", Description: "to rack 7"}},
		{"no more than it must", []string{chassis, port, ttl, end}, pools.Neighbour{Chassis: "02:00:00:00:00:01", Port: "ge-0/0/7"}},
		{"padding of the frame", []string{chassis, port, ttl, end, strings.Repeat("\x00", 20)}, pools.Neighbour{Chassis: "02:00:00:00:00:01", Port: "ge-0/0/7"}},
		{"no end", []string{chassis, port, ttl}, pools.Neighbour{Chassis: "02:00:00:00:00:01", Port: "ge-0/0/7"}},
		{"addresses", []string{netns.TLV(1, "\x05\x01\x0a\x1c\x00\x03"), netns.TLV(2, "\x03\x02\x00\x00\x00\x00\x09"), ttl, end}, pools.Neighbour{Chassis: "10.28.0.3", Port: "02:00:00:00:00:09"}},
		{"an address of IPv6, a local port", []string{netns.TLV(1, "\x05\x02\xfd"+strings.Repeat("\x00", 14)+"\x01"), netns.TLV(2, "\x0717"), ttl, end}, pools.Neighbour{Chassis: "fd00::1", Port: "17"}},
		{"zero bytes at the end", []string{chassis, netns.TLV(2, "\x05swp1\x00\x00"), ttl, netns.TLV(5, "leaf\x00"), end}, pools.Neighbour{System: "leaf", Chassis: "02:00:00:00:00:01", Port: "swp1"}},
		{"a switch that shuts down", []string{chassis, port, netns.TLV(3, "\x00\x00"), end}, pools.Neighbour{}},
		{"the port first", []string{port, chassis, ttl, end}, pools.Neighbour{}},
		{"no time to live", []string{chassis, port, end}, pools.Neighbour{}},
		{"a short time to live", []string{chassis, port, netns.TLV(3, "\x78"), end}, pools.Neighbour{}},
		{"two ports", []string{chassis, port, ttl, port, end}, pools.Neighbour{}},
		{"an empty port", []string{chassis, netns.TLV(2, "\x05"), ttl, end}, pools.Neighbour{}},
		{"a long port", []string{chassis, netns.TLV(2, "\x05"+strings.Repeat("x", 256)), ttl, end}, pools.Neighbour{}},
		{"cut off", []string{chassis, port, ttl, netns.TLV(5, "leaf-7")[:5]}, pools.Neighbour{}},
		{"cut off in a head", []string{chassis, port, ttl, "\x0a"}, pools.Neighbour{}},
		{"nothing", nil, pools.Neighbour{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := lldp.Parse([]byte(strings.Join(tt.pdu, "")))
			if ok != (tt.want.Chassis != "") || ok && !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, %v; want %+v", got, ok, tt.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(chassis + port + ttl + netns.TLV(5, "leaf-7") + end))
	f.Add([]byte(chassis + port + ttl + "\x0a"))
	f.Add([]byte(netns.TLV(1, "\x05\x01") + port + ttl))
	f.Fuzz(func(t *testing.T, pdu []byte) {
		if n, ok := lldp.Parse(pdu); ok && len(n.Chassis+n.Port) > 2*3*256 {
			t.Errorf("got %d bytes", len(n.Chassis+n.Port))
		}
	})
}
