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
// cmd/drover/server implements it.
var mayImport = map[string][]string{
	"pools":                     {},
	"pools/option":              {},
	"pools/resolve":             {"drover/pools", "drover/pools/option"},
	"pools/config":              {"drover/pools", "drover/pools/config/access", "drover/pools/config/added", "drover/pools/config/controlplane", "drover/pools/config/decode", "drover/pools/config/defaults", "drover/pools/config/externalhost", "drover/pools/config/include", "drover/pools/config/listen", "drover/pools/config/match", "drover/pools/config/mistake", "drover/pools/config/objects", "drover/pools/config/settings", "drover/pools/kubelet", "drover/pools/option", "drover/pools/resolve"},
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
	"pools/kubelet":             {"drover/pools"},
	"pools/config/objects":      {"drover/pools", "drover/pools/config/decode", "drover/pools/config/mistake", "drover/pools/option", "drover/pools/resolve"},
	"pools/adopt":               {"drover/pools"},
	"pools/audit":               {"drover/pools"},
	"pools/nodefile":            {"drover/pools", "drover/pools/config/decode", "drover/pools/config/mistake", "drover/pools/migrate/inventory"},
	"pools/atomicfile":          {},
	"pools/ifaddr":              {},
	"pools/lograte":             {},
	"pools/natural":             {},
	"pools/printable":           {},
	"pools/sshca":               {},
	"pools/unitfile":            {},
	"pools/wait":                {},
	"pools/boots":               {"drover/pools", "drover/pools/resolve"},
	"pools/state":               {"drover/pools", "drover/pools/atomicfile", "drover/pools/boots", "drover/pools/resolve", "drover/pools/state/wal"},
	"pools/state/backup":        {"drover/pools", "drover/pools/state", "drover/pools/state/wal"},
	"pools/state/wal":           {"drover/pools/atomicfile"},
	"pools/machines":            {"drover/pools", "drover/pools/boots", "drover/pools/resolve"},
	"pools/kube": {
		"drover/pools", "drover/pools/kube/approve", "drover/pools/kube/cluster", "drover/pools/kube/credentials", "drover/pools/kube/externalhost", "drover/pools/kube/inspect",
		"drover/pools/kube/move", "drover/pools/kube/node", "drover/pools/kube/token", "drover/pools/resolve",
	},
	"pools/kube/approve":          {"drover/pools", "drover/pools/kube/cluster", "drover/pools/kube/node", "drover/pools/kube/token", "drover/pools/resolve"},
	"pools/kube/cluster":          {"drover/pools"},
	"pools/kube/apply":            {},
	"pools/kube/credentials":      {"drover/pools/kube/cluster"},
	"pools/kube/backends":         {"drover/pools", "drover/pools/kube/cluster"},
	"pools/kube/hosted":           {"drover/pools", "drover/pools/kube/apply", "drover/pools/kube/cluster", "drover/pools/kube/credentials", "drover/pools/kube/hosted/manifests", "drover/pools/kube/hosted/pki"},
	"pools/kube/hosted/manifests": {"drover/pools", "drover/pools/config/controlplane", "drover/pools/kube/hosted/pki"},
	"pools/kube/hosted/pki":       {},
	"pools/kube/externalhost":     {"drover/pools", "drover/pools/config/externalhost", "drover/pools/kube/cluster", "drover/pools/kube/credentials"},
	"pools/kube/inspect":          {"drover/pools", "drover/pools/kube/apply", "drover/pools/kube/cluster", "drover/pools/kube/credentials", "drover/pools/kube/externalhost", "drover/pools/kube/node", "drover/pools/kube/token"},
	"pools/kube/move":             {"drover/pools", "drover/pools/kube/cluster", "drover/pools/kube/node", "drover/pools/resolve"},
	"pools/kube/node":             {"drover/pools", "drover/pools/kube/cluster", "drover/pools/kubelet", "drover/pools/resolve"},
	"pools/kube/token":            {"drover/pools", "drover/pools/kube/cluster"},
	"pools/kube/objects":          {"drover/pools", "drover/pools/config/mistake", "drover/pools/config/objects", "drover/pools/kube/cluster"},

	"deploy":         {},
	"deploy/package": {},
	"deploy/sbom":    {"drover/pools"},
	"deploy/crd":     {"drover/pools", "drover/pools/config/controlplane", "drover/pools/config/decode", "drover/pools/config/externalhost"},

	"pools/hardware": {
		"drover/pools", "drover/pools/audit", "drover/pools/hardware/bmc", "drover/pools/hardware/importer", "drover/pools/hardware/moonshot",
		"drover/pools/hardware/redfish", "drover/pools/resolve",
	},
	"pools/hardware/bmc":      {"drover/pools", "drover/pools/resolve"},
	"pools/hardware/sshcli":   {"drover/pools/hardware/bmc"},
	"pools/hardware/redfish":  {"drover/pools", "drover/pools/hardware/bmc"},
	"pools/hardware/moonshot": {"drover/pools", "drover/pools/hardware/bmc", "drover/pools/hardware/redfish", "drover/pools/hardware/sshcli"},
	"pools/hardware/importer": {
		"drover/pools", "drover/pools/config", "drover/pools/config/decode", "drover/pools/hardware/bmc",
		"drover/pools/hardware/moonshot", "drover/pools/hardware/redfish", "drover/pools/resolve",
	},

	"pools/migrate": {
		"drover/pools", "drover/pools/config", "drover/pools/config/decode", "drover/pools/config/include", "drover/pools/config/mistake",
		"drover/pools/hardware/importer", "drover/pools/option", "drover/pools/resolve",
	},
	"pools/migrate/dhcpd":     {"drover/pools", "drover/pools/migrate", "drover/pools/migrate/kea"},
	"pools/migrate/dnsmasq":   {"drover/pools", "drover/pools/migrate", "drover/pools/option"},
	"pools/migrate/inventory": {"drover/pools", "drover/pools/migrate"},
	"pools/migrate/kea":       {"drover/pools", "drover/pools/migrate"},
	"pools/migrate/kubefarm":  {"drover/pools", "drover/pools/migrate", "drover/pools/migrate/dnsmasq"},
	"pools/migrate/manifests": {
		"drover/pools", "drover/pools/config/decode", "drover/pools/config/mistake", "drover/pools/config/objects",
		"drover/pools/hardware/importer", "drover/pools/migrate",
	},
	"pools/migrate/matchbox": {"drover/pools", "drover/pools/migrate"},
	"pools/migrate/warewulf": {"drover/pools", "drover/pools/migrate"},

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
	"web/page/change":   {"drover/pools", "drover/pools/adopt", "drover/pools/config/decode", "drover/pools/config/mistake", "drover/pools/nodefile", "drover/web/answer", "drover/web/api", "drover/web/auth", "drover/web/page/snapshot", "drover/web/page/table", "drover/web/page/text"},
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

	"cmd/drover/localserver":  {"drover/cmd/drover/server/certificate", "drover/pools/atomicfile", "drover/pools/kube/hosted/pki"},
	"cmd/drover/cli/contexts": {},
	"cmd/drover/cli/jsonpath": {},
	"cmd/drover/cli/nodeset":  {},
	"cmd/drover/cli/routes":   {},
	"cmd/drover/login":        {"drover/cmd/drover/cli", "drover/cmd/drover/cli/contexts", "drover/web/client"},
	"cmd/drover/apitoken":     {"drover/cmd/drover/cli", "drover/pools", "drover/web/client"},
	"cmd/drover/backup":       {"drover/cmd/drover/cli", "drover/pools", "drover/pools/state", "drover/pools/state/backup", "drover/web/client"},
	"cmd/drover/complete":     {"drover/cmd/drover/cli", "drover/cmd/drover/cli/contexts", "drover/imagebuild", "drover/pools", "drover/pools/config/include", "drover/pools/resolve", "drover/web/client"},
	"cmd/drover/configfile":   {"drover/cmd/drover/cli", "drover/cmd/drover/cli/routes", "drover/pools", "drover/pools/config", "drover/pools/config/access", "drover/pools/config/include", "drover/pools/resolve"},
	"cmd/drover/hardware": {
		"drover/cmd/drover/cli", "drover/cmd/drover/cli/nodeset", "drover/pools", "drover/pools/config", "drover/pools/hardware",
		"drover/pools/hardware/bmc", "drover/pools/hardware/importer", "drover/pools/hardware/moonshot", "drover/pools/migrate",
		"drover/pools/migrate/dhcpd", "drover/pools/migrate/dnsmasq", "drover/pools/migrate/inventory", "drover/pools/migrate/kea",
		"drover/pools/migrate/kubefarm", "drover/pools/migrate/manifests", "drover/pools/migrate/matchbox", "drover/pools/migrate/warewulf", "drover/web/client",
	},

	"cmd/drover/host":        {"drover/cmd/drover/cli", "drover/cmd/drover/host/bundle", "drover/cmd/drover/host/check", "drover/cmd/drover/host/invite", "drover/cmd/drover/host/proxy", "drover/pools", "drover/pools/kube", "drover/pools/kube/backends", "drover/pools/kube/externalhost"},
	"cmd/drover/host/check":  {"drover/cmd/drover/cli", "drover/cmd/drover/cli/routes", "drover/cmd/drover/host/bundle", "drover/pools", "drover/pools/kube/cluster", "drover/pools/kube/externalhost"},
	"cmd/drover/host/bundle": {"drover/pools"},
	"cmd/drover/host/invite": {},
	"cmd/drover/host/proxy":  {"drover/pools/kube/backends"},
	"cmd/drover/doctor": {
		"drover/cmd/drover/cli", "drover/cmd/drover/server/certificate", "drover/dhcp/bootprogram", "drover/dhcp/wire", "drover/imagebuild", "drover/pools", "drover/pools/config",
		"drover/pools/kube/cluster", "drover/pools/resolve",
	},
	"cmd/drover/bootfile": {
		"drover/cmd/drover/cli", "drover/imagebuild", "drover/imagebuild/engine", "drover/imagebuild/loaders", "drover/imagebuild/media",
		"drover/imagebuild/oci", "drover/pools", "drover/pools/config", "drover/pools/printable", "drover/pools/resolve", "drover/web/client",
	},
	"cmd/drover/element": {"drover/cmd/drover/cli", "drover/pools", "drover/pools/printable", "drover/web/client"},
	"cmd/drover/explain": {"drover/cmd/drover/cli", "drover/dhcp/bootprogram", "drover/dhcp/explain", "drover/pools", "drover/pools/resolve", "drover/web/client"},
	"cmd/drover/status":  {"drover/cmd/drover/cli", "drover/pools", "drover/web/client"},
	"cmd/drover/node": {
		"drover/cmd/drover/cli", "drover/cmd/drover/cli/nodeset", "drover/pools", "drover/pools/adopt", "drover/pools/config/decode",
		"drover/pools/config/mistake", "drover/pools/nodefile", "drover/web/answer", "drover/web/client",
	},

	"cmd/drover/server/metrics": {
		"drover/cmd/drover/server/readiness", "drover/dhcp", "drover/dhcp/dhcpd", "drover/dhcp/ra", "drover/httpboot", "drover/pools",
		"drover/pools/boots", "drover/pools/config", "drover/pools/hardware", "drover/pools/kube/approve", "drover/pools/state", "drover/tftp",
	},
	"cmd/drover/server/certificate": {"drover/pools", "drover/pools/atomicfile", "drover/pools/kube/hosted/pki"},
	"cmd/drover/server/netconsole":  {"drover/pools"},
	"cmd/drover/server/network":     {"drover/pools", "drover/pools/resolve"},
	"cmd/drover/server/traces":      {"drover/pools", "drover/pools/boots"},
	"cmd/drover/server/systemd":     {"drover/pools/wait"},
	"cmd/drover/server/readiness":   {"drover/imagebuild", "drover/pools", "drover/pools/config", "drover/pools/resolve", "drover/web/api"},

	"cmd/drover-init": {
		"drover/pools", "drover/pools/boots", "drover/cmd/drover-init/client", "drover/cmd/drover-init/cmdline", "drover/cmd/drover-init/console",
		"drover/cmd/drover-init/disks", "drover/cmd/drover-init/fetch", "drover/cmd/drover-init/ifname", "drover/cmd/drover-init/inventory", "drover/cmd/drover-init/kmod", "drover/cmd/drover-init/lldp", "drover/cmd/drover-init/netplan",
		"drover/cmd/drover-init/nic", "drover/cmd/drover-init/nodeconfig", "drover/cmd/drover-init/program", "drover/cmd/drover-init/report",
		"drover/cmd/drover-init/retry", "drover/cmd/drover-init/rootfs", "drover/cmd/drover-init/script", "drover/cmd/drover-init/state",
	},
	"cmd/drover-init/client":     {"drover/pools", "drover/pools/boots", "drover/cmd/drover-init/cmdline", "drover/cmd/drover-init/retry"},
	"cmd/drover-init/console":    {},
	"cmd/drover-init/disks":      {"drover/pools", "drover/cmd/drover-init/gpt", "drover/cmd/drover-init/program", "drover/cmd/drover-init/rootfs"},
	"cmd/drover-init/gpt":        {},
	"cmd/drover-init/inventory":  {"drover/pools"},
	"cmd/drover-init/fetch":      {"drover/imagebuild/manifest", "drover/pools", "drover/cmd/drover-init/client", "drover/cmd/drover-init/retry", "drover/cmd/drover-init/rootfs", "drover/cmd/drover-init/tftp"},
	"cmd/drover-init/netplan":    {"drover/cmd/drover-init/program", "drover/cmd/drover-init/rootfs"},
	"cmd/drover-init/program":    {"drover/cmd/drover-init/console", "drover/cmd/drover-init/nodeconfig"},
	"cmd/drover-init/report":     {"drover/pools", "drover/pools/boots", "drover/cmd/drover-init/client", "drover/cmd/drover-init/console", "drover/cmd/drover-init/retry"},
	"cmd/drover-init/retry":      {},
	"cmd/drover-init/script":     {"drover/pools", "drover/cmd/drover-init/nic", "drover/cmd/drover-init/nodeconfig", "drover/cmd/drover-init/program", "drover/cmd/drover-init/rootfs"},
	"cmd/drover-init/state":      {"drover/pools", "drover/pools/boots", "drover/cmd/drover-init/client", "drover/cmd/drover-init/nodeconfig"},
	"cmd/drover-init/cmdline":    {"drover/pools", "drover/cmd/drover-init/kmod"},
	"cmd/drover-init/ifname":     {},
	"cmd/drover-init/kmod":       {},
	"cmd/drover-init/lldp":       {"drover/pools"},
	"cmd/drover-init/nic":        {"drover/pools", "drover/cmd/drover-init/nodeconfig"},
	"cmd/drover-init/nodeconfig": {"drover/pools"},
	"cmd/drover-init/rootfs":     {},
	"cmd/drover-init/tftp":       {},
}

// anyImport are the folders without a row: they connect the others.
var anyImport = []string{"cmd/drover", "cmd/drover/cli", "cmd/drover/server"}

// leaves are packages that every folder may import, imagebuild too. They have no state
// and import none of ours.
var leaves = []string{"drover/pools/atomicfile", "drover/pools/ifaddr", "drover/pools/lograte", "drover/pools/natural", "drover/pools/printable", "drover/pools/unitfile", "drover/pools/wait"}

// onlyIn lists imports that are allowed in some folders only.
var onlyIn = map[string][]string{
	"k8s.io/":                                 {"pools/kube", "pools/kube/apply", "pools/kube/approve", "pools/kube/backends", "pools/kube/cluster", "pools/kube/credentials", "pools/kube/externalhost", "pools/kube/hosted", "pools/kube/inspect", "pools/kube/move", "pools/kube/node", "pools/kube/objects", "pools/kube/token"},
	"github.com/prometheus/":                  {"cmd/drover/server/metrics"},
	"github.com/insomniacslk/dhcp/":           {"dhcp", "dhcp/bootprogram", "dhcp/dhcp6", "dhcp/dhcp6d", "dhcp/dhcpd", "dhcp/wire", "cmd/drover-init/nic"},
	"github.com/pin/tftp/":                    {"cmd/drover/doctor", "tftp"},
	"gopkg.in/yaml.v3":                        {"pools/config/decode", "pools/hardware/importer", "pools/migrate"},
	"github.com/spf13/cobra":                  {"cmd/drover", "cmd/drover/apitoken", "cmd/drover/backup", "cmd/drover/bootfile", "cmd/drover/cli", "cmd/drover/complete", "cmd/drover/configfile", "cmd/drover/doctor", "cmd/drover/element", "cmd/drover/explain", "cmd/drover/hardware", "cmd/drover/host", "cmd/drover/login", "cmd/drover/node", "cmd/drover/status"},
	"github.com/klauspost/compress/":          {"imagebuild/initrd", "imagebuild/layer"},
	"github.com/diskfs/go-diskfs":             {"imagebuild/media"},
	"github.com/google/go-containerregistry/": {"imagebuild/registry"},
	"github.com/ulikunitz/xz":                 {"imagebuild/initrd"},
	"github.com/vishvananda/netlink":          {"cmd/drover-init/nic"},
	"github.com/mdlayher/packet":              {"dhcp/dhcp6d", "dhcp/dhcpd", "dhcp/neighbor", "dhcp/ra"},
	"github.com/rogpeppe/go-internal/":        {"cmd/drover"},
	"github.com/coreos/go-oidc/":              {"web/auth/oidc"},
	"golang.org/x/oauth2":                     {"web/auth/oidc"},
	"golang.org/x/crypto/ssh":                 {"pools/hardware/sshcli", "pools/sshca"},
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
