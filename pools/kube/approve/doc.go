// Package approve decides on the certificate requests of nodes.
//
// An [Approver] watches the requests of one cluster. A request states its client and
// that client's groups, and a token's groups state, under a seal, which node the
// token was minted for. So the approver needs no state, and reads no Secret:
// [evaluate] decides from the request alone, and decide adds what the farm and the
// cluster know. It approves a client certificate for the node of the token, once for
// each token, and a serving certificate for the node's own name and addresses. It
// denies other requests by drover's tokens, and leaves alone what is not drover's.
//
// The package does not know how tokens are minted, nor what a node is: the farm
// answers through [Machines].
package approve
