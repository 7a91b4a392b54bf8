package attack

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hpke"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"testing"
	"time"

	pin "github.com/pin/tftp/v3"

	"drover/e2e/netns"
	"drover/pools"
	"drover/pools/boots"
)

// Machine is a machine that boots by PXE.
type Machine struct {
	Net   netns.Namespace
	MAC   pools.MAC
	Pause time.Duration // between DHCP and the boot script, as of slow firmware
	Limit time.Duration // of a boot; default [BootLimit]
	Via   string        // the router; "": the server is on the wire

	Address string // from DHCP
	nonce   string
	key     hpke.PrivateKey
}

// BootLimit is the time limit of a boot. Other work shares the host.
const BootLimit = 2 * time.Minute

// Boot boots the machine as firmware and drover-init do: an address by a DHCP client, the
// loader by TFTP, then script, kernel, initrd, root image and node config by HTTP. It
// repeats requests that get no answer, as firmware does, and returns the time that the boot
// took.
func (m *Machine) Boot(t testing.TB) (time.Duration, error) {
	t.Helper()
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(m.Limit, BootLimit))
	defer cancel()
	m.Lease(t, true)
	err := retry(ctx, func() error {
		loader, err := m.TFTP("undionly.kpxe")
		if err == nil && len(loader) != 80<<10 {
			err = fmt.Errorf("the loader has %d bytes", len(loader))
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("loader: %w", err)
	}
	time.Sleep(m.Pause)
	if err := m.load(ctx); err != nil {
		return 0, err
	}
	err = retry(ctx, func() error { return m.Configure(ctx) })
	return time.Since(begin) - m.Pause, err
}

// Lease gets an address by udhcpc, as firmware or as an operating system, and sets it.
// udhcpc gives up after three REQUESTs, and on a busy host it sometimes overlooks an ACK
// that has arrived: Lease starts it again, as firmware begins anew.
func (m *Machine) Lease(t testing.TB, firmware bool) {
	t.Helper()
	c := &netns.Client{Kind: netns.Udhcpc(), Namespace: m.Net, Device: "eth0", Dir: t.TempDir()}
	args := []string{"-t", "20", "-T", "1"}
	if firmware {
		args = append(args, "-V", "PXEClient:Arch:00000:UNDI:002001", "-x", "93:0000")
	}
	for range 5 {
		c.Start(t, args...)
		facts := c.WaitOrEnd(t, netns.Bound)
		c.Kill() // without a RELEASE
		if facts != nil {
			if m.Address = facts["address"]; m.Via != "" {
				m.Net.IP(t, "route", "replace", "default", "via", m.Via, "dev", "eth0")
			}
			return
		}
	}
	t.Fatalf("%s gets no address", m.MAC)
}

// TFTP fetches a file.
func (m *Machine) TFTP(name string) ([]byte, error) { return FetchTFTP(m.Net, name) }

// FetchTFTP fetches a file from a namespace.
func FetchTFTP(n netns.Namespace, name string) ([]byte, error) {
	var b bytes.Buffer
	err := n.Do(func() error {
		c, err := pin.NewClient(ServerAddr + ":69")
		if err != nil {
			return err
		}
		c.SetTimeout(2 * time.Second)
		c.SetRetries(5)
		r, err := c.Receive(name, "octet")
		if err == nil {
			_, err = r.WriteTo(&b)
		}
		return err
	})
	return b.Bytes(), err
}

var (
	nonceWord = regexp.MustCompile(`\bdrover\.nonce=([0-9a-f]{16,})`)
	imageFile = regexp.MustCompile(pools.ImagePath + `[^\s/]+/[^\s/]+/(?:kernel|initrd|root\.squashfs)\b`)
)

// load fetches the script and the files in it.
func (m *Machine) load(ctx context.Context) error {
	var script string
	err := retry(ctx, func() (err error) {
		script, err = Get(ctx, m.Net, pools.ScriptPath+m.MAC.Dashed())
		return err
	})
	if err != nil {
		return fmt.Errorf("script: %w", err)
	}
	nonce := nonceWord.FindStringSubmatch(script)
	if nonce == nil {
		return fmt.Errorf("the script boots nothing:\n%s", script)
	}
	m.nonce = nonce[1]
	files := map[string]bool{}
	for _, path := range imageFile.FindAllString(script, -1) {
		files[path] = true
	}
	if len(files) != 3 {
		return fmt.Errorf("the script has files %v, want three:\n%s", files, script)
	}
	for path := range files {
		if err := retry(ctx, func() error { return fetch(ctx, m.Net, "http://"+ServerAddr+path) }); err != nil {
			return err
		}
	}
	return nil
}

// Configure makes a key and fetches the node config with the nonce of the last script. A
// config without files is an error.
func (m *Machine) Configure(ctx context.Context) (err error) {
	if m.key == nil {
		if m.key, err = pools.NewKey(); err != nil {
			return err
		}
	}
	var c pools.NodeConfig
	if err := m.open(ctx, "config", &c); err != nil {
		return err
	}
	if len(c.Files) == 0 {
		return errors.New("the node config has no files")
	}
	return nil
}

// Join fetches what the node joins its cluster with, after [Machine.Boot].
func (m *Machine) Join(ctx context.Context) (c pools.JoinConfig, err error) {
	return c, m.open(ctx, "join", &c)
}

// open requests a sealed answer for this boot and opens it.
func (m *Machine) open(ctx context.Context, purpose string, into any) error {
	sealed, err := m.post(ctx, purpose, m.MAC, m.nonce, m.key)
	if err != nil {
		return err
	}
	plain, err := pools.Open(m.key, m.MAC, purpose, sealed)
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, into)
}

// WithNewKey returns a copy of the machine with the same nonce and without a key: it makes
// another one.
func (m *Machine) WithNewKey() *Machine {
	return &Machine{Net: m.Net, MAC: m.MAC, Address: m.Address, nonce: m.nonce}
}

// post requests the node config of a MAC, or its join.
func (m *Machine) post(ctx context.Context, purpose string, mac pools.MAC, nonce string, key hpke.PrivateKey) ([]byte, error) {
	body, err := json.Marshal(pools.KeyRequest{PublicKey: key.PublicKey().Bytes()})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+ServerAddr+pools.NodePath+mac.Dashed()+"/"+purpose, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(pools.NonceHeader, nonce)
	return do(m.Net, req)
}

// Fail reports that a step of the boot failed.
func (m *Machine) Fail(ctx context.Context, step boots.Step, problem string) error {
	body, err := json.Marshal(boots.Event{Step: step, Error: problem, Uptime: 1})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+ServerAddr+pools.NodePath+m.MAC.Dashed()+"/events", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(pools.NonceHeader, m.nonce)
	_, err = do(m.Net, req)
	return err
}

// Steal tries to get the node config of a machine from a namespace, as an attacker does: it
// fetches a script, takes the nonce, and requests the config with a key of its own. The
// error has the step that failed.
func Steal(ctx context.Context, n netns.Namespace, mac pools.MAC) error {
	thief := &Machine{Net: n, MAC: mac}
	script, err := Get(ctx, n, pools.ScriptPath+mac.Dashed())
	if err != nil {
		return err
	}
	nonce := nonceWord.FindStringSubmatch(script)
	if nonce == nil {
		return errors.New("the script has no nonce")
	}
	thief.nonce = nonce[1]
	return thief.Configure(ctx)
}

// Get fetches a path of the node-facing listener.
func Get(ctx context.Context, n netns.Namespace, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+ServerAddr+path, http.NoBody)
	if err != nil {
		return "", err
	}
	b, err := do(n, req)
	return string(b), err
}

// do sends a request. An answer other than 2xx is an error.
func do(n netns.Namespace, req *http.Request) ([]byte, error) {
	resp, err := HTTP(n, 20*time.Second).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil && resp.StatusCode/100 != 2 {
		err = &statusError{resp.StatusCode, fmt.Sprintf("%s: %s: %s", req.URL.Path, resp.Status, bytes.TrimSpace(b))}
	}
	return b, err
}

// statusError is the error of an answer other than 2xx.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }

// fetch downloads a file as drover-init does: it waits in the queue for images.
func fetch(ctx context.Context, n netns.Namespace, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set(pools.WaitHeader, "4")
	resp, err := HTTP(n, BootLimit).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	size, err := io.Copy(io.Discard, resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || size != resp.ContentLength) {
		err = &statusError{resp.StatusCode, fmt.Sprintf("%s: %s, %d of %d bytes", req.URL.Path, resp.Status, size, resp.ContentLength)}
	}
	return err
}

// retry repeats an action until it succeeds, is refused (403, 404, 409), or ctx ends.
func retry(ctx context.Context, try func() error) error {
	for {
		err := try()
		refused, ok := errors.AsType[*statusError](err)
		if err == nil || ok && (refused.status == 403 || refused.status == 404 || refused.status == 409) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; the last time: %w", context.Cause(ctx), err)
		case <-time.After(time.Second):
		}
	}
}
