package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// apart are rules about our own packages: no package of a room imports a package of the rooms
// in never. A room is a folder with all below it.
var apart = []struct {
	room  string
	never []string
	why   string
}{
	{"internal", []string{""}, "helpers know nothing of drover, so that every room may use them"},
	{"pools", slices.Concat(protocols, services, tops), "the domain does not know who uses it"},
	{"dhcp", slices.Concat(others("dhcp"), services, tops), "protocols never import each other: server connects them by interfaces of one or two methods"},
	{"tftp", slices.Concat(others("tftp"), services, tops), "protocols never import each other"},
	{"httpboot", slices.Concat(others("httpboot"), services, tops), "protocols never import each other"},
	{"web", slices.Concat(others("web"), []string{"kube", "tenants", "hardware", "state", "imagebuild"}, tops), "API and page ask for changes, and do not know how they are made"},
	{"kube", slices.Concat(protocols, []string{"tenants", "hardware", "state", "migrate", "imagebuild"}, tops), "a cluster is asked for joins alone, of whatever machine"},
	{"tenants", slices.Concat(protocols, []string{"hardware", "state", "migrate", "imagebuild"}, tops), "a control plane knows no machines"},
	{"hardware", slices.Concat(protocols, []string{"kube", "tenants", "state", "migrate", "imagebuild"}, tops), "a chassis can be asked without a server"},
	{"state", slices.Concat(protocols, []string{"kube", "tenants", "hardware", "migrate", "imagebuild"}, tops), "tables do not know why they change"},
	{"migrate", slices.Concat(protocols, []string{"kube", "tenants", "state", "imagebuild"}, tops), "a foreign config becomes one of drover, without a server"},
	{"imagebuild", slices.Concat(protocols, services, tops, []string{"pools"}), "an image is built where there is no farm"},
	{"node", slices.Concat(protocols, services, []string{"server", "cmd", "pools/config"}), "it runs on machines, and is part of each initrd: small, and without the server's rights"},
	{"server", []string{"node", "cmd"}, "flags and printing are in cmd"},
	{"cmd/drover-init", slices.Concat(protocols, services, []string{"server", "cmd/drover"}), "as node"},
	{"cmd/drover", []string{"node", "cmd/drover-init"}, "what runs on machines is not in the server's program"},
}

// The rooms by floor. Above them is cmd, below them pools, and internal at the bottom.
var (
	protocols = []string{"dhcp", "tftp", "httpboot", "web"}
	services  = []string{"kube", "tenants", "hardware", "state", "migrate", "imagebuild"}
	tops      = []string{"server", "node", "cmd"}
)

// others returns the protocols but one.
func others(than string) []string {
	return slices.DeleteFunc(slices.Clone(protocols), func(p string) bool { return p == than })
}

// allowed are the exceptions: small packages of data and formats that another room reads.
var allowed = map[string][]string{
	"drover/imagebuild/manifest": {"node"},    // what an image is made of
	"drover/tenants/pki":         {"server"},  // keys and certificates
	"drover/hardware/importer":   {"migrate"}, // a table of machines
	"drover/migrate/nodefile":    {"web"},     // files of nodes, for the page too
	"drover/node/tftp":           {"server"},  // the client of machines, in tests
}

// onlyIn lists libraries that are for some rooms only.
var onlyIn = map[string][]string{
	"k8s.io/":                                 {"kube", "tenants"},
	"github.com/prometheus/":                  {"server/metrics"},
	"github.com/insomniacslk/dhcp/":           {"dhcp", "node/nic"},
	"github.com/pin/tftp/":                    {"cmd/drover/doctor", "tftp"},
	"gopkg.in/yaml.v3":                        {"pools/config/decode", "hardware/importer", "migrate"},
	"github.com/spf13/cobra":                  {"cmd/drover"},
	"github.com/klauspost/compress/":          {"imagebuild"},
	"github.com/diskfs/go-diskfs":             {"imagebuild/media"},
	"github.com/google/go-containerregistry/": {"imagebuild/registry", "imagebuild/oci"},
	"github.com/ulikunitz/xz":                 {"imagebuild/initrd"},
	"github.com/vishvananda/netlink":          {"node/nic"},
	"github.com/mdlayher/packet":              {"dhcp"},
	"github.com/rogpeppe/go-internal/":        {"cmd/drover"},
	"github.com/coreos/go-oidc/":              {"web/auth/oidc"},
	"golang.org/x/oauth2":                     {"web/auth/oidc"},
	"golang.org/x/crypto/ssh":                 {"hardware/sshcli", "pools/sshca"},
}

func TestArrows(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		folder := filepath.ToSlash(filepath.Dir(strings.TrimPrefix(path, "../../")))
		if in(folder, "e2e") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		seen[folder] = true
		for _, spec := range f.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			checkArrow(t, path, folder, imported)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range apart {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(seen)), func(folder string) bool { return in(folder, rule.room) }) {
			t.Errorf("the room %s has no Go files: is the test looking in the right place?", rule.room)
		}
	}
}

// in reports whether a folder is a room or below it. The room "" has all folders.
func in(folder, room string) bool {
	return room == "" || folder == room || strings.HasPrefix(folder, room+"/")
}

func checkArrow(t *testing.T, path, folder, imported string) {
	t.Helper()
	test := strings.HasSuffix(path, "_test.go")
	inAny := func(rooms []string, folder string) bool {
		return slices.ContainsFunc(rooms, func(room string) bool { return in(folder, room) })
	}
	own, ours := strings.CutPrefix(imported, "drover/")
	if ours && in(own, "e2e") && !test {
		t.Errorf("%s imports the lab %s", path, imported)
	}
	for _, rule := range apart {
		if ours && in(folder, rule.room) && !in(own, rule.room) && inAny(rule.never, own) && !inAny(allowed[imported], folder) && (!test || !in(own, "e2e")) {
			t.Errorf("%s imports %s: %s", path, imported, rule.why)
		}
	}
	for prefix, rooms := range onlyIn {
		if strings.HasPrefix(imported, prefix) && !inAny(rooms, folder) && !test {
			t.Errorf("%s imports %s, which is for %q only", path, imported, rooms)
		}
	}
	if (folder == "pools" || folder == "pools/resolve") && !test && strings.Contains(strings.Split(imported, "/")[0], ".") {
		t.Errorf("%s imports %s; %s imports the standard library only", path, imported, folder)
	}
}
