package nodeconfig

import (
	"os"
	"path/filepath"
	"testing"

	"drover/e2e/fixture"
)

func TestLendResolvConf(t *testing.T) {
	const text = "nameserver 10.77.0.1\n"
	for _, tt := range []struct {
		name        string
		image       map[string]string
		text        string
		lent, after string // content of /etc/resolv.conf; "-": no file
	}{
		{"link to what systemd-resolved will write", map[string]string{"/etc/resolv.conf": "->../run/systemd/resolve/stub-resolv.conf"}, text, text, "-"},
		{"none", nil, text, text, text},
		{"empty", map[string]string{"/etc/resolv.conf": ""}, text, text, text},
		{"the image's own", map[string]string{"/etc/resolv.conf": "nameserver 9.9.9.9\n"}, text, "nameserver 9.9.9.9\n", "nameserver 9.9.9.9\n"},
		{"DHCP gave none", nil, "", "-", "-"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := fixture.Tree(t, tt.image)
			see := func() string {
				b, err := os.ReadFile(filepath.Join(root, "/etc/resolv.conf"))
				if err != nil {
					return "-"
				}
				return string(b)
			}
			restore, err := LendResolvConf(root, tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if got := see(); got != tt.lent {
				t.Errorf("lent: got %q, want %q", got, tt.lent)
			}
			if err := restore(); err != nil {
				t.Fatal(err)
			}
			if got := see(); got != tt.after {
				t.Errorf("after: got %q, want %q", got, tt.after)
			}
			if _, err := os.Stat(filepath.Join(root, "/run")); err == nil {
				t.Errorf("/run was left behind")
			}
		})
	}
}

// TestLendResolvConfKeepsOthers: what a script wrote in place of the lent file stays.
func TestLendResolvConfKeepsOthers(t *testing.T) {
	root := fixture.Tree(t, nil)
	restore, err := LendResolvConf(root, "nameserver 10.77.0.1\n")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "/etc/resolv.conf")
	if err := os.WriteFile(path, []byte("nameserver 10.0.0.1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := restore(); err != nil {
		t.Fatal(err)
	}
	if got := fixture.ReadFile(t, path); got != "nameserver 10.0.0.1\n" {
		t.Errorf("got %q", got)
	}
}

func TestLendResolvConfKeepsNeighbours(t *testing.T) {
	root := fixture.Tree(t, map[string]string{"/etc/resolv.conf": "->../run/systemd/resolve/stub-resolv.conf"})
	restore, err := LendResolvConf(root, "nameserver 10.77.0.1\n")
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(root, "/run/systemd/other")
	if err := os.WriteFile(other, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := restore(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}
