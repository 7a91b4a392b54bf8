// Package token mints the bootstrap tokens with which nodes join their cluster.
//
// A [Minter] mints a token for one boot of one node, and waits until the cluster
// has signed it into its cluster-info. A [Rotation] keeps the tokens that all
// nodes of a cluster share, on the cluster's schedule; the last two are valid.
//
// A token contains its grant: one of its groups has the node and the token's expiry
// under a seal. API servers copy the groups of a client into each certificate request
// that the client makes. So an approver can verify the seal with [ReadGrant], without
// state and without the Secret.
//
// A bootstrap token lets its holder become a node of the cluster: the node that it was
// minted for or, if the cluster's own approver is in use, any node. So its lifetime is
// short. Its secret half is in no error and no log, only in the Secret and in the
// result of [Token.Full].
//
// Two controllers of the kube-controller-manager must run in the cluster, both off
// by default: bootstrapsigner and, to remove expired tokens, tokencleaner.
//
// The package does not know which nodes may have a token.
package token
