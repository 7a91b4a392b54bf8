package check

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"drover/cmd/drover/cli"
)

// modules are the parts of the kernel that a host needs. Of each group, one is enough.
var modules = map[bool][][]string{
	true: { // kube-proxy in mode nftables
		{"vxlan"}, {"nf_tables"}, {"nf_conntrack"}, {"nft_chain_nat"}, {"nft_ct"}, {"nft_numgen"}, {"nft_masq"}, {"nft_fib_ipv4"},
	},
	false: {
		{"vxlan"}, {"ip_tables", "nft_compat"}, {"nf_conntrack"}, {"iptable_nat", "nft_chain_nat"}, {"xt_comment"}, {"xt_conntrack"}, {"xt_mark"}, {"xt_statistic"},
	},
}

// kernel checks the version of the kernel, and its modules.
func (h *Host) kernel() {
	release := h.read("proc/sys/kernel/osrelease")
	major, minor, known := version(release)
	switch {
	case !known:
		h.Add("kernel", cli.Skipped, fmt.Sprintf("the version %q is not understood", release), "")
	case h.Facts.NFTables() && (major < 5 || major == 5 && minor < 13):
		h.Add("kernel", cli.Fault, "Linux "+release+" is too old: kube-proxy in mode nftables needs 5.13", "update it, or hostNetwork.proxyMode: iptables in drover's config and a new bundle")
	case major < 4:
		h.Add("kernel", cli.Fault, "Linux "+release+" is too old: kube-proxy needs 4.0", "update it")
	default:
		h.Add("kernel", cli.OK, "Linux "+release, "")
	}
	list, complete := h.modules(release)
	var missing []string
	for _, group := range modules[h.Facts.NFTables()] {
		found := false
		for _, m := range group {
			found = found || list[m]
		}
		if !found {
			missing = append(missing, strings.Join(group, " or "))
		}
	}
	switch {
	case len(missing) == 0:
		h.Add("modules", cli.OK, "the kernel has all", "")
	case !complete:
		h.Add("modules", cli.Skipped, fmt.Sprintf("/lib/modules/%s has no list, so it is not known whether the kernel has %s", release, strings.Join(missing, ", ")),
			"if the kernel was updated, reboot: it can load no modules of the old one")
	default:
		h.Add("modules", cli.Fault, "the kernel has no module "+strings.Join(missing, ", "), "install the package with the other modules of this kernel (linux-modules-extra, kernel-modules-extra), or another kernel")
	}
}

// version returns the first two numbers of a kernel's release.
func version(release string) (major, minor int, ok bool) {
	first, rest, _ := strings.Cut(release, ".")
	second := strings.FieldsFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if len(second) == 0 {
		return 0, 0, false
	}
	major, err := strconv.Atoi(first)
	if err != nil {
		return 0, 0, false
	}
	minor, err = strconv.Atoi(second[0])
	return major, minor, err == nil
}

// modules returns the modules that the kernel has or can load. It is not complete if
// the kernel has no list of them.
func (h *Host) modules(release string) (found map[string]bool, complete bool) {
	found = map[string]bool{}
	for line := range strings.Lines(h.read("proc/modules")) {
		name, _, _ := strings.Cut(line, " ")
		found[name] = true
	}
	loaded, _ := os.ReadDir(filepath.Join(h.Root, "sys/module")) // none is no error
	for _, m := range loaded {
		found[m.Name()] = true
	}
	for _, list := range []string{"modules.builtin", "modules.dep"} {
		f, err := os.Open(filepath.Join(h.Root, "lib/modules", filepath.Base(release), list))
		if err != nil {
			continue
		}
		complete = complete || list == "modules.dep"
		for s := bufio.NewScanner(f); s.Scan(); {
			name, _, _ := strings.Cut(s.Text(), ":")
			name, _, _ = strings.Cut(filepath.Base(name), ".ko")
			found[strings.ReplaceAll(name, "-", "_")] = true
		}
		_ = f.Close()
	}
	return found, complete
}

// forwarding checks that containers of the host may reach the cluster.
func (h *Host) forwarding() {
	if h.read("proc/sys/net/ipv4/ip_forward") == "0" {
		h.Add("forwarding", cli.Warning, "net.ipv4.ip_forward is 0: containers and virtual machines of this host do not reach the cluster; the host itself does", "sysctl -w net.ipv4.ip_forward=1, and a line in /etc/sysctl.d")
		return
	}
	h.Add("forwarding", cli.OK, "net.ipv4.ip_forward is on", "")
}

// strict reports whether the kernel drops packets that come in by an interface which the way
// back does not leave by.
func (h *Host) strict(link string) bool {
	return max(h.sysctl("all"), h.sysctl(link)) == 1
}

func (h *Host) sysctl(link string) int {
	n, err := strconv.Atoi(h.read(filepath.Join("proc/sys/net/ipv4/conf", link, "rp_filter")))
	if err != nil {
		return 0
	}
	return n
}

// read returns the text of a small file below Root, or nothing.
func (h *Host) read(name string) string {
	b, err := os.ReadFile(filepath.Join(h.Root, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
