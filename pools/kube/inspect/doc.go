// Package inspect checks what joins need of a cluster, and prepares one.
//
// [Cluster] inspects a cluster with drover's own credentials, and as a joining node
// with a token: drover's rights, that it has no more, the admission policies of
// deploy/rbac.yaml, cluster-info, the controllers for tokens, and the ConfigMaps that
// kubeadm and kubelets read. It changes nothing but two tokens that it mints and
// deletes. [Apply] applies a manifest as an administrator.
//
// In a cluster drover needs no more than deploy/rbac.yaml gives: to create and delete
// Secrets that are bootstrap tokens, to read cluster-info and the Leases of kubelets,
// to read certificate requests and approve those of its tokens, to read Nodes, and to
// patch and delete its own.
//
// The package does not know the farm: a cluster is enough.
package inspect
