package state

import "drover/state/wal"

// engine makes changes of tables durable. [wal.Log] implements it, and documents the
// methods.
type engine interface {
	Put(...wal.Change) (wal.Ticket, error)
	Async(...wal.Change)
	Wait(wal.Ticket) error
	Lost(wal.Ticket) bool
	Rewrite()
}

// The tables, with their keys and values. A number is never reused.
const (
	tableNodes    wal.TableID = iota + 1 // name: JSON of a pools.PoolNode
	tableLeases                          // IPv4 address, 4 bytes: see appendLease
	tableBoots                           // record ID: the value of a boots.Change
	tableUnknowns                        // MAC, 6 bytes: JSON of a pools.Unknown
	tableNext                            // node name: JSON of a nextBoot
	tableAudit                           // number, 8 bytes: JSON of a pools.AuditEntry
	tableLeases6                         // IPv6 address, 16 bytes: see appendLease
	tableRetired                         // node name: JSON of a pools.RetiredNode
	tableConfigs                         // number, 8 bytes: JSON of a keptConfig
	tableChannels                        // image name: JSON of a pools.ImageChannels
	tableTrials                          // node name: JSON of a pools.ImageTrial
)
