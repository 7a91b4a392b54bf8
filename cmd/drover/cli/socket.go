package cli

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"drover/pools"
	"drover/web/client"
)

// socketEnv names the socket of this host, where it is not [pools.DefaultSocket].
const socketEnv = "DROVER_SOCKET"

// socket returns the unix socket of the server of this host, if nothing says another server
// or token, and this user may connect.
func (c *Client) socket() (path string, there bool) {
	if c.elsewhere || c.changed("api") || os.Getenv("DROVER_API") != "" || c.hasToken() {
		return "", false
	}
	path = cmp.Or(os.Getenv(socketEnv), pools.DefaultSocket)
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return "", false
	}
	_ = conn.Close()
	return path, true
}

// hasToken reports whether the operator names a file with a token.
func (c *Client) hasToken() bool {
	return c.changed("token-file") || os.Getenv("DROVER_TOKEN_FILE") != ""
}

// socketScheme is the begin of a URL that is the path of a socket.
const socketScheme = "unix:"

func isSocket(url string) bool { return strings.HasPrefix(url, socketScheme) }

// socketTarget returns the server behind a unix socket, which needs no token.
func socketTarget(path string) *target {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy, transport.DisableCompression = nil, true
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return &target{from: "the socket " + path, Client: client.Client{Base: "http://localhost", HTTP: &http.Client{Timeout: apiTimeout, Transport: transport}}}
}
