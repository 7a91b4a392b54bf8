// Package credentials asks clusters for tokens of ServiceAccounts (TokenRequest), and renews
// the one that drover itself uses.
//
// A [Renewer] watches the kubeconfig of one cluster. When a third of the life of its token is
// left, it asks the cluster for another one, tries that, and stores it: in the kubeconfig
// file, if drover may write it, or else in a [Store]. The client of the cluster uses it from
// the next request on. Until then, and if anything fails, the old token stays in use.
//
// The package makes no ServiceAccount and gives no rights: deploy/rbac.yaml does.
package credentials
