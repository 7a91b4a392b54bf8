package admin

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// kernel are the parameters that a kubelet sets, and the values that it wants.
var kernel = map[string]string{
	"vm.overcommit_memory":      "1",
	"vm.panic_on_oom":           "0",
	"kernel.panic":              "10",
	"kernel.panic_on_oops":      "1",
	"kernel.keys.root_maxkeys":  "1000000",
	"kernel.keys.root_maxbytes": "25000000",
}

// Kernel returns the values that this host has of the parameters that a kubelet sets. An
// admin cluster leaves them as they are.
func Kernel() (map[string]string, error) {
	values := map[string]string{}
	for name := range kernel {
		value, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
		if err != nil {
			return nil, err
		}
		values[name] = strings.TrimSpace(string(value))
	}
	return values, nil
}

// writeFiles writes the files of the node.
func (n *node) writeFiles(c *Cluster, token string) error {
	for _, dir := range []string{"sysctl", "cni", "containerd", "drover"} {
		if err := os.MkdirAll(filepath.Join(n.dir, dir), 0o755); err != nil {
			return err
		}
	}
	admin, err := os.ReadFile(c.Admin)
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(c.CA)
	if err != nil {
		return err
	}
	files := map[string]string{
		"node.sh":              string(nodeScript),
		"hosts":                fmt.Sprintf("127.0.0.1 localhost\n%s %s\n", c.cfg.Address, NodeName),
		"resolv.conf":          "# no servers\n",
		"containerd.toml":      containerdConfig(c.programs.Runc),
		"cni/10-node.conflist": cniConfig,
		"kubelet.yaml":         n.kubeletConfig(),
		"ca.crt":               string(ca),
		"admin.conf":           string(admin),
	}
	for name, folder := range c.folders() {
		files["folders"] += name + " " + folder + "\n"
	}
	for name, value := range kernel {
		files["sysctl/"+name] = value + "\n"
	}
	var errs []error
	for name, content := range files {
		errs = append(errs, os.WriteFile(filepath.Join(n.dir, name), []byte(content), 0o600))
	}
	errs = append(errs, c.WriteKubeconfig(filepath.Join(n.dir, "bootstrap.conf"), token))
	return errors.Join(errs...)
}

// folders returns the folders of the host that the node has below [Folders].
func (c *Cluster) folders() map[string]string {
	all := maps.Clone(c.cfg.Folders)
	if all == nil {
		all = map[string]string{}
	}
	all["node"] = filepath.Join(c.cfg.Dir, "node")
	all["kubernetes"], all["containerd"], all["proxy"] = c.programs.Kubernetes, c.programs.Containerd, c.programs.Proxy
	return all
}

// containerdConfig returns containerd's config. Its images are on the disk: overlayfs does
// not work above another one, nor needs to be in memory.
func containerdConfig(runc string) string {
	return fmt.Sprintf(`version = 3
root = "%[1]s/containerd"
state = "/run/containerd"
[grpc]
address = %[2]q
[ttrpc]
address = "%[3]s.ttrpc"
[plugins."io.containerd.cri.v1.images"]
snapshotter = "overlayfs"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "localhost/pause:1"
[plugins."io.containerd.cri.v1.runtime"]
# Tests need not have CAP_SYS_RESOURCE.
restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["%[4]s/cni"]
conf_dir = "%[1]s/cni"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = %[5]q
SystemdCgroup = false
`, nodeDir, containerdSocket, containerdSocket, containerdDir, runc)
}

// cniConfig is the network of the node's pods: a bridge.
const cniConfig = `{
  "cniVersion": "1.0.0", "name": "node", "plugins": [
    {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
     "ipam": {"type": "host-local", "ranges": [[{"subnet": "` + nodePods + `"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`

// kubeletConfig returns the config of the kubelet. It takes cgroups of version 1, evicts
// nothing and collects no images: how full the disk of the host is, is not its business.
// ConfigMaps and Secrets that change reach their pods in seconds, not in a minute.
func (n *node) kubeletConfig() string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %[1]s/ca.crt}}
authorization: {mode: Webhook}
cgroupDriver: cgroupfs
cgroupRoot: /%[2]s
failCgroupV1: false
failSwapOn: false
clusterDNS: [%[3]s]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix://%[4]s
resolvConf: %[1]s/resolv.conf
volumePluginDir: /var/lib/kubelet/plugins
rotateCertificates: true
syncFrequency: 5s
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: "0%%", nodefs.available: "0%%", nodefs.inodesFree: "0%%", imagefs.available: "0%%"}
`, nodeDir, n.cgroup, clusterDNS, containerdSocket)
}
