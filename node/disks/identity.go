package disks

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"drover/node/gpt"
)

// A disk that drover formats belongs to a node, by its name: a new board has other MACs, and
// so another machine-id. A shared disk of a SAN has the same device name on all nodes, and
// they all want the "data" of their pool. The mark of the node is in the disk's GUID: its
// first six bytes are a digest of the name, and it is of version 8 (RFC 9562, section 5.8).
// Random GUIDs, of version 4, are those of disks that an operator freed for any node.
const markedVersion = 8

// newGUID returns a new GUID for a disk of a node.
func newGUID(node string) gpt.GUID {
	g, digest := gpt.NewGUID(), nodeDigest(node)
	copy(g[:], digest[:])
	g[7] = g[7]&0x0f | markedVersion<<4
	return g
}

func nodeDigest(node string) [6]byte {
	sum := sha256.Sum256([]byte("drover/1 disk " + node))
	return [6]byte(sum[:])
}

// belongs reports whether a node may use a disk that drover formatted.
func belongs(g gpt.GUID, node string) bool {
	return g[7]>>4 != markedVersion || [6]byte(g[:]) == nodeDigest(node)
}

// identity identifies a disk whatever path leads to it; "" if it does not say. Serial numbers
// count only without a WWID: the namespaces of an NVMe controller have the same one.
func (d disk) identity() string {
	switch {
	case d.wwid != "":
		return "WWID " + d.wwid
	case len(d.serials) > 0:
		return fmt.Sprintf("serial %s, %d bytes", d.serials[0], d.size)
	}
	return ""
}

// isUsable reports whether this path leads to a disk that may be written to.
func (d disk) isUsable() bool { return d.used == nil && (d.foreign == nil || d.due != "") }

// joinPaths finds the disks that several paths lead to, which have as many names (multipath).
// One of the paths that can be used stays, the others become foreign.
func joinPaths(all []disk) {
	kept := map[string]int{}
	for i, d := range all {
		id := d.identity()
		if at, ok := kept[id]; id != "" && (!ok || !all[at].isUsable() && d.isUsable()) {
			kept[id] = i
		}
	}
	for i := range all {
		id := all[i].identity()
		if at, ok := kept[id]; ok && at != i {
			all[at].paths = append(all[at].paths, all[i].name)
			all[i].foreign = fmt.Errorf("it is the same disk as %s (%s)", all[at].name, id)
			all[i].path = all[i].table.Disk == all[at].table.Disk
			if all[i].due != "" && !all[i].path {
				all[i].stop = fmt.Errorf("it has the data of %s, and says that it is the same disk as %s (%s), which has other data; remove one", all[i].due, all[at].name, id)
			}
			all[i].due = ""
		}
	}
}

// singlePath returns a warning for a disk that has several paths; nil for others.
func (d disk) singlePath() error {
	if len(d.paths) == 0 {
		return nil
	}
	return fmt.Errorf("/dev/%s is also %s (%s): drover uses this one path, without failover", d.name, strings.Join(d.paths, ", "), d.identity())
}
