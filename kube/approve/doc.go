// Package approve decides on the certificate requests of nodes.
//
// An [Approver] watches the requests of one cluster. A request contains the name and
// the groups of its client. The groups of a token contain, under a seal, the node that
// the token was minted for. So the approver needs no state and reads no Secret:
// [evaluate] decides by the request alone, and decide checks the farm and the cluster.
// The approver approves a client certificate for the node of the token, once for each
// token, and a serving certificate for the node's own name and addresses. It denies
// other requests by drover's tokens, and leaves all further requests alone.
//
// The package does not know how tokens are minted, nor how the farm finds a node:
// [Machines] does.
package approve
