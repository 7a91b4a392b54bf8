// Package token makes the bootstrap tokens that nodes join their cluster with.
//
// A [Minter] mints a token for one boot of one node, and waits until the cluster
// has signed it into its cluster-info. A [Rotation] keeps the tokens that all
// nodes of a cluster share, on the cluster's schedule; the last two are valid.
//
// A token states what it was minted for: one of its groups has the node's name and
// the token's end under a seal. API servers copy the groups of a client into each
// certificate request that it makes, so an approver can verify the seal with
// [ReadGrant], remembers nothing, and reads no Secret.
//
// A bootstrap token lets its holder become a node of the cluster: the one that it
// was minted for or, where the cluster approves by itself, any. Hence its short
// life. Its secret half is in no error and no log: only in the Secret and in
// what the caller does with [Token.Full].
//
// Two controllers of the kube-controller-manager must run in the cluster, both off
// by default: bootstrapsigner and, to remove expired tokens, tokencleaner.
//
// The package does not know who may have a token.
package token
