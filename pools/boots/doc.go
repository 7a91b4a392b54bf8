// Package boots follows each boot of each machine: its timeline, the nonce and
// the key that it is bound to, whether it has ended, and whether it is stuck.
//
// There is one table of the steps of a boot, [Steps]: their order, their
// reporters, and the part of drover that reports each. A [Record] is the
// timeline of one boot, and [Record.Ended] the only rule for its end. [Table]
// holds the boots of all machines: [Table.Discover] begins a boot, [Table.Issue]
// makes the nonce for its boot script, or [Table.IssueUnproved] if the request may
// be forged, [Table.Claim] binds it to the node's key, [Table.Step] adds to its
// timeline. [MarkStuck] finds the boots that make no progress.
//
// The package does not know DHCP, TFTP, HTTP or Kubernetes, nor how a machine is
// found: its callers pass a [resolve.Plan]. It does not know files either: a [Storage]
// makes boots durable.
package boots
