package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"drover/cmd/drover/cli/contexts"
	"drover/server/localserver"
	"drover/web/client"
)

// target is the server that a client asks.
type target struct {
	client.Client
	from string // where the token is from
}

// find returns the server: that of --context; of --api or DROVER_API; of the current context;
// or the one of this host.
func (c *Client) find() (*target, error) {
	if c.on != nil {
		return c.on, nil
	}
	x, ok, err := c.chosen()
	if err != nil {
		return nil, err
	}
	if !ok {
		if x, err = c.local(); err != nil {
			return nil, err
		}
	}
	t, err := newTarget(x)
	if err != nil {
		return nil, err
	}
	if c.changed("token-file") || !ok && (!isSocket(x.URL) || c.hasToken()) {
		if t.Token, err = readToken(c.tokenFile); err == nil {
			t.from = c.tokenFile
		} else if path, there := c.socket(); there && !ok {
			t, err = socketTarget(path), nil
		}
	}
	if err != nil {
		return nil, err
	}
	c.on = t
	return t, nil
}

// chosen returns the context to use, if it is one.
func (c *Client) chosen() (x contexts.Context, ok bool, err error) {
	if c.context == "" && (c.elsewhere || c.changed("api") || os.Getenv("DROVER_API") != "") {
		return x, false, nil
	}
	if c.context != "" && c.changed("api") {
		return x, false, &Error{Usage, errors.New("--context and --api both say which server: give one of them")}
	}
	all, err := contexts.Load()
	if err != nil {
		return x, false, err
	}
	x, ok = all.Find(c.context)
	if !ok && c.context != "" {
		err = &Error{Usage, all.Unknown(c.context)}
	}
	return x, ok, err
}

// local returns the server of --api or DROVER_API, else that of this host: where the directory of
// its token says, or where it is by default.
func (c *Client) local() (x contexts.Context, err error) {
	x.URL = c.base
	if c.changed("api") || os.Getenv("DROVER_API") != "" {
		return x, nil
	}
	found, pin, err := localserver.Read(filepath.Dir(c.tokenFile))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission): // reading the token says what is wrong
		return x, nil
	case err != nil:
		return x, err
	}
	x.URL, x.Pin = found.URL, pin
	return x, nil
}

// checkURL returns the checked URL of an API. Plain HTTP is only for this host: on a network
// the token could be read.
func checkURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.User != nil || u.RawQuery != "" {
		return "", fmt.Errorf("--api %q: want http://127.0.0.1:8443 or https://HOST:PORT", text)
	}
	if base := u.Scheme + "://" + u.Host; u.Scheme == "http" && !isLoopback(base) {
		return "", fmt.Errorf("--api %q: plain HTTP would show the token to the network (use https, or a tunnel to the server's loopback)", text)
	}
	return u.Scheme + "://" + u.Host, nil
}

// isLoopback reports whether a URL is of this host.
func isLoopback(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

// readToken reads the API token from its file.
func readToken(file string) (string, error) {
	b, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("API token: %w (drover serve makes it at its first start, as api.token in its --state directory; from another host use drover login)", err)
	case errors.Is(err, fs.ErrPermission):
		return "", fmt.Errorf("API token: %w (only the user that drover serve runs as can read it; others use drover login)", err)
	case err != nil:
		return "", fmt.Errorf("API token: %w", err)
	}
	return CheckToken(file, string(b))
}

// CheckToken returns the token in a text that is from a file, or from elsewhere.
func CheckToken(from, text string) (string, error) {
	token := strings.TrimSpace(text)
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("API token: %s does not hold a token", from)
	}
	return token, nil
}

// At returns a client of the server of a context.
func At(x contexts.Context) (*Client, error) {
	t, err := newTarget(x)
	if err != nil {
		return nil, err
	}
	t.from = "the input"
	return &Client{base: t.Base, on: t}, nil
}

// newTarget returns the server of a context.
func newTarget(x contexts.Context) (*target, error) {
	if isSocket(x.URL) {
		return socketTarget(strings.TrimPrefix(x.URL, socketScheme)), nil
	}
	base, err := checkURL(x.URL)
	if err != nil {
		return nil, &Error{Usage, err}
	}
	config, err := x.TLS()
	if err != nil {
		return nil, fmt.Errorf("context %s: %w", x.Name, err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = config
	transport.DisableCompression = isLoopback(base) // it would take longer than it saves
	return &target{from: "context " + x.Name, Client: client.Client{Base: base, Token: x.Token, HTTP: &http.Client{
		Timeout: apiTimeout, Transport: transport,
		// The token goes to this server only.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}}, nil
}
