// Package redfish talks to management processors over HTTPS: the Redfish service of
// BMCs and of iLO 4 to 6, the page /xmldata of an iLO that needs no login, and the REST
// interface before Redfish, which chassis managers still have.
//
// [Open] returns a [Client]. [Client.Server] and [Client.XMLData] read the identity and
// the MACs of the machine of an iLO. A [System] switches a machine. Certificates are
// self-signed and pinned at first use.
//
// The package does not know chassis: package moonshot knows their paths and slots.
package redfish
