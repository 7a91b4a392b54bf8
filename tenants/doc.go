// Package tenants runs the control planes of tenants as pods of the admin cluster.
//
// A [Controller] is given the clusters of the farm ([Controller.Set]). For each that has a
// controlPlane it keeps, in one namespace of the admin cluster: keys and certificates in
// Secrets (package pki), a Service, and a StatefulSet whose pod has etcd, kube-apiserver,
// konnectivity-server, kube-controller-manager and kube-scheduler (package manifests). In
// the tenant it keeps what kubeadm join reads, drover's rights, the konnectivity agent and
// the add-ons. It writes drover's own kubeconfig, with few rights, into the Secret that
// package kube reads for this cluster, and an administrator's into another.
//
// It is level-triggered: each round compares what is there with what is meant, for each
// tenant in a goroutine of its own. Control planes start one after the other, since each
// start costs seconds of processor time. Of several servers one is the leader, by a Lease.
//
// It never makes the keys of a tenant anew: not while anything is there that they fit
// ([NewKeys] does that for an operator). It never goes to a version that cannot be
// reached, and deletes keys and data only with deletionPolicy Delete.
//
// The package does not know nodes, joins and the farm.
package tenants
