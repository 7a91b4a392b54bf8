// Package inspect checks that a cluster meets the requirements of joins, and prepares
// one.
//
// [Cluster] inspects a cluster with drover's own credentials, and with a token as a
// joining node. It checks that drover has its rights and no more, the admission
// policies of deploy/rbac.yaml, cluster-info, the controllers for tokens, and the
// ConfigMaps that kubeadm and kubelets read. It changes nothing but two tokens that it
// mints and deletes. [Apply] applies a manifest as an administrator.
//
// drover needs only the rights of deploy/rbac.yaml in a cluster: to create and delete
// Secrets that are bootstrap tokens, to read cluster-info and the Leases of kubelets,
// to read certificate requests and approve those of its tokens, to read Nodes, and to
// patch and delete its own.
//
// The package does not know the farm.
package inspect
