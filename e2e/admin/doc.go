// Package admin is an admin cluster on this host, inside a rack: the control plane as plain
// processes (package controlplane), and one node, a kubelet with containerd and Debian's
// runc. Its pods are real: drover runs in them as an operator's helm install starts it,
// and so may the control planes of tenants.
//
//	programs, err := admin.Build(ctx, log)
//	c, err := programs.Open(ctx, admin.Config{Rack: rack, Dir: dir, Address: address})
//	defer c.Close()
//	c.Import(ctx, archive)                       // a container image; there is no registry
//	c.Helm(ctx, "install", "drover", chart, ...) // as the cluster's administrator
//
// The node is in the rack's network namespace and in mount, UTS and PID namespaces of its
// own. Tmpfs hides the folders of the host that a kubelet writes to, files hide the kernel
// parameters that it would set for the whole machine, and a cgroup of its own keeps it from
// the pods of other kubelets, which it would end. [Cluster.Close] ends the PID namespace,
// and with it everything in the node; the kernel does so when the test is killed.
//
// The package knows nothing of drover. It needs root, Linux, iptables and runc.
package admin
