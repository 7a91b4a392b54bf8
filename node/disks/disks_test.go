package disks

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"drover/e2e/fixture"
	"drover/node/gpt"
	"drover/pools"
)

// size is that of most disks.
const size = 17 << 20

// machine is a machine with disks that are files.
type machine struct {
	t      *testing.T
	mu     sync.Mutex // disks are erased at the same time
	dir    string
	did    []string // what was done to the system
	fail   string   // the begin of a step that fails
	plugs  int
	node   string
	tenant Tenant
	answer time.Duration
	wait   time.Duration // 0: 300 ms
	chunk  int64
	cut    func(stage string) error
	ways   []way
	plug   func()            // called before each scan
	while  map[string]func() // called in a step that begins so
}

func newMachine(t *testing.T) *machine { return &machine{t: t, dir: t.TempDir()} }

// add adds a disk; content is at its begin. Of the size are only the first bytes on disk.
func (m *machine) add(name, serial string, size int64, content string) {
	m.t.Helper()
	for path, text := range map[string]string{
		"sys/block/" + name + "/size": fmt.Sprint(size / 512), "sys/block/" + name + "/device/serial": serial + "  \n",
		"sys/block/" + name + "/queue/logical_block_size": "512\n", "sys/block/" + name + "/removable": "0\n",
		"dev/" + name: content,
	} {
		m.write(path, text)
	}
	if err := os.Truncate(filepath.Join(m.dir, "dev", name), size); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) write(path, text string) {
	m.t.Helper()
	path = filepath.Join(m.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) do(format string, args ...any) error {
	step := strings.ReplaceAll(fmt.Sprintf(format, args...), m.dir, "")
	m.mu.Lock()
	m.did = append(m.did, step)
	m.mu.Unlock()
	for begin, do := range m.while {
		if strings.HasPrefix(step, begin) {
			do()
		}
	}
	if m.fail != "" && strings.HasPrefix(step, m.fail) {
		return errors.New("it fails")
	}
	return nil
}

func (m *machine) Mkfs(_ context.Context, kind pools.Filesystem, label, device string) error {
	return m.do("mkfs %s %s %s", kind, label, device)
}

// Reread makes the partitions, as the kernel does.
func (m *machine) Reread(device string) error {
	name := filepath.Base(device)
	if strings.HasPrefix(name, "nvme") {
		name += "p"
	}
	for i := range 9 {
		m.write(fmt.Sprintf("dev/%s%d", name, i+1), "")
	}
	return m.do("reread %s", device)
}

func (m *machine) Mount(kind, source, target, options string) error {
	return m.do("%s", strings.TrimSpace(fmt.Sprintf("mount %s %s %s %s", kind, source, target, options)))
}

func (m *machine) SwapOn(device string, _ int) error { return m.do("swapon %s", device) }

// prepare is a boot of the machine.
func (m *machine) prepare(want ...pools.Disk) (done []string, warnings string, err error) {
	m.t.Helper()
	m.did = nil
	p := m.preparer()
	done, all, err := p.Prepare(m.t.Context(), want)
	for _, w := range all {
		warnings += w.Error() + "\n"
	}
	return done, warnings, err
}

func (m *machine) preparer() *Preparer {
	return &Preparer{
		System: m, Node: m.node, Tenant: m.tenant, cut: m.cut, ways: m.ways, Sys: filepath.Join(m.dir, "sys"), Dev: filepath.Join(m.dir, "dev"), Root: filepath.Join(m.dir, "root"), Shared: filepath.Join(m.dir, "run"),
		Plug: m.plugIn, Say: m.t.Logf, Tmpfs: "size=1", chunk: m.chunk, Wait: cmp.Or(m.wait, 300*time.Millisecond), Interval: time.Millisecond, Answer: m.answer,
	}
}

func (m *machine) plugIn() {
	m.plugs++
	if m.plug != nil {
		m.plug()
	}
}

// hash returns the digest of a disk.
func (m *machine) hash(name string) [32]byte {
	m.t.Helper()
	return sha256.Sum256([]byte(fixture.ReadFile(m.t, filepath.Join(m.dir, "dev", name))))
}

var data = pools.Disk{Name: "data", Partitions: []pools.Partition{
	{Label: "swap", Filesystem: pools.Swap, Size: "8M"},
	{Label: "containerd", Mount: pools.Strings{"/var/lib/containerd"}, Options: "noatime"},
}}

// An empty disk is formatted once; later boots mount it.
func TestPrepare(t *testing.T) {
	m := newMachine(t)
	m.add("nvme0n1", "S1", size, "")
	mounts := []string{"swapon /dev/nvme0n1p1", "mount ext4 /dev/nvme0n1p2 /root/var/lib/containerd noatime"}
	want := append([]string{"reread /dev/nvme0n1", "mkfs swap swap /dev/nvme0n1p1", "mkfs ext4 containerd /dev/nvme0n1p2"}, mounts...)
	for boot, did := range [][]string{want, mounts, mounts} {
		done, warnings, err := m.prepare(data)
		if err != nil || warnings != "" || !slices.Equal(m.did, did) || len(done) != 1 {
			t.Fatalf("boot %d: got %q, %q, %v, did\n%q\nwant\n%q", boot, done, warnings, err, m.did, did)
		}
	}
	// The disk that drover formatted goes before another empty one.
	m.add("nvme00n0", "S0", size, "")
	if _, _, err := m.prepare(data); err != nil || !slices.Equal(m.did, mounts) {
		t.Errorf("with a second disk: got %v, did %q", err, m.did)
	}
	// Without it the other one is formatted.
	other := data
	other.Name = "more"
	if done, warnings, err := m.prepare(data, other); err != nil || warnings != "" || len(done) != 2 || !slices.Contains(m.did, "reread /dev/nvme00n0") {
		t.Errorf("two disks: got %q, %q, %v, did %q", done, warnings, err, m.did)
	}
}

// A disk whose formatting was interrupted is formatted again.
func TestInterrupted(t *testing.T) {
	m := newMachine(t)
	m.add("nvme0n1", "S1", size, "")
	m.fail = "mkfs ext4"
	if _, warnings, err := m.prepare(data); err != nil || !strings.Contains(warnings, `disk "data": format /dev/nvme0n1: it fails; going on without: a tmpfs is at /var/lib/containerd`) ||
		!slices.Contains(m.did, "mount tmpfs drover-tmpfs /root/var/lib/containerd size=1") {
		t.Errorf("got %q, %v, did %q", warnings, err, m.did)
	}
	m.fail = ""
	if done, warnings, err := m.prepare(data); err != nil || warnings != "" || len(done) != 1 || !slices.Contains(m.did, "mkfs ext4 containerd /dev/nvme0n1p2") {
		t.Errorf("again: got %q, %q, %v, did %q", done, warnings, err, m.did)
	}
}

// at returns zeros with a text at an offset.
func at(offset int, text string) string { return string(make([]byte, offset)) + text }

// Foreign data is neither changed nor mounted, and has a reason.
func TestForeign(t *testing.T) {
	foreign, err := gpt.New(size, 512, []gpt.Want{{Name: "EFI System", Type: gpt.Linux}})
	if err != nil {
		t.Fatal(err)
	}
	disk := make([]byte, size)
	if err := foreign.Write(sparse(disk), size, 512); err != nil {
		t.Fatal(err)
	}
	damaged := slices.Clone(disk)
	damaged[600]++
	damaged[size-500]++
	for _, tt := range []struct{ name, content, want string }{
		{"a partition table", string(disk), `partition table that is not drover's, with "EFI System"`},
		{"a damaged partition table", string(damaged), "a GUID partition table that is damaged"},
		{"its copy only", at(size-512*33, string(disk[size-512*33:])), `with "EFI System"`},
		{"an MBR", at(510, "\x55\xaa"), "a partition table (MBR)"},
		{"ext4", at(1080, "\x53\xef"), "an ext2, ext3 or ext4 file system"},
		{"XFS", "XFSB", "an XFS file system"},
		{"LVM", at(512, "LABELONE"), "an LVM physical volume"},
		{"LUKS", "LUKS\xba\xbe", "LUKS encryption"},
		{"RAID at the begin", at(4096, "\xfc\x4e\x2b\xa9"), "a RAID member (md)"},
		{"RAID at the end", at(size-8192, "\xfc\x4e\x2b\xa9"), "a RAID member (md)"},
		{"a byte in the first MiB", at(1<<20-1, "x"), "unknown data at byte 1048575"},
		{"a byte after it", at(3<<20, "x"), "unknown data at byte 3145728"},
		{"a byte at the end", at(size-1, "x"), "unknown data at byte 17825791"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMachine(t)
			m.add("nvme0n1", "S1", size, tt.content)
			before := m.hash("nvme0n1")
			for _, find := range []pools.FindDisk{{}, {Serial: "s1"}, {Path: "/dev/nvme*"}} {
				d := pools.Disk{Name: "data", Find: find, Partitions: data.Partitions}
				_, warnings, err := m.prepare(d)
				if err != nil || !strings.Contains(warnings, tt.want) || !strings.Contains(warnings, "going on without: a tmpfs is at /var/lib/containerd") {
					t.Errorf("%s: got %q, %v, want %q", d, warnings, err, tt.want)
				}
				if len(m.did) != 1 {
					t.Errorf("%s: did %q", d, m.did)
				}
			}
			if m.hash("nvme0n1") != before {
				t.Error("the disk was written to")
			}
		})
	}
}

// sparse is a disk in RAM.
type sparse []byte

func (s sparse) WriteAt(b []byte, at int64) (int, error) { return copy(s[at:], b), nil }

func TestMissing(t *testing.T) {
	m := newMachine(t)
	start := time.Now()
	if _, warnings, err := m.prepare(data); err != nil || !strings.Contains(warnings, "this machine has no disk, or the image has no driver for it; going on without") {
		t.Errorf("got %q, %v", warnings, err)
	}
	if took := time.Since(start); took < 300*time.Millisecond || m.plugs < 2 {
		t.Errorf("it waited %v, and looked %d times", took, m.plugs)
	}
	m.add("sda", "S1", size, "")
	m.add("loop0", "", size, "")
	m.add("zram0", "", size, "")
	m.add("sdb", "S2", size, "")
	m.write("sys/block/sdb/removable", "1\n")
	m.add("sdc", "S3", size, "")
	m.write("sys/block/sdc/holders/dm-0/size", "1")
	m.add("sdd", "S4", size, "")
	m.write("sys/block/sdd/ro", "1\n")
	m.add("sde", "S5", 1<<20, "")
	for _, tt := range []struct {
		find pools.FindDisk
		want string
	}{
		{pools.FindDisk{Serial: "gone"}, `sda (0 GB, serial "S1") does not match`},
		{pools.FindDisk{MinSize: "1G"}, "none of 4 disks is it"},
		{pools.FindDisk{MaxSize: "2M"}, "sde: it has only 1 MB"},
		{pools.FindDisk{Serial: "S3"}, "dm-0 is on it"},
		{pools.FindDisk{Path: "/dev/sdd"}, "it is read-only"},
		{pools.FindDisk{Path: "/dev/sdb"}, "none of 4 disks is it"},
	} {
		d := data
		d.Find = tt.find
		_, warnings, err := m.prepare(d)
		if err != nil || !strings.Contains(warnings, tt.want) || !slices.Equal(m.did, []string{"mount tmpfs drover-tmpfs /root/var/lib/containerd size=1"}) {
			t.Errorf("%s: got %q, %v, did %q, want %q", d, warnings, err, m.did, tt.want)
		}
		d.Required = true
		if _, _, err := m.prepare(d); err == nil || !strings.Contains(err.Error(), "the node needs it (required: true)") || len(m.did) > 0 {
			t.Errorf("%s: got %v, did %q", d, err, m.did)
		}
	}
}

// While disks come and go, those of earlier boots are mounted, and empty ones are not
// formatted: the disk of an earlier boot may be the next to come.
func TestUnsettled(t *testing.T) {
	m := newMachine(t)
	m.add("nvme0n1", "S1", size, "")
	if done, warnings, err := m.prepare(data); err != nil || warnings != "" || len(done) != 1 {
		t.Fatalf("got %q, %q, %v", done, warnings, err)
	}
	m.add("sda", "S2", size, "")
	m.add("sdb", "S3", size, at(1080, "\x53\xef"))
	m.plug = func() { m.write("sys/block/sdb/size", fmt.Sprint(size/512-m.plugs%2)) }
	empty := m.hash("sda")
	more := pools.Disk{Name: "more", Partitions: data.Partitions}
	done, warnings, err := m.prepare(data, more)
	if err != nil || !slices.Equal(done, []string{"data is /dev/nvme0n1, mounted"}) || m.hash("sda") != empty {
		t.Errorf("got %q, %v", done, err)
	}
	if !strings.Contains(warnings, `disk "more": /dev/sda is empty and not formatted: other disks were still coming`) {
		t.Errorf("got %q", warnings)
	}
	// A disk whose formatting was interrupted is drover's: it is no other one.
	m.fail = "mkfs swap"
	m.plug = nil
	if _, warnings, err := m.prepare(data, more); err != nil || !strings.Contains(warnings, "it fails") {
		t.Fatalf("got %q, %v", warnings, err)
	}
	m.fail = ""
	m.plug = func() { m.write("sys/block/sdb/size", fmt.Sprint(size/512-m.plugs%2)) }
	if done, warnings, err := m.prepare(data, more); err != nil || warnings != "" || len(done) != 2 {
		t.Errorf("got %q, %q, %v", done, warnings, err)
	}
}

// A disk that hangs is not used, and the boot goes on.
func TestHangs(t *testing.T) {
	m := newMachine(t)
	m.answer = 10 * time.Millisecond
	m.add("sda", "S1", size, "")
	pipe := filepath.Join(m.dir, "dev", "sda")
	if err := errors.Join(os.Remove(pipe), unix.Mkfifo(pipe, 0o600)); err != nil { // open(2) waits for a writer
		t.Fatal(err)
	}
	for _, find := range []pools.FindDisk{{}, {Serial: "S1"}} {
		d := data
		d.Find = find
		if _, warnings, err := m.prepare(d); err != nil || !strings.Contains(warnings, "it does not answer; going on without: a tmpfs is at /var/lib/containerd") &&
			!strings.Contains(warnings, "/dev/sda is not used and stays as it is: it does not answer") {
			t.Errorf("got %q, %v", warnings, err)
		}
	}
	f, err := os.OpenFile(pipe, os.O_RDWR, 0) // ends the readers
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

// One disk that hangs does not make others foreign that have answered.
func TestAnswer(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	read := make(chan disk, 1)
	for range 100 { // select chooses at random
		read <- disk{name: "sda", owner: "data"}
		if d := answer(ended, read, disk{name: "sda"}); d.owner != "data" || d.foreign != nil {
			t.Fatalf("got %+v", d)
		}
	}
	if d := answer(ended, read, disk{name: "sda", serials: []string{"S1"}}); d.foreign == nil || d.serials == nil {
		t.Errorf("got %+v", d)
	}
}

// Disks that are asked for by serial are not given to another; several paths share a file
// system; a disk of another layout stays.
func TestSeveral(t *testing.T) {
	m := newMachine(t)
	for i := range 3 {
		m.add(fmt.Sprintf("nvme%dn1", i), fmt.Sprintf("S%d", i), size, "")
	}
	first := pools.Disk{Name: "first", Partitions: []pools.Partition{{Label: "var", Mount: pools.Strings{"/var/lib/containerd", "/var/log"}}}}
	exact := pools.Disk{Name: "exact", Find: pools.FindDisk{Serial: "s0"}, Partitions: data.Partitions}
	done, warnings, err := m.prepare(first, exact)
	if err != nil || warnings != "" || !slices.Equal(done, []string{"first is /dev/nvme1n1, formatted", "exact is /dev/nvme0n1, formatted"}) {
		t.Fatalf("got %q, %q, %v", done, warnings, err)
	}
	fixture.WantText(t, "steps", strings.Join(m.did, "\n"), "mount ext4 /dev/nvme1n1p1 /run/first/var\n"+
		"mount bind /run/first/var/var-lib-containerd /root/var/lib/containerd\nmount bind /run/first/var/var-log /root/var/log\n")
	renamed := first
	renamed.Find.Serial, renamed.Name = "S0", "first"
	if _, warnings, err := m.prepare(renamed); err != nil || !strings.Contains(warnings, `drover formatted it as disk "exact"`) {
		t.Errorf("a disk of another name: got %q, %v", warnings, err)
	}
	changed := pools.Disk{Name: "first", Partitions: []pools.Partition{{Label: "srv", Mount: pools.Strings{"/srv"}}}}
	if _, warnings, err := m.prepare(changed); err != nil || !strings.Contains(warnings, `formatted with the partitions var, and has no "srv"`) {
		t.Errorf("another layout: got %q, %v", warnings, err)
	}
	large := pools.Disk{Name: "large", Partitions: []pools.Partition{{Label: "a", Size: "1G"}, {Label: "b"}}}
	before := m.hash("nvme2n1")
	if _, warnings, err := m.prepare(large); err != nil || !strings.Contains(warnings, "partition 1 of 1024 MB does not fit") || m.hash("nvme2n1") != before {
		t.Errorf("too large: got %q, %v", warnings, err)
	}
}

func TestPlug(t *testing.T) {
	root := fixture.Tree(t, map[string]string{
		"bus/pci/devices/0/modalias":    "pci:v00001B36d00000010sv00001AF4sd00001100bc01sc08i02\n",
		"bus/pci/devices/1/modalias":    "pci:v00001AF4d00001000sv00001AF4sd00000001bc02sc00i00\n",
		"bus/virtio/devices/0/modalias": "virtio:d00000002v00001AF4\n",
		"bus/scsi/devices/0/modalias":   "scsi:t-0x00\n",
	})
	var got []string
	Plug(root, func(alias string) error {
		got = append(got, alias[:strings.Index(alias, ":")])
		return errors.New("no matter")
	})
	slices.Sort(got)
	if want := []string{"pci", "scsi", "virtio"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSwapHeader(t *testing.T) {
	b := swapHeader(size, 4096)
	if len(b) != 4096 || string(b[4086:]) != "SWAPSPACE2" || b[1024] != 1 || b[1028] != 0xff || b[1029] != 0x10 {
		t.Errorf("got % x", b[1024:1040])
	}
	if got := empty(bytes.NewReader(append(b, make([]byte, size)...)), size); got == nil || !strings.Contains(got.Error(), "a swap area") {
		t.Errorf("got %v", got)
	}
}
