package server

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"drover/dhcp"
	"drover/imagebuild"
	"drover/pools"
	"drover/pools/boots"
	"drover/server/catalog"
)

// peerConfig is testConfig for two servers: without the range.
var peerConfig = strings.Replace(testConfig[:strings.Index(testConfig, "  - {name: rest,")], "dhcp: full}", "dhcp: full, also: [http://10.28.0.2, http://10.28.0.3]}", 1)

func peerServer(t *testing.T, config string, state string) *Server {
	t.Helper()
	if err := os.WriteFile("drover.yaml", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Config: "drover.yaml", State: state, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Two servers with one config and one key differ in nothing, whatever is in their section server;
// each difference that a machine would see has a name.
func TestPeersCompare(t *testing.T) {
	t.Chdir(t.TempDir())
	a := peerServer(t, peerConfig, "a")
	for _, tt := range []struct{ name, config, want string }{
		{"alike", peerConfig, ""},
		{"another address", strings.Replace(peerConfig, "address: 10.28.0.2", "address: 10.28.0.3", 1), ""},
		{"a node", strings.Replace(peerConfig, "ip: 10.28.0.10", "ip: 10.28.0.11", 1), "config"},
		{"mode of DHCP", strings.Replace(peerConfig, "dhcp: full", "dhcp: proxy", 1), "server.dhcp"},
		{"HTTPS", strings.Replace(peerConfig, "dhcp: full", `dhcp: full, https: ":8444"`, 1), "server.https, and its key"},
	} {
		b := peerServer(t, tt.config, "b "+tt.name)
		if string(b.peers.Key) == string(a.peers.Key) || b.peers.ID == a.peers.ID {
			t.Error("two servers that were not told otherwise share a key, or their ID")
		}
		d := digests{key: a.peers.Key, server: b, images: &catalog.Catalog{Dir: imagebuild.Open("images"), Farm: b.Live, Channels: b.Store.Channels}, tls: b.http.TLS}
		differ := ""
		mine := a.peers.Digests()
		for name, digest := range d.all() {
			if mine[name] != digest {
				differ += name
			}
		}
		if differ != tt.want {
			t.Errorf("%s: differs in %q, want %q", tt.name, differ, tt.want)
		}
	}
}

// A boot whose script came from the other server belongs to a machine here, too; a REQUEST that
// names the other server ends the boot here. A lone server shares nothing.
func TestPeersBoot(t *testing.T) {
	if s := testServer(t); s.peers != nil || s.Store.Boots.Sharing != nil || s.http.Peers != nil {
		t.Error("a lone server has peers")
	}
	t.Chdir(t.TempDir())
	s := peerServer(t, peerConfig, "a")
	if got := s.others(); len(got) != 1 || got[0].String() != "10.28.0.3:80" {
		t.Errorf("other servers: got %v", got)
	}
	mac := pools.MAC{0x52, 0x54, 0, 0x77, 1, 1}
	plan := s.Machines.Of(mac).Plan
	s.Store.Boots.Discover(plan, s.Store.Boots.Now())
	s.exchange(dhcp.Exchange{Type: "REQUEST", Decision: dhcp.OtherServer, MAC: mac, Plan: plan})
	if b, _ := s.Store.Boots.Current(mac); !b.Elsewhere {
		t.Errorf("after a REQUEST to the other server: %+v", b)
	}
	s.hearClaim("b", boots.Claim{MAC: mac, Nonce: make([]byte, 32), Key: make([]byte, 32), Issued: s.Store.Boots.Now(), End: boots.StepOnline})
	if b, _ := s.Store.Boots.Current(mac); !b.Ended() || b.Elsewhere {
		t.Errorf("told of its end: %+v", b)
	}
	s.hearClaim("b", boots.Claim{MAC: pools.MAC{2}}) // of no machine here
}
