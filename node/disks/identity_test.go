package disks

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/node/gpt"
	"drover/pools"
)

const blank, path = "nvme0n1", "/dev/nvme0n1"

// table returns the partition table of a disk.
func (m *machine) table(name string) gpt.Table {
	m.t.Helper()
	f, err := os.Open(filepath.Join(m.dir, "dev", name))
	if err != nil {
		m.t.Fatal(err)
	}
	defer f.Close()
	t, err := gpt.Read(f, size, 512)
	if err != nil {
		m.t.Fatal(err)
	}
	return t
}

// overwrite writes a partition table as another node does.
func (m *machine) overwrite(name string, t gpt.Table) {
	m.t.Helper()
	f, err := os.OpenFile(filepath.Join(m.dir, "dev", name), os.O_WRONLY, 0)
	if err != nil {
		m.t.Fatal(err)
	}
	defer f.Close()
	if err := t.Write(f, size, 512); err != nil {
		m.t.Fatal(err)
	}
}

// A disk belongs to the node that formatted it: other nodes, which find the same disk in a SAN,
// leave it alone, finished or not. A GUID of version 4 is of a disk that was freed.
func TestOtherNode(t *testing.T) {
	for _, fail := range []string{"", "mkfs ext4"} {
		m := newMachine(t)
		m.node, m.fail = "web1", fail
		m.add(blank, "S1", size, "")
		if _, _, err := m.prepare(data); err != nil {
			t.Fatal(err)
		}
		m.node, m.fail = "web2", ""
		before := m.hash(blank)
		for _, find := range []pools.FindDisk{{}, {Serial: "s1"}} {
			d := data
			d.Find = find
			_, warnings, err := m.prepare(d)
			if err != nil || !strings.Contains(warnings, `another node than "web2" formatted it, as disk "data"`) || m.hash(blank) != before || len(m.did) != 1 {
				t.Errorf("another node: got %q, %v, did %q", warnings, err, m.did)
			}
		}
		free := m.table(blank)
		free.Disk = gpt.NewGUID()
		m.overwrite(blank, free)
		if done, warnings, err := m.prepare(data); err != nil || warnings != "" || len(done) != 1 {
			t.Errorf("a disk without a node: got %q, %q, %v", done, warnings, err)
		}
		if marked := m.table(blank).Disk != free.Disk; marked != (fail != "") {
			t.Errorf("its GUID has changed: %v, want %v: only what is formatted gets a node", marked, fail != "")
		}
	}
}

// TestMoveDisk: the command of the documentation gives a disk to any node.
func TestMoveDisk(t *testing.T) {
	sfdisk, err := exec.LookPath("sfdisk")
	if err != nil {
		fixture.Missing(t, "needs the package fdisk")
	}
	m := newMachine(t)
	m.node = "web1"
	m.add(blank, "S1", size, "")
	if _, _, err := m.prepare(data); err != nil {
		t.Fatal(err)
	}
	uuid := strings.TrimSpace(fixture.ReadFile(t, "/proc/sys/kernel/random/uuid"))
	if out, err := exec.Command(sfdisk, "--disk-id", filepath.Join(m.dir, path), uuid).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	m.node = "web2"
	if done, warnings, err := m.prepare(data); err != nil || warnings != "" || !slices.Equal(done, []string{"data is " + path + ", mounted"}) {
		t.Errorf("got %q, %q, %v", done, warnings, err)
	}
}

// A disk that another system changes after it was read stays as that system left it.
func TestTakenMeanwhile(t *testing.T) {
	theirs := newMachine(t)
	theirs.node = "web2"
	theirs.add(blank, "S1", size, "")
	if _, _, err := theirs.prepare(data); err != nil {
		t.Fatal(err)
	}
	table := theirs.table(blank)
	for _, tt := range []struct{ name, step, want string }{
		{"before the format", "", "another node than"},
		{"at the same time", "reread", "another node than"},
		{"during mkfs", "mkfs ext4", "another node than"},
		{"by another program", "mkfs swap", "not drover's"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMachine(t)
			m.node = "web1"
			m.add(blank, "S1", size, "")
			take := func() { m.overwrite(blank, table) }
			switch tt.step {
			case "":
				m.plug = func() {
					if m.plugs == 3 { // the disk was read once, in the first scan
						take()
					}
				}
			case "mkfs swap":
				other, err := gpt.New(size, 512, []gpt.Want{{Name: "theirs", Type: gpt.Linux}})
				if err != nil {
					t.Fatal(err)
				}
				take = func() { m.overwrite(blank, other) }
				fallthrough
			default:
				m.while = map[string]func(){tt.step: take}
			}
			_, warnings, err := m.prepare(data)
			if err != nil || !strings.Contains(warnings, "another system has taken it meanwhile") || !strings.Contains(warnings, tt.want) {
				t.Errorf("got %q, %v", warnings, err)
			}
			if tt.step != "mkfs swap" && m.table(blank).Disk != table.Disk {
				t.Error("the table of the other node was replaced")
			}
			if mkfs := slices.ContainsFunc(m.did, func(s string) bool { return strings.HasPrefix(s, "mkfs") }); mkfs != strings.HasPrefix(tt.step, "mkfs") {
				t.Errorf("did %q", m.did)
			}
		})
	}
}

// Several names of one disk are one disk. The first path that can be read is used, and that is
// reported.
func TestPaths(t *testing.T) {
	m := newMachine(t)
	for i, name := range []string{"sda", "sdb", "sdc", "sdd", "sde"} {
		m.add(name, "same", size, "")
		wwid := "naa.1"
		if i == 4 {
			wwid = "naa.2" // another LUN of the array
		}
		m.write("sys/block/"+name+"/device/wwid", wwid+"\n")
	}
	m.write("sys/block/sda/ro", "1\n")
	more := data
	more.Name = "more"
	want := `disk "data": /dev/sdb is also sda, sdc, sdd (WWID naa.1): drover uses this one path, without failover` + "\n"
	for _, verb := range []string{"formatted", "mounted"} {
		done, warnings, err := m.prepare(data, more)
		if err != nil || !slices.Equal(done, []string{"data is /dev/sdb, " + verb, "more is /dev/sde, " + verb}) || warnings != want {
			t.Errorf("got %q, %q, %v, want %q", done, warnings, err, want)
		}
	}
	third := data
	third.Name, third.Find.Path = "third", "/dev/sdc"
	if _, warnings, err := m.prepare(third); err != nil || !strings.Contains(warnings, "it is the same disk as sdb (WWID naa.1)") {
		t.Errorf("got %q, %v", warnings, err)
	}
}

// Without a WWID the serial number and the size identify a disk.
func TestPathsBySerial(t *testing.T) {
	m := newMachine(t)
	m.add("vda", "S1", size, "")
	m.add("vdb", "S1", size, "")
	m.add("vdc", "S1", 2*size, "")
	m.add("vdd", "", size, "")
	m.add("vde", "", size, "")
	var all []pools.Disk
	for _, name := range []string{"a", "c", "d", "e", "none"} {
		all = append(all, pools.Disk{Name: name, Partitions: []pools.Partition{{Label: "x", Filesystem: pools.Swap}}})
	}
	done, warnings, err := m.prepare(all...)
	if want := []string{"a is /dev/vda, formatted", "c is /dev/vdc, formatted", "d is /dev/vdd, formatted", "e is /dev/vde, formatted"}; err != nil || !slices.Equal(done, want) {
		t.Errorf("got %q, %v, want %q", done, err, want)
	}
	if !strings.Contains(warnings, "/dev/vda is also vdb (serial S1, 17825792 bytes)") || !strings.Contains(warnings, "vdb: it is the same disk as vda") {
		t.Errorf("got %q", warnings)
	}
}
