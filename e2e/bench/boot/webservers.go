package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"drover/e2e/lab"
	"drover/imagebuild"
	"drover/pools"
)

// webFile is the fetched file: the root of an image, with random content.
type webFile struct {
	images string // drover's directory of images
	path   string // in URLs
	size   int64
	sha256 string
}

const (
	imageName = "bench"
	imageSize = 200_000_000 // bytes
)

// makeImage makes an image of random bytes.
func makeImage(images string) (f webFile, err error) {
	m := imagebuild.Manifest{Name: imageName, KernelVersion: "none", Platform: "linux/amd64", Files: map[string]imagebuild.File{}}
	temp := filepath.Join(images, imageName, "new")
	if err := os.MkdirAll(temp, 0o755); err != nil {
		return f, err
	}
	for name, size := range map[string]int64{imagebuild.KernelFile: 1 << 20, imagebuild.InitrdFile: 1 << 20, imagebuild.SquashfsFile: imageSize} {
		h := sha256.New()
		file, err := os.Create(filepath.Join(temp, name))
		if err != nil {
			return f, err
		}
		_, err = io.CopyN(io.MultiWriter(file, h), rand.Reader, size)
		if err := errors.Join(err, file.Close()); err != nil {
			return f, err
		}
		m.Files[name] = imagebuild.File{Size: size, SHA256: hex.EncodeToString(h.Sum(nil))}
	}
	text, err := json.Marshal(m)
	if err != nil {
		return f, err
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(temp, imagebuild.ManifestFile), text, 0o644),
		os.Rename(temp, filepath.Join(images, imageName, m.ID())),
		os.Symlink(m.ID(), filepath.Join(images, imageName, "current")))
	root := m.Files[imagebuild.SquashfsFile]
	return webFile{images: images, path: pools.ImagePath + imageName + "/" + m.ID() + "/" + imagebuild.SquashfsFile, size: root.Size, sha256: root.SHA256}, err
}

// check fetches the file once and compares it.
func (f webFile) check(ctx context.Context, from *lab.Rack, addr netip.AddrPort) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr.String()+f.path, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := from.HTTPClient().Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	h := sha256.New()
	n, err := io.Copy(h, resp.Body)
	if err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); resp.StatusCode != http.StatusOK || got != f.sha256 {
		return fmt.Errorf("%s: %d bytes with digest %s, want %d with %s", resp.Status, n, got, f.size, f.sha256)
	}
	return nil
}

// startPinned starts a server on its processor.
func startPinned(rack *lab.Rack, name string, env []string, args ...string) (*lab.Process, error) {
	cmd := exec.Command("taskset", append([]string{"-c", fmt.Sprint(serverCPU)}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	return rack.Start(name, cmd)
}

// startWebDrover starts drover as operators run it, with all listeners except DHCP, the log at
// level info, and a node at each address that asks.
func (b *bench) startWebDrover(rack *lab.Rack, dir string, addr netip.AddrPort, file webFile) (*lab.Process, error) {
	var config strings.Builder
	fmt.Fprintf(&config, `server: {interfaces: [%s], address: %s, dhcp: "off", http: "%s", api: "127.0.0.1:8443"}
subnets: [{cidr: %s}]
pools:
  - name: rack
    image: %s
    nodes:
`, wireName, addr.Addr(), addr, wireSubnet, imageName)
	for n, addr := range clientIPs() {
		fmt.Fprintf(&config, "      - {name: n%d, macs: [\"52:54:00:98:01:%02x\"], ip: %s}\n", n, n, addr)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	name := filepath.Join(dir, "drover.yaml")
	if err := os.WriteFile(name, []byte(config.String()), 0o644); err != nil {
		return nil, err
	}
	return startPinned(rack, "drover", nil, b.drover, "serve", "-c", name, "--state", filepath.Join(dir, "state"), "--images", file.images)
}

// startWebNginx starts nginx, configured for large files.
func (b *bench) startWebNginx(rack *lab.Rack, dir string, addr netip.AddrPort, file webFile) (*lab.Process, error) {
	config, err := b.nginxConfig(dir, "worker_processes 1; # for the one processor that it has: what auto means", fmt.Sprintf(`
    server {
      listen %s;
      location %s { alias %s/; add_header Cache-Control "public, max-age=31536000, immutable"; }
    }`, addr, pools.ImagePath, file.images))
	if err != nil {
		return nil, err
	}
	return startPinned(rack, "nginx", []string{b.programs.Env()}, b.nginxCommand(dir, config)...)
}

// nginxConfig writes a config with the given servers.
func (b *bench) nginxConfig(dir, workers, servers string) (file string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	text := fmt.Sprintf(`user root;
%[2]s
daemon off;
pid %[1]s/nginx.pid;
error_log %[1]s/error.log;
events { worker_connections 1024; }
http {
    sendfile on;
    tcp_nopush on;
    tcp_nodelay on;
    keepalive_requests 100000;
    default_type application/octet-stream;
    access_log %[1]s/access.log;
    client_body_temp_path %[1]s/body;
    proxy_temp_path %[1]s/proxy;
    fastcgi_temp_path %[1]s/fastcgi;
    uwsgi_temp_path %[1]s/uwsgi;
    scgi_temp_path %[1]s/scgi;
    %[3]s
}
`, dir, workers, servers)
	file = filepath.Join(dir, "nginx.conf")
	return file, os.WriteFile(file, []byte(text), 0o644)
}

func (b *bench) nginxCommand(dir, config string) []string {
	return []string{b.programs.Program("nginx"), "-p", dir, "-e", filepath.Join(dir, "error.log"), "-c", config}
}
