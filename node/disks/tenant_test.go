package disks

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/node/gpt"
	"drover/pools"
)

// secret is what a tenant has written. It is in the middle of a partition, and at its begin.
const secret = "the secret of tenant a"

// The tenants of the tests.
var (
	tenantA = Tenant{Name: "cluster a", Key: []byte("key of a"), Change: pools.DiskWipe}
	tenantB = Tenant{Name: "cluster b", Key: []byte("key of b"), Change: pools.DiskWipe}
)

// boot is a boot of a machine: what another tenant has is erased, and disks are mounted.
func (m *machine) boot(t Tenant, want ...pools.Disk) (erased, done []string, warnings string, err error) {
	m.t.Helper()
	m.tenant, m.did = t, nil
	p := m.preparer()
	if erased, err = p.Change(m.t.Context(), want); err != nil {
		return erased, nil, "", err
	}
	done, all, err := p.Prepare(m.t.Context(), want)
	for _, w := range all {
		warnings += w.Error() + "\n"
	}
	return erased, done, warnings, err
}

// used returns a machine whose disk has data of tenant a.
func used(t *testing.T, names ...string) *machine {
	t.Helper()
	m := newMachine(t)
	m.node, m.wait = "web1", 10*time.Millisecond
	for i, name := range names {
		m.add(name, "S"+fmt.Sprint(i), size, "")
		d := data
		d.Find.Path = "/dev/" + name
		if _, done, warnings, err := m.boot(tenantA, d); err != nil || warnings != "" || len(done) != 1 {
			t.Fatalf("got %q, %q, %v", done, warnings, err)
		}
		for _, at := range []int64{firstPartition, 9<<20 + 3, size - 1<<20} {
			m.writeAt(name, []byte(secret), at)
		}
	}
	return m
}

func (m *machine) writeAt(name string, b []byte, at int64) {
	m.t.Helper()
	f, err := os.OpenFile(filepath.Join(m.dir, "dev", name), os.O_WRONLY, 0)
	if err != nil {
		m.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b, at); err != nil {
		m.t.Fatal(err)
	}
}

// content returns what is on a disk.
func (m *machine) content(name string) []byte {
	m.t.Helper()
	return []byte(fixture.ReadFile(m.t, filepath.Join(m.dir, "dev", name)))
}

// remark changes the mark of a disk.
func (m *machine) remark(name string, change func(k *tenantMark)) {
	m.t.Helper()
	k, err := readMark(bytes.NewReader(m.content(name)))
	if err != nil || k == nil {
		m.t.Fatalf("got %+v, %v", k, err)
	}
	change(k)
	b, err := k.encode()
	if err != nil {
		m.t.Fatal(err)
	}
	m.writeAt(name, b, markAt)
}

// TestNeverErased has the ways to make drover erase or mount the wrong disk. It leaves each as it
// is, and does not mount the data of tenant a for tenant b.
func TestNeverErased(t *testing.T) {
	free := func(m *machine) {
		table := m.table(blank)
		table.Disk = gpt.NewGUID()
		m.overwrite(blank, table)
	}
	for _, tt := range []struct {
		name  string
		do    func(m *machine)
		to    Tenant
		stops bool // the boot ends; otherwise it goes on without the disk
		want  string
	}{
		{"a disk of another node", func(m *machine) { m.node = "web2" }, tenantB, false, `another node than "web2"`},
		{"of another machine, freed for any", free, tenantB, false, ""},
		{"freed by another node", func(m *machine) { free(m); m.node = "web2" }, tenantB, false, `it has the data of cluster a, from node "web1"`},
		{"foreign data", func(m *machine) {
			m.writeAt(blank, make([]byte, firstPartition), 0)
			m.writeAt(blank, make([]byte, 64<<10), size-64<<10)
		}, tenantB, false, "unknown data"},
		{"a foreign table", func(m *machine) {
			other, err := gpt.New(size, 512, []gpt.Want{{Name: "theirs", Type: gpt.Linux}})
			if err != nil {
				t.Fatal(err)
			}
			other.Disk = m.table(blank).Disk
			m.overwrite(blank, other)
		}, tenantB, false, "partition table that is not drover's"},
		{"a foreign table behind a mark of an erase", func(m *machine) {
			m.remark(blank, func(k *tenantMark) { k.Erasing = true })
			other, err := gpt.New(size, 512, []gpt.Want{{Name: "theirs", Type: gpt.Linux}})
			if err != nil {
				t.Fatal(err)
			}
			m.overwrite(blank, other)
		}, tenantB, false, "partition table that is not drover's"},
		{"other data behind a mark of an erase", func(m *machine) {
			m.remark(blank, func(k *tenantMark) { k.Erasing = true })
			m.writeAt(blank, make([]byte, markAt), 0)
			m.writeAt(blank, make([]byte, 64<<10), size-64<<10)
			m.writeAt(blank, []byte("\x53\xef"), 1080)
		}, tenantB, false, "an ext2, ext3 or ext4 file system"},
		{"a mark of an erase of another node", func(m *machine) {
			m.remark(blank, func(k *tenantMark) { k.Erasing, k.Node = true, "web9" })
		}, tenantB, false, `node "web9" has not finished to erase it`},
		{"a mark of an erase that was copied", func(m *machine) {
			m.remark(blank, func(k *tenantMark) { k.Erasing, k.Disk = true, "0" })
		}, tenantB, true, "its mark was copied from another disk"},
		{"a bad digest of the mark", func(m *machine) { m.writeAt(blank, []byte("x"), markAt+20) }, tenantB, false, "the mark of its tenant is damaged"},
		{"a mark of a later version", func(m *machine) { m.writeAt(blank, []byte("drover tenant 2"), markAt) }, tenantB, false, "the mark of its tenant is damaged"},
		{"something behind the mark", func(m *machine) { m.writeAt(blank, []byte("x"), markAt+markBlock-1) }, tenantB, false, "the mark of its tenant is damaged"},
		{"other data in place of the mark", func(m *machine) { m.writeAt(blank, bytes.Repeat([]byte("x"), markBlock), markAt) }, tenantB, false, "the mark of its tenant is damaged"},
		{"a mark of another disk", func(m *machine) { m.write("sys/block/"+blank+"/device/serial", "OTHER") }, tenantB, true, "a mark that was copied from another disk"},
		{"a copy with a serial number that the disk has not", func(m *machine) { m.write("sys/block/"+blank+"/device/serial", "") }, tenantB, true, "a mark that was copied from another disk"},
		{"a mark that tenant a forged", func(m *machine) {
			m.remark(blank, func(k *tenantMark) { k.Tenant = tenantB.Name; k.Proof = k.prove(tenantA.Key) })
		}, tenantB, true, "someone forged the mark"},
		{"the server's key was replaced", func(*machine) {}, Tenant{Name: tenantA.Name, Key: []byte("new"), Change: pools.DiskWipe}, true, "nodes.key was replaced"},
		{"refuse", func(*machine) {}, Tenant{Name: tenantB.Name, Key: tenantB.Key, Change: pools.DiskRefuse}, true, "move the node back, or boot once with diskChange: wipe"},
		{"read-only", func(m *machine) { m.write("sys/block/"+blank+"/ro", "1") }, tenantB, true, "cannot be erased: it is read-only"},
		{"held by a path of multipath", func(m *machine) { m.write("sys/block/"+blank+"/holders/dm-0/size", "1") }, tenantB, true, "cannot be erased: dm-0 is on it"},
		{"a USB stick with a copy", func(m *machine) { m.write("sys/block/"+blank+"/removable", "1") }, tenantB, false, "this machine has no disk"},
		{"unmarked, of a tenant that nobody knows", func(m *machine) { m.writeAt(blank, make([]byte, markBlock), markAt) }, tenantB, true, "the server does not know for whom this node booted last"},
		{"unmarked and freed for any", func(m *machine) { free(m); m.writeAt(blank, make([]byte, markBlock), markAt) }, Tenant{Name: tenantB.Name, Former: tenantB.Name, Change: pools.DiskWipe}, false, "it has no mark of a tenant"},
		{"unmarked, of another tenant, and refuse", func(m *machine) { m.writeAt(blank, make([]byte, markBlock), markAt) }, Tenant{Name: tenantB.Name, Former: tenantA.Name, Change: pools.DiskRefuse}, true, "it has the data of cluster a, and this node boots for cluster b, with diskChange: refuse"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := used(t, blank)
			tt.do(m)
			before := m.hash(blank)
			for _, want := range [][]pools.Disk{{data}, nil} {
				erased, done, warnings, err := m.boot(tt.to, want...)
				if tt.want == "" { // it is this node's, whatever its GUID
					if err != nil || len(erased) != 1 {
						t.Errorf("got %q, %v", erased, err)
					}
					return
				}
				if len(erased)+len(done) > 0 || (err != nil) != tt.stops {
					t.Fatalf("got %q, %q, %v", erased, done, err)
				}
				if said := warnings + fmt.Sprint(err); want != nil && !strings.Contains(said, tt.want) {
					t.Errorf("got %q, want %q", said, tt.want)
				}
				if i := slices.IndexFunc(m.did, func(s string) bool { return !strings.HasPrefix(s, "mount tmpfs") }); i >= 0 || tt.stops && len(m.did) > 0 {
					t.Errorf("did %q", m.did)
				}
			}
			if m.hash(blank) != before {
				t.Error("the disk was written to")
			}
		})
	}
}

// TestNeverErasedBeside: a disk that looks like the one to erase stops the boot, and both stay.
func TestNeverErasedBeside(t *testing.T) {
	for _, tt := range []struct {
		name, serial, wwid string
		change             func(b []byte) []byte
		want               string
	}{
		{"a copy", "S9", "", bytes.Clone, "copied from another disk"},
		{"two marks, no serial numbers", "", "", bytes.Clone, "has the same mark: one is a copy"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMachine(t)
			m.node, m.wait = "web1", 10*time.Millisecond
			serial := "S0"
			if tt.serial == "" {
				serial = ""
			}
			m.add("sda", serial, size, "")
			if _, _, _, err := m.boot(tenantA, data); err != nil {
				t.Fatal(err)
			}
			m.add("sdb", tt.serial, size, string(m.content("sda")))
			before := []any{m.hash("sda"), m.hash("sdb")}
			erased, _, _, err := m.boot(tenantB, data)
			if err == nil || !strings.Contains(err.Error(), tt.want) || len(erased) > 0 || len(m.did) > 0 {
				t.Errorf("got %q, %v, did %q", erased, err, m.did)
			}
			if m.hash("sda") != before[0] || m.hash("sdb") != before[1] {
				t.Error("a disk was written to")
			}
		})
	}
}

// TestChange: the data of tenant a is gone when b's is mounted, on disks that the config names
// and on others. A next boot has nothing to do.
func TestChange(t *testing.T) {
	m := used(t, blank, "sda")
	m.add("sdb", "FOREIGN", size, at(1080, "\x53\xef"))
	foreign := m.hash("sdb")
	erased, done, warnings, err := m.boot(tenantB, data)
	if err != nil || len(erased) != 2 || !strings.Contains(erased[0], "the data of cluster a is erased: zeroed by the device (clear)") && !strings.Contains(erased[0], "overwritten with zeros (clear)") {
		t.Fatalf("got %q, %q, %q, %v", erased, done, warnings, err)
	}
	if warnings != "" || len(done) != 1 || !strings.HasSuffix(done[0], ", formatted") {
		t.Errorf("got %q, %q", done, warnings)
	}
	for _, name := range []string{blank, "sda"} {
		if bytes.Contains(m.content(name), []byte(secret)) {
			t.Errorf("%s has the data of tenant a", name)
		}
	}
	if m.hash("sdb") != foreign {
		t.Error("a foreign disk was written to")
	}
	for range 2 {
		if erased, done, warnings, err := m.boot(tenantB, data); err != nil || len(erased) > 0 || warnings != "" || len(done) != 1 || !strings.HasSuffix(done[0], ", mounted") {
			t.Errorf("again: got %q, %q, %q, %v", erased, done, warnings, err)
		}
	}
}

// TestChangeWithoutDisks: a config that names no disk hands the machine over as well; a machine
// without disks waits for nothing.
func TestChangeWithoutDisks(t *testing.T) {
	m := used(t, blank)
	if erased, done, _, err := m.boot(tenantB); err != nil || len(erased) != 1 || len(done) > 0 {
		t.Errorf("got %q, %q, %v", erased, done, err)
	}
	if b := m.content(blank); !isZero(b) {
		t.Errorf("a byte is left at %d", firstNonzero(b))
	}
	m = newMachine(t)
	if _, _, _, err := m.boot(tenantB); err != nil || m.plugs != 1 {
		t.Errorf("without a disk: got %v, %d scans", err, m.plugs)
	}
}

// TestKeep: with keep a disk is mounted as it is, and belongs to the tenant from then on.
func TestKeep(t *testing.T) {
	m := used(t, blank)
	keep := tenantB
	keep.Change = pools.DiskKeep
	for _, to := range []Tenant{keep, tenantB} {
		erased, done, warnings, err := m.boot(to, data)
		if err != nil || len(erased) > 0 || warnings != "" || !slices.Equal(done, []string{"data is " + path + ", mounted"}) || !bytes.Contains(m.content(blank), []byte(secret)) {
			t.Errorf("got %q, %q, %q, %v", erased, done, warnings, err)
		}
	}
}

// TestUnmarked: a disk of an earlier version of drover is the tenant's that the node booted for
// before, and has a mark from then on.
func TestUnmarked(t *testing.T) {
	for _, former := range []Tenant{tenantA, tenantB} {
		m := used(t, blank)
		m.writeAt(blank, make([]byte, markBlock), markAt)
		to := tenantB
		to.Former = former.Name
		erased, done, warnings, err := m.boot(to, data)
		same := former.Name == to.Name
		if err != nil || warnings != "" || len(done) != 1 || len(erased) > 0 == same || bytes.Contains(m.content(blank), []byte(secret)) != same {
			t.Errorf("from %s: got %q, %q, %q, %v", former.Name, erased, done, warnings, err)
		}
		if k, err := readMark(bytes.NewReader(m.content(blank))); err != nil || k == nil || k.Tenant != to.Name || !k.isProved(to.Key) {
			t.Errorf("from %s: mark %+v, %v", former.Name, k, err)
		}
	}
	m := used(t, blank) // a server that names no tenant: as before
	if _, done, warnings, err := m.boot(Tenant{}, data); err != nil || warnings != "" || len(done) != 1 {
		t.Errorf("got %q, %q, %v", done, warnings, err)
	}
}

// TestForged: where the server knows that another tenant booted before, a mark that this tenant did not
// make keeps nobody's data, and costs this tenant no boot.
func TestForged(t *testing.T) {
	m := used(t, blank)
	m.remark(blank, func(k *tenantMark) { k.Tenant = tenantB.Name; k.Proof = k.prove(tenantA.Key) })
	to := tenantB
	to.Former = tenantA.Name
	if erased, done, _, err := m.boot(to, data); err != nil || len(erased) != 1 || len(done) != 1 || bytes.Contains(m.content(blank), []byte(secret)) {
		t.Errorf("got %q, %q, %v", erased, done, err)
	}
}

// TestSameDiskMoved: the tenant's own disk, freed and moved to another of its nodes, keeps its
// data, and is erased there when that node changes hands.
func TestSameDiskMoved(t *testing.T) {
	m := used(t, blank)
	table := m.table(blank)
	table.Disk = gpt.NewGUID()
	m.overwrite(blank, table)
	m.node = "web2"
	if erased, done, warnings, err := m.boot(tenantA, data); err != nil || len(erased) > 0 || warnings != "" || len(done) != 1 {
		t.Fatalf("got %q, %q, %q, %v", erased, done, warnings, err)
	}
	if erased, _, _, err := m.boot(tenantB, data); err != nil || len(erased) != 1 || bytes.Contains(m.content(blank), []byte(secret)) {
		t.Errorf("got %q, %v", erased, err)
	}
}

// TestPathsChange: of two paths to a disk one erases it.
func TestPathsChange(t *testing.T) {
	m := used(t, "sda")
	m.write("sys/block/sda/device/wwid", "naa.1")
	m.add("sdb", "S0", size, "")
	m.write("sys/block/sdb/device/wwid", "naa.1")
	if err := errors.Join(os.Remove(filepath.Join(m.dir, "dev/sdb")), os.Link(filepath.Join(m.dir, "dev/sda"), filepath.Join(m.dir, "dev/sdb"))); err != nil {
		t.Fatal(err)
	}
	if erased, done, _, err := m.boot(tenantB, data); err != nil || len(erased) != 1 || len(done) != 1 {
		t.Errorf("got %q, %q, %v", erased, done, err)
	}
	// Another disk with the same serial number and size: not a path, and not erased.
	m = used(t, "sda", "sdb")
	m.write("sys/block/sdb/device/serial", "S0")
	m.remark("sdb", func(k *tenantMark) { k.Disk = serialDigest("S0") })
	before := m.hash("sdb")
	if _, _, _, err := m.boot(tenantB, data); err == nil || !strings.Contains(err.Error(), "which has other data; remove one") || m.hash("sdb") != before {
		t.Errorf("got %v", err)
	}
}
