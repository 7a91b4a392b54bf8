// Package externalhost keeps the objects of hosts outside a cluster: for each a Node
// without a kubelet, whose podCIDR is the host's part of the pod network, a Lease, so that
// the cluster does not count it as dead, and a ServiceAccount in the namespace
// [Namespace], whose rights are those of flannel and kube-proxy.
//
//	hosts.Set(conf.Hosts, conf.HostNetwork) // after each change of the config
//	hosts.Run(ctx)                          // in the server
//	hosts.List(ctx); hosts.Token(ctx, name); hosts.Remove(ctx, name) // for commands
//
// The controller manager must give no node a network that a host has. So all of them are
// inside hostPodCIDR, and another Node, [drover/pools/config/externalhost.RangeName], has
// all of that as its podCIDR: the controller manager takes the networks of Nodes that
// exist for occupied. When it sees a Node go, it takes its network for free, with all
// that shares it; [Hosts.Remove] has it see the Node of the range again.
//
// flannel on the host writes its own annotations, since they have the hardware address of
// an interface there. drover writes public-ip-overwrite alone.
//
// The package does not know what runs on a host, and makes no files for it.
package externalhost
