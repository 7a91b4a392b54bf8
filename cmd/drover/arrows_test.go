package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mayImport lists our packages that each folder may import. Protocols never import each
// other: for the parts of another that one needs, it declares an interface, and
// server implements it.
var mayImport = map[string][]string{
	"pools":                     {},
	"pools/option":              {},
	"pools/resolve":             {"drover/pools", "drover/pools/option"},
	"pools/config":              {"drover/pools", "drover/pools/config/access", "drover/pools/config/added", "drover/pools/config/controlplane", "drover/pools/config/decode", "drover/pools/config/defaults", "drover/pools/config/externalhost", "drover/pools/config/include", "drover/pools/config/listen", "drover/pools/config/match", "drover/pools/config/mistake", "drover/pools/config/declared", "drover/pools/config/settings", "drover/pools/kubelet", "drover/pools/option", "drover/pools/resolve"},
	"pools/config/externalhost": {"drover/pools", "drover/pools/config/defaults", "drover/pools/option"},
	"pools/config/defaults":     {},
	"pools/config/added":        {"drover/pools"},
	"pools/config/access":       {"drover/pools", "drover/pools/config/defaults", "drover/pools/config/settings"},
	"pools/config/controlplane": {"drover/pools", "drover/pools/config/defaults", "drover/pools/config/mistake", "drover/pools/option"},
	"pools/config/decode":       {"drover/pools", "drover/pools/config/mistake"},
	"pools/config/include":      {"drover/pools", "drover/pools/config/decode", "drover/pools/config/mistake", "drover/pools/resolve"},
	"pools/config/listen":       {"drover/pools", "drover/pools/option"},
	"pools/config/match":        {"drover/pools", "drover/pools/config/mistake", "drover/pools/resolve"},
	"pools/config/mistake":      {"drover/pools"},
	"pools/config/settings":     {"drover/pools", "drover/pools/config/mistake", "drover/pools/crontab", "drover/pools/option"},
	"pools/crontab":             {"drover/pools"},
	"kubelet":                   {"drover/pools"},
	"pools/config/declared":     {"drover/pools", "drover/pools/config/decode", "drover/pools/config/mistake", "drover/pools/option", "drover/pools/resolve"},
	"pools/adopt":               {"drover/pools"},
	"pools/audit":               {"drover/pools"},
	"migrate/nodefile":          {"drover/pools", "drover/pools/config/decode", "drover/pools/config/mistake", "drover/migrate/inventory"},
	"internal/atomicfile":       {},
	"internal/ifaddr":           {},
	"internal/lograte":          {},
	"internal/natural":          {},
	"internal/printable":        {},
	"pools/sshca":               {},
	"internal/unitfile":         {},
	"internal/wait":             {},
	"pools/boots":               {"drover/pools", "drover/pools/resolve"},
	"state":                     {"drover/pools", "drover/internal/atomicfile", "drover/pools/boots", "drover/pools/resolve", "drover/state/wal"},
	"state/backup":              {"drover/pools", "drover/state", "drover/state/wal"},
	"state/wal":                 {"drover/internal/atomicfile"},
	"pools/machines":            {"drover/pools", "drover/pools/boots", "drover/pools/resolve"},
	"kube": {
		"drover/pools", "drover/kube/approve", "drover/kube/cluster", "drover/kube/credentials", "drover/kube/externalhost", "drover/kube/inspect",
		"drover/kube/move", "drover/kube/node", "drover/kube/token", "drover/pools/resolve",
	},
	"kube/approve":      {"drover/pools", "drover/kube/cluster", "drover/kube/node", "drover/kube/token", "drover/pools/resolve"},
	"kube/cluster":      {"drover/pools"},
	"kube/apply":        {},
	"kube/credentials":  {"drover/kube/cluster"},
	"kube/backends":     {"drover/pools", "drover/kube/cluster"},
	"tenants":           {"drover/pools", "drover/kube/apply", "drover/kube/cluster", "drover/kube/credentials", "drover/tenants/manifests", "drover/tenants/pki"},
	"tenants/manifests": {"drover/pools", "drover/pools/config/controlplane", "drover/tenants/pki"},
	"tenants/pki":       {},
	"kube/externalhost": {"drover/pools", "drover/pools/config/externalhost", "drover/kube/cluster", "drover/kube/credentials"},
	"kube/inspect":      {"drover/pools", "drover/kube/apply", "drover/kube/cluster", "drover/kube/credentials", "drover/kube/externalhost", "drover/kube/node", "drover/kube/token"},
	"kube/move":         {"drover/pools", "drover/kube/cluster", "drover/kube/node", "drover/pools/resolve"},
	"kube/node":         {"drover/pools", "drover/kube/cluster", "drover/pools/kubelet", "drover/pools/resolve"},
	"kube/token":        {"drover/pools", "drover/kube/cluster"},
	"kube/objects":      {"drover/pools", "drover/pools/config/mistake", "drover/pools/config/declared", "drover/kube/cluster"},

	"deploy":         {},
	"deploy/package": {},
	"deploy/sbom":    {"drover/pools"},
	"deploy/crd":     {"drover/pools", "drover/pools/config/controlplane", "drover/pools/config/decode", "drover/pools/config/externalhost"},

	"hardware": {
		"drover/pools", "drover/pools/audit", "drover/hardware/bmc", "drover/hardware/importer", "drover/hardware/moonshot",
		"drover/hardware/redfish", "drover/pools/resolve",
	},
	"hardware/bmc":      {"drover/pools", "drover/pools/resolve"},
	"hardware/sshcli":   {"drover/hardware/bmc"},
	"hardware/redfish":  {"drover/pools", "drover/hardware/bmc"},
	"hardware/moonshot": {"drover/pools", "drover/hardware/bmc", "drover/hardware/redfish", "drover/hardware/sshcli"},
	"hardware/importer": {
		"drover/pools", "drover/pools/config", "drover/pools/config/decode", "drover/hardware/bmc",
		"drover/hardware/moonshot", "drover/hardware/redfish", "drover/pools/resolve",
	},

	"migrate": {
		"drover/pools", "drover/pools/config", "drover/pools/config/decode", "drover/pools/config/include", "drover/pools/config/mistake",
		"drover/hardware/importer", "drover/pools/option", "drover/pools/resolve",
	},
	"migrate/dhcpd":     {"drover/pools", "drover/migrate", "drover/migrate/kea"},
	"migrate/dnsmasq":   {"drover/pools", "drover/migrate", "drover/pools/option"},
	"migrate/inventory": {"drover/pools", "drover/migrate"},
	"migrate/kea":       {"drover/pools", "drover/migrate"},
	"migrate/kubefarm":  {"drover/pools", "drover/migrate", "drover/migrate/dnsmasq"},
	"migrate/manifests": {
		"drover/pools", "drover/pools/config/decode", "drover/pools/config/mistake", "drover/pools/config/declared",
		"drover/hardware/importer", "drover/migrate",
	},
	"migrate/matchbox": {"drover/pools", "drover/migrate"},
	"migrate/warewulf": {"drover/pools", "drover/migrate"},

	"dhcp":             {"drover/dhcp/wire", "drover/pools", "drover/pools/resolve"},
	"dhcp/bootprogram": {"drover/dhcp/wire", "drover/pools"},
	"dhcp/dhcp6":       {"drover/dhcp", "drover/dhcp/bootprogram", "drover/pools", "drover/pools/resolve"},
	"dhcp/dhcp6d":      {"drover/dhcp", "drover/dhcp/dhcp6", "drover/dhcp/neighbor", "drover/dhcp/packetio", "drover/dhcp/ratelimit", "drover/dhcp/recorder", "drover/dhcp/shed", "drover/pools", "drover/pools/resolve"},
	"dhcp/neighbor":    {"drover/dhcp", "drover/dhcp/packetio", "drover/pools"},
	"dhcp/dhcpd":       {"drover/dhcp", "drover/dhcp/neighbor", "drover/dhcp/packetio", "drover/dhcp/ratelimit", "drover/dhcp/recorder", "drover/dhcp/shed", "drover/pools", "drover/pools/resolve"},
	"dhcp/explain": {
		"drover/dhcp", "drover/dhcp/bootprogram", "drover/dhcp/dhcp6", "drover/dhcp/wire", "drover/pools", "drover/pools/config/decode", "drover/pools/option",
		"drover/pools/resolve",
	},
	"dhcp/packetio":  {},
	"dhcp/ra":        {"drover/dhcp/packetio", "drover/dhcp/ratelimit", "drover/pools"},
	"dhcp/ratelimit": {},
	"dhcp/recorder":  {"drover/dhcp", "drover/pools/resolve"},
	"dhcp/shed":      {},
	"dhcp/wire":      {},

	"tftp":          {"drover/pools", "drover/tftp/netascii"},
	"tftp/netascii": {},

	"httpboot":            {"drover/httpboot/nodeconfig", "drover/httpboot/queue", "drover/httpboot/script", "drover/pools", "drover/pools/boots", "drover/pools/machines", "drover/pools/resolve"},
	"httpboot/nodeconfig": {"drover/pools", "drover/pools/crontab", "drover/pools/resolve", "drover/pools/sshca"},
	"httpboot/queue":      {},
	"httpboot/script":     {"drover/pools", "drover/pools/boots", "drover/pools/machines", "drover/pools/resolve"},

	"web":           {"drover/pools", "drover/pools/boots", "drover/pools/config/mistake", "drover/pools/resolve", "drover/web/answer", "drover/web/api", "drover/web/auth", "drover/web/auth/oidc", "drover/web/compress", "drover/web/openapi", "drover/web/page", "drover/web/route", "drover/web/watch"},
	"web/answer":    {"drover/pools", "drover/pools/config", "drover/pools/config/mistake"},
	"web/auth":      {"drover/pools", "drover/web/answer", "drover/web/auth/oidc"},
	"web/auth/oidc": {"drover/pools", "drover/web/answer"},
	"web/listing":   {"drover/web/answer", "drover/web/route"},
	"web/openapi":   {"drover/pools", "drover/web/answer", "drover/web/route"},
	"web/route":     {"drover/pools", "drover/web/answer", "drover/web/auth", "drover/web/compress", "drover/web/share"},
	"web/share":     {},

	"web/client":   {"drover/pools", "drover/pools/boots", "drover/pools/resolve", "drover/web/answer"},
	"web/compress": {},
	"web/watch":    {"drover/web/answer", "drover/web/auth", "drover/web/share"},
	"web/api": {
		"drover/pools", "drover/pools/audit", "drover/pools/boots", "drover/pools/config/decode", "drover/pools/resolve", "drover/web/answer", "drover/web/api/authz", "drover/web/auth",
		"drover/web/listing", "drover/web/route", "drover/web/watch",
	},
	"web/api/authz": {"drover/pools", "drover/pools/resolve", "drover/web/answer", "drover/web/auth"},
	"web/page": {
		"drover/pools", "drover/pools/boots", "drover/pools/config", "drover/pools/config/decode", "drover/pools/config/mistake",
		"drover/web/answer", "drover/web/api", "drover/web/auth", "drover/web/page/asset", "drover/web/page/change", "drover/web/page/chassis", "drover/web/page/login", "drover/web/page/snapshot", "drover/web/page/table", "drover/web/page/text", "drover/web/page/timeline", "drover/web/share", "drover/web/watch",
	},
	"web/page/asset":    {"drover/web/answer"},
	"web/page/change":   {"drover/pools", "drover/pools/adopt", "drover/pools/config/decode", "drover/pools/config/mistake", "drover/migrate/nodefile", "drover/web/answer", "drover/web/api", "drover/web/auth", "drover/web/page/snapshot", "drover/web/page/table", "drover/web/page/text"},
	"web/page/chassis":  {"drover/pools", "drover/web/page/snapshot", "drover/web/page/table", "drover/web/page/text"},
	"web/page/login":    {"drover/web/answer", "drover/web/auth", "drover/web/auth/oidc"},
	"web/page/snapshot": {"drover/pools", "drover/pools/boots", "drover/pools/resolve", "drover/web/api", "drover/web/auth"},
	"web/page/table":    {},
	"web/page/text":     {"drover/pools"},
	"web/page/timeline": {"drover/pools/boots", "drover/web/page/table", "drover/web/page/text"},

	"imagebuild": {
		"drover/imagebuild/external", "drover/imagebuild/initrd", "drover/imagebuild/layer", "drover/imagebuild/manifest", "drover/imagebuild/oci", "drover/imagebuild/registry",
		"drover/imagebuild/rootfs",
	},
	"imagebuild/engine":   {},
	"imagebuild/external": {},
	"imagebuild/initrd":   {"drover/imagebuild/layer", "drover/imagebuild/rootfs"},
	"imagebuild/layer":    {"drover/imagebuild/rootfs"},
	"imagebuild/loaders":  {},
	"imagebuild/manifest": {},
	"imagebuild/media":    {},
	"imagebuild/oci":      {"drover/imagebuild/layer", "drover/imagebuild/rootfs"},
	"imagebuild/registry": {"drover/imagebuild/layer", "drover/imagebuild/oci"},
	"imagebuild/rootfs":   {},

	"server/localserver":      {"drover/server/certificate", "drover/internal/atomicfile", "drover/tenants/pki"},
	"cmd/drover/cli/contexts": {},
	"cmd/drover/cli/jsonpath": {},
	"cmd/drover/cli/nodeset":  {},
	"cmd/drover/cli/routes":   {},
	"cmd/drover/login":        {"drover/cmd/drover/cli", "drover/cmd/drover/cli/contexts", "drover/web/client"},
	"cmd/drover/apitoken":     {"drover/cmd/drover/cli", "drover/pools", "drover/web/client"},
	"cmd/drover/backup":       {"drover/cmd/drover/cli", "drover/pools", "drover/state", "drover/state/backup", "drover/web/client"},
	"cmd/drover/complete":     {"drover/cmd/drover/cli", "drover/cmd/drover/cli/contexts", "drover/imagebuild", "drover/pools", "drover/pools/config/include", "drover/pools/resolve", "drover/web/client"},
	"cmd/drover/configfile":   {"drover/cmd/drover/cli", "drover/cmd/drover/cli/routes", "drover/pools", "drover/pools/config", "drover/pools/config/access", "drover/pools/config/include", "drover/pools/resolve"},
	"cmd/drover/power": {
		"drover/cmd/drover/cli", "drover/cmd/drover/cli/nodeset", "drover/pools", "drover/pools/config", "drover/hardware",
		"drover/hardware/bmc", "drover/hardware/importer", "drover/hardware/moonshot", "drover/migrate",
		"drover/migrate/dhcpd", "drover/migrate/dnsmasq", "drover/migrate/inventory", "drover/migrate/kea",
		"drover/migrate/kubefarm", "drover/migrate/manifests", "drover/migrate/matchbox", "drover/migrate/warewulf", "drover/web/client",
	},

	"cmd/drover/host":        {"drover/cmd/drover/cli", "drover/cmd/drover/host/bundle", "drover/cmd/drover/host/check", "drover/cmd/drover/host/invite", "drover/cmd/drover/host/proxy", "drover/pools", "drover/kube", "drover/kube/backends", "drover/kube/externalhost"},
	"cmd/drover/host/check":  {"drover/cmd/drover/cli", "drover/cmd/drover/cli/routes", "drover/cmd/drover/host/bundle", "drover/pools", "drover/kube/cluster", "drover/kube/externalhost"},
	"cmd/drover/host/bundle": {"drover/pools"},
	"cmd/drover/host/invite": {},
	"cmd/drover/host/proxy":  {"drover/kube/backends"},
	"cmd/drover/doctor": {
		"drover/cmd/drover/cli", "drover/server/certificate", "drover/dhcp/bootprogram", "drover/dhcp/wire", "drover/imagebuild", "drover/pools", "drover/pools/config",
		"drover/kube/cluster", "drover/pools/resolve",
	},
	"cmd/drover/bootfile": {
		"drover/cmd/drover/cli", "drover/imagebuild", "drover/imagebuild/engine", "drover/imagebuild/loaders", "drover/imagebuild/media",
		"drover/imagebuild/oci", "drover/pools", "drover/pools/config", "drover/internal/printable", "drover/pools/resolve", "drover/web/client",
	},
	"cmd/drover/element": {"drover/cmd/drover/cli", "drover/pools", "drover/internal/printable", "drover/web/client"},
	"cmd/drover/explain": {"drover/cmd/drover/cli", "drover/dhcp/bootprogram", "drover/dhcp/explain", "drover/pools", "drover/pools/resolve", "drover/web/client"},
	"cmd/drover/status":  {"drover/cmd/drover/cli", "drover/pools", "drover/web/client"},
	"cmd/drover/node": {
		"drover/cmd/drover/cli", "drover/cmd/drover/cli/nodeset", "drover/pools", "drover/pools/adopt", "drover/pools/config/decode",
		"drover/pools/config/mistake", "drover/migrate/nodefile", "drover/web/answer", "drover/web/client",
	},

	"server/metrics": {
		"drover/server/readiness", "drover/dhcp", "drover/dhcp/dhcpd", "drover/dhcp/ra", "drover/httpboot", "drover/pools",
		"drover/pools/boots", "drover/pools/config", "drover/hardware", "drover/kube/approve", "drover/state", "drover/tftp",
	},
	"server/certificate": {"drover/pools", "drover/internal/atomicfile", "drover/tenants/pki"},
	"server/netconsole":  {"drover/pools"},
	"server/network":     {"drover/pools", "drover/pools/resolve"},
	"server/traces":      {"drover/pools", "drover/pools/boots"},
	"server/systemd":     {"drover/internal/wait"},
	"server/readiness":   {"drover/imagebuild", "drover/pools", "drover/pools/config", "drover/pools/resolve", "drover/web/api"},

	"cmd/drover-init": {
		"drover/pools", "drover/pools/boots", "drover/node/client", "drover/node/cmdline", "drover/node/console",
		"drover/node/disks", "drover/node/fetch", "drover/node/ifname", "drover/node/inventory", "drover/node/kmod", "drover/node/lldp", "drover/node/netplan",
		"drover/node/nic", "drover/node/nodeconfig", "drover/node/program", "drover/node/report",
		"drover/node/retry", "drover/node/rootfs", "drover/node/script", "drover/node/state",
	},
	"node/client":     {"drover/pools", "drover/pools/boots", "drover/node/cmdline", "drover/node/retry"},
	"node/console":    {},
	"node/disks":      {"drover/pools", "drover/node/gpt", "drover/node/program", "drover/node/rootfs"},
	"node/gpt":        {},
	"node/inventory":  {"drover/pools"},
	"node/fetch":      {"drover/imagebuild/manifest", "drover/pools", "drover/node/client", "drover/node/retry", "drover/node/rootfs", "drover/node/tftp"},
	"node/netplan":    {"drover/node/program", "drover/node/rootfs"},
	"node/program":    {"drover/node/console", "drover/node/nodeconfig"},
	"node/report":     {"drover/pools", "drover/pools/boots", "drover/node/client", "drover/node/console", "drover/node/retry"},
	"node/retry":      {},
	"node/script":     {"drover/pools", "drover/node/nic", "drover/node/nodeconfig", "drover/node/program", "drover/node/rootfs"},
	"node/state":      {"drover/pools", "drover/pools/boots", "drover/node/client", "drover/node/nodeconfig"},
	"node/cmdline":    {"drover/pools", "drover/node/kmod"},
	"node/ifname":     {},
	"node/kmod":       {},
	"node/lldp":       {"drover/pools"},
	"node/nic":        {"drover/pools", "drover/node/nodeconfig"},
	"node/nodeconfig": {"drover/pools"},
	"node/rootfs":     {},
	"node/tftp":       {},
}

// anyImport are the folders without a row: they connect the others.
var anyImport = []string{"cmd/drover", "cmd/drover/cli", "server"}

// leaves are packages that every folder may import, imagebuild too. They have no state
// and import none of ours.
var leaves = []string{"drover/internal/atomicfile", "drover/internal/ifaddr", "drover/internal/lograte", "drover/internal/natural", "drover/internal/printable", "drover/internal/unitfile", "drover/internal/wait"}

// onlyIn lists imports that are allowed in some folders only.
var onlyIn = map[string][]string{
	"k8s.io/":                                 {"kube", "kube/apply", "kube/approve", "kube/backends", "kube/cluster", "kube/credentials", "kube/externalhost", "tenants", "kube/inspect", "kube/move", "kube/node", "kube/objects", "kube/token"},
	"github.com/prometheus/":                  {"server/metrics"},
	"github.com/insomniacslk/dhcp/":           {"dhcp", "dhcp/bootprogram", "dhcp/dhcp6", "dhcp/dhcp6d", "dhcp/dhcpd", "dhcp/wire", "node/nic"},
	"github.com/pin/tftp/":                    {"cmd/drover/doctor", "tftp"},
	"gopkg.in/yaml.v3":                        {"pools/config/decode", "hardware/importer", "migrate"},
	"github.com/spf13/cobra":                  {"cmd/drover", "cmd/drover/apitoken", "cmd/drover/backup", "cmd/drover/bootfile", "cmd/drover/cli", "cmd/drover/complete", "cmd/drover/configfile", "cmd/drover/doctor", "cmd/drover/element", "cmd/drover/explain", "cmd/drover/power", "cmd/drover/host", "cmd/drover/login", "cmd/drover/node", "cmd/drover/status"},
	"github.com/klauspost/compress/":          {"imagebuild/initrd", "imagebuild/layer"},
	"github.com/diskfs/go-diskfs":             {"imagebuild/media"},
	"github.com/google/go-containerregistry/": {"imagebuild/registry"},
	"github.com/ulikunitz/xz":                 {"imagebuild/initrd"},
	"github.com/vishvananda/netlink":          {"node/nic"},
	"github.com/mdlayher/packet":              {"dhcp/dhcp6d", "dhcp/dhcpd", "dhcp/neighbor", "dhcp/ra"},
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
		if strings.HasPrefix(folder, "e2e") {
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
	for folder := range seen {
		if mayImport[folder] == nil && !slices.Contains(anyImport, folder) {
			t.Errorf("%s has no row in mayImport", folder)
		}
	}
	for folder := range mayImport {
		if !seen[folder] {
			t.Errorf("%s has no Go files: is the test looking in the right place?", folder)
		}
	}
}

func checkArrow(t *testing.T, path, folder, imported string) {
	t.Helper()
	test := strings.HasSuffix(path, "_test.go")
	if allowed, ok := mayImport[folder]; ok && strings.HasPrefix(imported, "drover/") {
		// An external test imports its package, and packages below it.
		// Its farm comes from a config file.
		own := imported == "drover/"+folder || strings.HasPrefix(imported, "drover/"+folder+"/") || imported == "drover/pools/config"
		leaf := slices.Contains(leaves, imported)
		if !leaf && !slices.Contains(allowed, imported) && (!test || !own) && !strings.HasPrefix(imported, "drover/e2e/") {
			t.Errorf("%s imports %s; %s may import %q", path, imported, folder, allowed)
		}
		if strings.HasPrefix(imported, "drover/e2e/") && !test {
			t.Errorf("%s imports the lab %s", path, imported)
		}
	}
	for prefix, homes := range onlyIn {
		if strings.HasPrefix(imported, prefix) && !slices.Contains(homes, folder) && !test {
			t.Errorf("%s imports %s, which is for %q only", path, imported, homes)
		}
	}
	if (folder == "pools" || folder == "pools/resolve") && !test && strings.Contains(strings.Split(imported, "/")[0], ".") {
		t.Errorf("%s imports %s; %s imports the standard library only", path, imported, folder)
	}
}
