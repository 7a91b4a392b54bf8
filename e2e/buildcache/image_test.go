package buildcache

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"
)

// trees are the folders that are copied into the root of the node image.
var trees = []string{"../../nodeimage/root", "../../nodeimage/lab"}

// TestUnitsAreEnabled checks that the Dockerfile enables each unit with an [Install]
// section, which does nothing otherwise.
func TestUnitsAreEnabled(t *testing.T) {
	recipe, err := os.ReadFile("../../" + dockerfile)
	if err != nil {
		t.Fatal(err)
	}
	var enabled []string
	joined := strings.ReplaceAll(string(recipe), "\\\n", " ")
	for _, m := range regexp.MustCompile(`systemctl enable ([^&;\n]*)`).FindAllStringSubmatch(joined, -1) {
		for unit := range strings.FieldsSeq(m[1]) {
			enabled = append(enabled, strings.TrimSuffix(unit, ".service"))
		}
	}
	var units int
	for _, tree := range trees {
		found, err := filepath.Glob(tree + "/usr/lib/systemd/system/*.*")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			content, err := os.ReadFile(path)
			if err != nil || !bytes.Contains(content, []byte("\n[Install]\n")) {
				continue // a folder of drop-ins
			}
			units++
			if name := strings.TrimSuffix(filepath.Base(path), ".service"); !slices.Contains(enabled, name) {
				t.Errorf("%s has an [Install] section, but %s enables only %q", path, dockerfile, enabled)
			}
		}
	}
	if units == 0 {
		t.Error("found no units")
	}
}

// TestTreesFitAMergedUsr checks that no layer has a folder /bin, /lib or /sbin, which are
// links into /usr on Debian. Such a folder would replace the link, and programs would no
// longer find their libraries.
func TestTreesFitAMergedUsr(t *testing.T) {
	for _, tree := range trees {
		found, err := os.ReadDir(tree)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if got, want := f.Name(), []string{"etc", "usr"}; !slices.Contains(want, got) {
				t.Errorf("%s: got folder %q, want only %q", tree, got, want)
			}
		}
	}
}

// TestMountUnitNames checks the names of mount units. systemd ignores a mount unit that
// is not named after its path.
func TestMountUnitNames(t *testing.T) {
	where := regexp.MustCompile(`(?m)^Where=/(.*)$`)
	var mounts int
	err := filepath.WalkDir(trees[0], func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".mount" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		mounts++
		m := where.FindSubmatch(content)
		if m == nil {
			t.Errorf("%s: no Where=", path)
			return nil
		}
		if got, want := filepath.Base(path), strings.ReplaceAll(string(m[1]), "/", "-")+".mount"; got != want {
			t.Errorf("Where=/%s: got a unit %q, want %q", m[1], got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if mounts == 0 {
		t.Error("found no mounts")
	}
}

// TestBridgeTemplate renders the CNI config as containerd does, for the pod network of a
// Node.
func TestBridgeTemplate(t *testing.T) {
	tmpl, err := template.ParseFiles("../../nodeimage/lab/etc/cni/bridge.conflist.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name           string
		ranges, routes []string
	}{
		{"IPv4", []string{"10.244.7.0/24"}, []string{"0.0.0.0/0"}},
		{"both families", []string{"10.244.7.0/24", "fd00:7::/64"}, []string{"0.0.0.0/0", "::/0"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			// The fields are those of containerd's cniConfigTemplate.
			data := struct {
				PodCIDR               string
				PodCIDRRanges, Routes []string
			}{tt.ranges[0], tt.ranges, tt.routes}
			if err := tmpl.Execute(&b, data); err != nil {
				t.Fatal(err)
			}
			var conf struct {
				Plugins []struct {
					Type string
					IPAM struct {
						Ranges [][]struct{ Subnet string }
						Routes []struct{ Dst string }
					}
				}
			}
			if err := json.Unmarshal(b.Bytes(), &conf); err != nil {
				t.Fatalf("%v in\n%s", err, b.Bytes())
			}
			var plugins, subnets, routes []string
			for _, p := range conf.Plugins {
				plugins = append(plugins, p.Type)
				for _, r := range p.IPAM.Ranges {
					for _, s := range r {
						subnets = append(subnets, s.Subnet)
					}
				}
				for _, r := range p.IPAM.Routes {
					routes = append(routes, r.Dst)
				}
			}
			if want := []string{"bridge", "portmap"}; !slices.Equal(plugins, want) {
				t.Errorf("plugins: got %q, want %q", plugins, want)
			}
			if !slices.Equal(subnets, tt.ranges) {
				t.Errorf("subnets: got %q, want %q", subnets, tt.ranges)
			}
			if !slices.Equal(routes, tt.routes) {
				t.Errorf("routes: got %q, want %q", routes, tt.routes)
			}
		})
	}
}
