package listen_test

import (
	"fmt"
	"slices"
	"testing"

	"drover/pools"
	"drover/pools/config/listen"
)

// TestShared: two listeners cannot have one port, unless each has an address of its own.
func TestShared(t *testing.T) {
	for _, tt := range []struct {
		name   string
		server pools.Server
		want   []string
	}{
		{"ports of their own", pools.Server{HTTP: ":80", HTTPS: ":443", API: ":8443", TFTP: ":69", Netconsole: ":6666"}, nil},
		{"no https", pools.Server{HTTP: ":80", API: ":8443"}, nil},
		{"all three", pools.Server{HTTP: ":80", HTTPS: ":80", API: ":80"}, []string{"server.http server.https", "server.http server.api", "server.https server.api"}},
		{"all addresses", pools.Server{HTTP: ":80", API: "127.0.0.1:80"}, []string{"server.http server.api"}},
		{"all addresses in figures", pools.Server{HTTP: "10.28.0.2:80", API: "[::]:80"}, []string{"server.http server.api"}},
		{"one address in two forms", pools.Server{HTTPS: "[fd00::0:2]:443", API: "[fd00::2]:0443"}, []string{"server.https server.api"}},
		{"localhost", pools.Server{HTTPS: "localhost:443", API: "127.0.0.1:443"}, []string{"server.https server.api"}},
		{"addresses of their own", pools.Server{HTTP: "10.28.0.2:80", HTTPS: "[fd00:28::2]:80", API: "127.0.0.1:80"}, nil},
		{"UDP", pools.Server{TFTP: ":69", Netconsole: "10.28.0.2:69"}, []string{"server.tftp server.netconsole"}},
		{"TCP and UDP", pools.Server{HTTP: ":69", TFTP: ":69"}, nil},
		{"any port", pools.Server{HTTP: "127.0.0.1:0", API: "127.0.0.1:0"}, nil},
		{"no ports", pools.Server{HTTP: "a", API: "a", TFTP: ":x", Netconsole: ":x"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			listen.Shared(&tt.server, func(first, second listen.Listener) { got = append(got, fmt.Sprint(first.Name, " ", second.Name)) })
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
