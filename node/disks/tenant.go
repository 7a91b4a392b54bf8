package disks

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"drover/node/gpt"
	"drover/pools"
)

// Tenant is whom a node boots for. Disks have the data of one tenant.
type Tenant struct {
	Name   string           // "cluster NAME" or "pool NAME"; empty: the server is of an earlier version, and names none
	Former string           // tenant of the node's boot before this one; empty: the server does not know it
	Key    []byte           // of the tenant, which makes the proof of its marks
	Change pools.DiskChange // what becomes of the data of another tenant
}

// keeps reports whether data is mounted whose tenant is another.
func (t Tenant) keeps() bool { return t.Name == "" || t.Change == pools.DiskKeep }

// keepOnce is the way out of doubt for an operator.
const keepOnce = "boot once with diskChange: keep to use its data for this tenant, or empty it: blkdiscard -f /dev/%s"

// judge decides whose the data of a disk is that drover formatted: it sets due, stop or
// foreign, or nothing for a disk that this node may mount. A GUID that names another node comes
// first: such a disk is not of this machine.
func (d *disk) judge(node string, t Tenant) {
	m := d.mark
	switch {
	case !belongs(d.table.Disk, node):
		d.foreign = fmt.Errorf("another node than %q formatted it, as disk %q (to move it here with its data, give it a new GUID: sfdisk --disk-id)", node, d.owner)
	case m != nil && m.Erasing:
		d.resume(node)
	case t.keeps(): // as before there were marks
	case m == nil:
		d.judgeUnmarked(t)
	case m.Tenant == t.Name && m.isProved(t.Key):
	case m.Node != node:
		d.foreign = fmt.Errorf("it has the data of %s, from node %q, and this node boots for %s ("+keepOnce+")", m.Tenant, m.Node, t.Name, d.name)
	case !d.bears(*m):
		d.stop = fmt.Errorf("it has the data of %s and a mark that was copied from another disk; remove the disk, or "+keepOnce, m.Tenant, d.name)
	case m.Tenant != t.Name:
		d.change(m.Tenant, t)
	case t.Former != "" && t.Former != t.Name: // the tenant before has made the mark
		d.change(t.Former, t)
	default:
		d.stop = fmt.Errorf("its mark names this node and %s, and is not made with the key of %s: the server's nodes.key was replaced, or someone forged the mark; "+keepOnce, t.Name, t.Name, d.name)
	}
}

// change decides on a disk of this node that has the data of another tenant.
func (d *disk) change(from string, t Tenant) {
	if t.Change == pools.DiskRefuse {
		d.stop = fmt.Errorf("it has the data of %s, and this node boots for %s, with diskChange: refuse; move the node back, or boot once with diskChange: wipe to erase the disk, or keep to use its data", from, t.Name)
		return
	}
	d.due = from
}

// judgeUnmarked decides on a disk that an earlier version of drover formatted. Its data is of the
// tenant that the node booted for before, which the server knows: the disk does not say.
func (d *disk) judgeUnmarked(t Tenant) {
	named := d.table.Disk[7]>>4 == markedVersion
	switch {
	case !d.done: // it has no file systems yet
	case !named: // an operator freed it for any node, or root on a node did
		d.foreign = fmt.Errorf("it has no mark of a tenant, and nothing says whose its data is ("+keepOnce+")", d.name)
	case t.Former == "": // no boot may pass that makes this tenant the one before
		d.stop = fmt.Errorf("an earlier version of drover formatted it, and the server does not know for whom this node booted last; "+keepOnce, d.name)
	case t.Former == t.Name: // it is marked when it is mounted
	default:
		d.change(t.Former, t)
	}
}

// resume decides on a disk whose erase has begun. What is left of its data is of no use to anyone.
func (d *disk) resume(node string) {
	switch {
	case d.mark.Node != node:
		d.foreign = fmt.Errorf("node %q has not finished to erase it", d.mark.Node)
	case !d.bears(*d.mark):
		d.stop = fmt.Errorf("its erase is not finished, and its mark was copied from another disk; remove the disk, or empty it: blkdiscard -f /dev/%s", d.name)
	default:
		d.due = d.mark.Tenant
	}
}

// resumeBare finds a disk whose erase was interrupted after its partition table was gone. The
// first MiB then has the mark alone: a table that was made since is another owner's.
func (d *disk) resumeBare(f io.ReaderAt, node string) bool {
	m, err := readMark(f)
	if err != nil || m == nil || !m.Erasing || m.Node != node || !d.bears(*m) {
		return false
	}
	b := make([]byte, firstPartition)
	if _, err := f.ReadAt(b, 0); err != nil || !isZero(b[:markAt]) || !isZero(b[markAt+markBlock:]) {
		return false
	}
	d.mark, d.due = m, m.Tenant
	return true
}

// whole returns an error if a disk that has to be erased may be mistaken, or cannot be written:
// two disks with one GUID are copies, and nobody knows which one is meant.
func (d disk) whole(have []disk) error {
	if d.used != nil {
		return d.used
	}
	if d.table.Disk == (gpt.GUID{}) {
		return nil
	}
	if i := slices.IndexFunc(have, func(o disk) bool { return o.name != d.name && !o.path && o.table.Disk == d.table.Disk }); i >= 0 {
		return fmt.Errorf("/dev/%s has the same mark: one is a copy; remove it", have[i].name)
	}
	return nil
}

// errLate is the error of a disk that was not there when the others were erased.
var errLate = errors.New("it has the data of another tenant, and came too late to be erased: the next boot erases it")
