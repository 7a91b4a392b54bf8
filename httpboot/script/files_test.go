package script_test

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/httpboot/script"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/machines"
)

// open returns a file by name, as a client at an address sees it.
func (w *world) open(t testing.TB, from, name string) (string, error) {
	t.Helper()
	f, err := w.r.TFTP().Open(netip.MustParseAddr(from), name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b := make([]byte, f.Size())
	if n, err := f.ReadAt(b, 0); n != len(b) || err != nil && !errors.Is(err, io.EOF) {
		t.Fatalf("%s: read %d of %d bytes: %v", name, n, len(b), err)
	}
	return string(b), nil
}

func (w *world) mustOpen(t testing.TB, from, name string) string {
	t.Helper()
	text, err := w.open(t, from, name)
	if err != nil {
		t.Fatalf("%s from %s: %v", name, from, err)
	}
	return text
}

// withLoaders puts files into the directory of loaders.
func withLoaders(t *testing.T, files ...string) func(*world) {
	return func(w *world) {
		w.Loaders = t.TempDir()
		for _, name := range files {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(w.Loaders, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(w.Loaders, name), []byte("this is "+name))
		}
	}
}

const (
	node1GRUB = "grub/node-52:54:00:00:00:01.cfg"
	node1PXE  = "pxelinux.cfg/01-52-54-00-00-00-01"
)

func TestNamedScripts(t *testing.T) {
	menu := func(w *world) { w.farm[macBIOS].MenuTimeout = 10 }
	memtest := func(w *world) { menu(w); withLoaders(t, "memtest.efi", "memtest.bin")(w) }
	next := func(n pools.NextBoot) func(*world) {
		return func(w *world) { w.farm[macBIOS] = w.farm[macBIOS].WithNextBoot(n) }
	}
	wrapped := func(w *world) {
		yes := true
		w.farm[macBIOS].UBoot = pools.UBoot{Wrap: &yes, FDT: "dtb/m400.dtb"}
	}
	broken := func(w *world) { w.farm[macBIOS].Image = "debian-13" }
	tests := []struct {
		golden, from, name string
		edit               func(*world)
	}{
		{"finder.grub", "127.0.0.1", "grub/grub.cfg", nil},
		{"finder-nobody.grub", "127.0.0.9", "grub/grub.cfg", nil},
		{"finder-menu.grub", "127.0.0.1", "grub/grub.cfg", memtest},
		{"node.grub", "127.0.0.1", node1GRUB, nil},
		{"second-card.grub", "127.0.0.2", "grub/node-52:54:00:00:00:03.cfg", nil},
		{"rescue-menu.grub", "127.0.0.1", "grub/rescue-52:54:00:00:00:01.cfg", menu},
		{"next-rescue.grub", "127.0.0.1", node1GRUB, next(pools.NextRescue)},
		{"next-local.grub", "127.0.0.1", node1GRUB, next(pools.NextLocal)},
		{"two-servers.grub", "127.0.0.1", node1GRUB, twoServers},
		{"two-servers.pxelinux", "127.0.0.1", node1PXE, twoServers},
		{"no-image.grub", "127.0.0.1", node1GRUB, broken},
		{"node.pxelinux", "127.0.0.1", node1PXE, nil},
		{"wrapped.pxelinux", "127.0.0.1", node1PXE, wrapped},
		{"menu.pxelinux", "127.0.0.1", node1PXE, menu},
		{"next-local.pxelinux", "127.0.0.1", node1PXE, next(pools.NextLocal)},
		{"no-image.pxelinux", "127.0.0.1", node1PXE, broken},
	}
	for _, tt := range tests {
		t.Run(tt.golden, func(t *testing.T) {
			w := newWorld(t, func(w *world) {
				w.farm[macBIOS].KernelArgs = []string{"console=ttyS0,9600n8", `dyndbg="file`, "drivers/usb/*", `+p"`}
				if tt.edit != nil {
					tt.edit(w)
				}
			})
			fixture.Golden(t, "testdata/"+tt.golden, w.mustOpen(t, tt.from, tt.name))
		})
	}
}

func TestMenuScriptOfIPXE(t *testing.T) {
	for name, files := range map[string][]string{"menu.ipxe": nil, "menu-memtest.ipxe": {"memtest.efi", "memtest.bin"}} {
		w := newWorld(t, func(w *world) {
			withLoaders(t, files...)(w)
			w.farm[macBIOS].MenuTimeout = 7
		})
		body := w.ipxe(t, macBIOS)
		fixture.Golden(t, "testdata/"+name, body)
		checkScript(t, body)
	}
}

func TestNextBootOfIPXE(t *testing.T) {
	for _, tt := range []struct {
		next pools.NextBoot
		want []string
	}{
		{pools.NextLocal, []string{"sanboot --no-describe --drive 0x80", "\nexit 1\n"}},
		{pools.NextRescue, []string{" drover.rescue=1 || goto no-kernel\n"}},
		{"image=debian-12", []string{"for one boot: image=debian-12\n"}},
	} {
		var taken []string
		w := newWorld(t, func(w *world) {
			w.farm[macBIOS] = w.farm[macBIOS].WithNextBoot(tt.next)
			w.TakeNextBoot = func(node string) error { taken = append(taken, node); return nil }
		})
		body := w.ipxe(t, macBIOS)
		for _, want := range tt.want {
			if !strings.Contains(body, want) {
				t.Errorf("%s: got\n%s\nwant %q in it", tt.next, body, want)
			}
		}
		if !slices.Equal(taken, []string{"node-1"}) {
			t.Errorf("%s: taken by %q, want node-1 once", tt.next, taken)
		}
	}
}

// A boot that cannot begin takes no next boot; a next boot that cannot be recorded
// begins no boot.
func TestNextBootThatIsNotTaken(t *testing.T) {
	taken := 0
	w := newWorld(t, func(w *world) {
		w.farm[macBIOS] = w.farm[macBIOS].WithNextBoot("image=debian-13")
		w.TakeNextBoot = func(string) error { taken++; return errors.New("disk full") }
	})
	if body := w.mustOpen(t, "127.0.0.1", node1GRUB); !strings.Contains(body, `the server has no image "debian-13"`) || taken != 0 {
		t.Errorf("taken %d times, want none; got\n%s", taken, body)
	}
	w.farm[macBIOS] = w.farm[macBIOS].WithNextBoot("image=debian-12")
	if body := w.mustOpen(t, "127.0.0.1", node1GRUB); !strings.Contains(body, "the server cannot record a new boot, see its log") || taken != 1 {
		t.Errorf("taken %d times, want once; got\n%s", taken, body)
	}
}

// One boot asks for its script under several names, and for each of them more
// than once: it is one boot all the same.
func TestOneBootOverTFTP(t *testing.T) {
	w := newWorld(t, nil)
	nonce := func(text string) string {
		_, rest, ok := strings.Cut(text, "drover.nonce=")
		if !ok {
			t.Fatalf("no nonce in\n%s", text)
		}
		return rest[:32]
	}
	first := w.mustOpen(t, "127.0.0.1", node1GRUB)
	for _, name := range []string{node1GRUB, node1PXE, "pxelinux.cfg/default", "pxelinux.cfg/7F000001"} {
		if again := w.mustOpen(t, "127.0.0.1", name); nonce(again) != nonce(first) {
			t.Errorf("%s: another nonce", name)
		}
	}
	if again := w.mustOpen(t, "127.0.0.1", node1GRUB); again != first {
		t.Error("the file changed between two requests")
	}
	if w.boots.n != 1 {
		t.Errorf("%d boots were opened, want 1", w.boots.n)
	}

	// Another boot, or a machine that fetched its script by HTTP since.
	w.r.Forget(macBIOS)
	if second := w.mustOpen(t, "127.0.0.1", node1GRUB); nonce(second) == nonce(first) || w.boots.n != 2 {
		t.Errorf("%d boots were opened after a DISCOVER, want 2", w.boots.n)
	}
	body := w.ipxe(t, macBIOS)
	if third := w.mustOpen(t, "127.0.0.1", node1GRUB); nonce(third) == nonce(body) || w.boots.n != 4 {
		t.Errorf("%d boots were opened, want 4", w.boots.n)
	}
	// An operator changed the machine's next boot.
	w.farm[macBIOS] = w.farm[macBIOS].WithNextBoot(pools.NextRescue)
	if body := w.mustOpen(t, "127.0.0.1", node1GRUB); !strings.Contains(body, "drover.rescue=1") || w.boots.n != 5 {
		t.Errorf("%d boots were opened, want 5; got\n%s", w.boots.n, body)
	}
}

// TestDebugShellInScripts: it is on the command line, because a boot may fail before the
// node has its config. Nothing else of the settings is in a script.
func TestDebugShellInScripts(t *testing.T) {
	const secret = "$6$salt$0123456789abcdefghij./"
	for _, tt := range []struct {
		shell pools.DebugShell
		want  bool
	}{{"", false}, {pools.ShellNever, false}, {pools.ShellOnFailure, true}, {pools.ShellAlways, true}} {
		w := newWorld(t, nil)
		p := w.farm[macBIOS]
		p.DebugShell, p.RootPasswordHash.Text, p.Env = tt.shell, secret, map[string]string{"TOKEN": "opensesame"}
		for kind, body := range map[string]string{"iPXE": w.ipxe(t, macBIOS), "GRUB": w.mustOpen(t, "127.0.0.1", node1GRUB)} {
			if got := strings.Contains(body, "drover.debug="+string(tt.shell)); got != tt.want {
				t.Errorf("%s, %q: got\n%s", kind, tt.shell, body)
			}
			if strings.Contains(body, secret) || strings.Contains(body, "opensesame") {
				t.Errorf("%s: a setting is in\n%s", kind, body)
			}
		}
	}
}

func TestRefusedNames(t *testing.T) {
	const imageDir = "images/debian-12/" + generation
	tests := []struct {
		name, from, file string
		is               error
		told, log        string
		optional         bool
	}{
		{name: "somebody else's script", from: "127.0.0.2", file: node1GRUB, is: fs.ErrPermission, told: "127.0.0.2 is not the address of 52:54:00:00:00:01", log: "node node-2"},
		{name: "somebody else's pxelinux", from: "127.0.0.2", file: node1PXE, is: fs.ErrPermission, told: "127.0.0.2 is not the address of 52:54:00:00:00:01"},
		{name: "a script for nobody", from: "127.0.0.9", file: node1GRUB, is: fs.ErrPermission, told: "127.0.0.9 is not the address of 52:54:00:00:00:01"},
		{name: "a MAC that is not ours", from: "127.0.0.9", file: "pxelinux.cfg/01-52-54-00-99-99-99", is: fs.ErrPermission, told: "52:54:00:99:99:99 is not known here"},
		{name: "no MAC", from: "127.0.0.1", file: "pxelinux.cfg/01-x", is: fs.ErrNotExist, told: `"x" is not a MAC address`},
		{name: "a UUID", from: "127.0.0.1", file: "pxelinux.cfg/b8945908-d6a6-41a9-611d-74a6ab80b83d", is: fs.ErrNotExist, told: "there is nothing for", optional: true},
		{name: "a part of an address", from: "127.0.0.1", file: "pxelinux.cfg/7F00", is: fs.ErrNotExist, told: "there is nothing for", optional: true},
		{name: "somebody else's address", from: "127.0.0.1", file: "pxelinux.cfg/7F000002", is: fs.ErrNotExist, told: "there is nothing for", optional: true},
		{name: "a board", from: "127.0.0.1", file: "pxelinux.cfg/default-arm", is: fs.ErrNotExist, told: "there is nothing for", optional: true},
		{name: "default for nobody", from: "127.0.0.9", file: "pxelinux.cfg/default", is: fs.ErrPermission, told: "127.0.0.9 is the address of no machine"},
		{name: "boot.scr for nobody", from: "127.0.0.9", file: "boot.scr.uimg", is: fs.ErrPermission, told: "the address of no machine"},
		{name: "rescue without a menu", from: "127.0.0.1", file: "grub/rescue-52:54:00:00:00:01.cfg", is: fs.ErrPermission, told: "no rescue shell without a boot menu"},
		{name: "an image for nobody", from: "127.0.0.9", file: imageDir + "/kernel", is: fs.ErrPermission, told: "the address of no machine"},
		{name: "somebody else's image", from: "127.0.0.1", file: "images/other/" + generation + "/kernel", is: fs.ErrPermission, told: `image "other" is not for this machine, which has "debian-12"`, log: "52:54:00:00:00:01"},
		{name: "a generation that is gone", from: "127.0.0.1", file: "images/debian-12/" + strings.Repeat("1", 64) + "/kernel", is: fs.ErrNotExist, told: `no image "debian-12" of generation 111111111111`},
		{name: "a root for nobody", from: "127.0.0.9", file: imageDir + "/root.squashfs", is: fs.ErrPermission, told: "the address of no machine"},
		{name: "somebody else's root", from: "127.0.0.1", file: "images/other/" + generation + "/root.squashfs", is: fs.ErrPermission, told: `image "other" is not for this machine`},
		{name: "the manifest", from: "127.0.0.1", file: imageDir + "/manifest.json", is: fs.ErrNotExist, told: "an image has kernel and initrd here"},
		{name: "a loader that is not there", from: "127.0.0.1", file: "snponly.efi", is: fs.ErrNotExist, told: `no loader "snponly.efi"`, log: "see drover loaders"},
		{name: "what shim can do without", from: "127.0.0.1", file: "revocations_sku.efi", is: fs.ErrNotExist, told: "no loader", optional: true},
		{name: "what GRUB can do without", from: "127.0.0.1", file: "grub/x86_64-efi/command.lst", is: fs.ErrNotExist, told: "no loader", optional: true},
		{name: "drover's notes", from: "127.0.0.1", file: ".installed.json", is: fs.ErrNotExist, told: "no loader"},
		{name: "a directory", from: "127.0.0.1", file: "sb", is: fs.ErrNotExist, told: "no loader"},
		{name: "a machine to be ignored", from: "127.0.0.4", file: "shimx64.efi", is: fs.ErrPermission, told: "52:54:00:99:99:99 is not to be booted"},
	}
	w := newWorld(t, func(w *world) {
		withLoaders(t, "shimx64.efi", "sb/shimx64.efi", ".installed.json")(w)
		w.at[netip.MustParseAddr("127.0.0.4")] = macForeign
		w.images["other@sha256:"+generation] = w.images["debian-12"]
	})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := w.open(t, tt.from, tt.file)
			if !errors.Is(err, tt.is) {
				t.Fatalf("got %v, want %v", err, tt.is)
			}
			var words interface{ ClientText() string }
			if !errors.As(err, &words) || !strings.Contains(words.ClientText(), tt.told) {
				t.Errorf("got %q, want %q", err, tt.told)
			}
			if !strings.Contains(err.Error(), tt.log) {
				t.Errorf("log has %q, want %q", err, tt.log)
			}
			var o interface{ Optional() bool }
			if got := errors.As(err, &o); got != tt.optional {
				t.Errorf("optional: got %v, want %v", got, tt.optional)
			}
		})
	}
	if w.boots.n != 0 {
		t.Errorf("%d boots were opened", w.boots.n)
	}
}

// A name without a MAC gives nothing of a machine to an address that only leases in its
// name, and voids no nonce (finding H1).
func TestAddressThatIsNotTheMachines(t *testing.T) {
	w := newWorld(t, func(w *world) {
		withLoaders(t, "shimx64.efi")(w)
		w.farm[macBIOS].MenuTimeout = 10
		w.at[netip.MustParseAddr("127.0.0.8")] = macBIOS // whose address is 127.0.0.1
	})
	own := w.mustOpen(t, "127.0.0.1", node1GRUB)
	for _, name := range []string{
		"pxelinux.cfg/default", "pxelinux.cfg/7F000008", "boot.scr.uimg", "images/debian-12/" + generation + "/kernel",
		node1GRUB, node1PXE, "grub/rescue-52:54:00:00:00:01.cfg",
	} {
		if text, err := w.open(t, "127.0.0.8", name); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: got %q, %v; want it refused", name, text, err)
		}
	}
	for _, files := range []*script.Files{w.r.TFTP(), w.r.HTTP()} {
		f, err := files.Open(netip.MustParseAddr("127.0.0.8"), "grub/grub.cfg")
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, f.Size())
		if _, err := f.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if f.Plan != nil || strings.Contains(string(b), macBIOS.String()) {
			t.Errorf("grub.cfg is that of the machine:\n%s", b)
		}
	}
	if got := w.mustOpen(t, "127.0.0.8", "shimx64.efi"); got != "this is shimx64.efi" {
		t.Errorf("got %q, want the loader that everyone gets", got)
	}
	if again := w.mustOpen(t, "127.0.0.1", node1GRUB); again != own || w.boots.n != 1 {
		t.Errorf("%d boots were opened, want 1", w.boots.n)
	}
}

func TestNamedFiles(t *testing.T) {
	w := newWorld(t, withLoaders(t, "shimx64.efi", "grubx64.efi", "sb/shimx64.efi", "grub/x86_64-efi/http.mod", "dtb/m400.dtb"))
	for name, want := range map[string]string{
		"shimx64.efi":              "this is shimx64.efi",
		"sb/shimx64.efi":           "this is sb/shimx64.efi",
		"sb/grubx64.efi":           "this is grubx64.efi", // shim asks where it came from
		"grub/x86_64-efi/http.mod": "this is grub/x86_64-efi/http.mod",
		"dtb/m400.dtb":             "this is dtb/m400.dtb",
		"images/debian-12/" + generation + "/kernel":        string(contents["kernel"]),
		"sb/images/debian-12/" + generation + "/initrd":     string(contents["initrd"]),
		"images/debian-12/" + generation + "/root.squashfs": string(contents["root.squashfs"]),
	} {
		if got := w.mustOpen(t, "127.0.0.1", name); got != want {
			t.Errorf("%s: got %.30q, want %.30q", name, got, want)
		}
	}
	// Another DHCP server may give the addresses: unknown clients get loaders.
	if got := w.mustOpen(t, "127.0.0.9", "shimx64.efi"); got != "this is shimx64.efi" {
		t.Errorf("got %q", got)
	}
	// One node, two cards: the script of either, from the one address.
	if got := w.mustOpen(t, "127.0.0.2", "pxelinux.cfg/default"); !strings.Contains(got, "drover.mac=52:54:00:00:00:03") {
		t.Errorf("got\n%s", got)
	}
}

// By HTTP a root image has a queue, which no other name of it goes around.
func TestRootImageByHTTP(t *testing.T) {
	w := newWorld(t, nil)
	_, err := w.r.HTTP().Open(netip.MustParseAddr("127.0.0.1"), "grub/images/debian-12/"+generation+"/root.squashfs")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want that there is none", err)
	}
}

// image is the content of a header of mkimage.
type imageHeader struct {
	Magic, Sum, Time, Size, Load, Entry, ContentSum uint32
	OS, Arch, Type, Compression                     byte
	Name                                            [32]byte
}

// unwrap checks a file with mkimage's header, as U-Boot does.
func unwrap(t *testing.T, file string) (imageHeader, string) {
	t.Helper()
	var h imageHeader
	if err := binary.Read(strings.NewReader(file), binary.BigEndian, &h); err != nil {
		t.Fatal(err)
	}
	head := []byte(file[:64])
	copy(head[4:8], "\x00\x00\x00\x00")
	content := file[64:]
	switch {
	case h.Magic != 0x27051956:
		t.Errorf("magic %#x", h.Magic)
	case h.Sum != crc32.ChecksumIEEE(head):
		t.Error("the header's checksum is wrong")
	case int(h.Size) != len(content) || h.ContentSum != crc32.ChecksumIEEE([]byte(content)):
		t.Errorf("size %d or checksum of the content is wrong, it has %d bytes", h.Size, len(content))
	case h.OS != 5 || h.Arch != 22:
		t.Errorf("system %d, architecture %d, want Linux and arm64", h.OS, h.Arch)
	}
	return h, content
}

func TestWrappedFiles(t *testing.T) {
	w := newWorld(t, nil)
	load, entry := pools.Address32(0x40400000), pools.Address32(0x40400040)
	dir := "images/debian-12/" + generation

	h, kernel := unwrap(t, w.mustOpen(t, "127.0.0.1", dir+"/uImage"))
	if kernel != string(contents["kernel"]) || h.Type != 2 || h.Compression != 0 || h.Load != 0x80000 || h.Entry != 0x80000 {
		t.Errorf("kernel: got %+v", h)
	}
	w.farm[macBIOS].UBoot = pools.UBoot{Load: &load}
	if h, _ := unwrap(t, w.mustOpen(t, "127.0.0.1", dir+"/uImage")); h.Load != 0x40400000 || h.Entry != 0x40400000 {
		t.Errorf("kernel: got load %#x, entry %#x", h.Load, h.Entry)
	}
	w.farm[macBIOS].UBoot.Entry = &entry
	if h, _ := unwrap(t, w.mustOpen(t, "127.0.0.1", dir+"/uImage")); h.Load != 0x40400000 || h.Entry != 0x40400040 {
		t.Errorf("kernel: got load %#x, entry %#x", h.Load, h.Entry)
	}
	h, initrd := unwrap(t, w.mustOpen(t, "127.0.0.1", dir+"/uInitrd"))
	if initrd != string(contents["initrd"]) || h.Type != 3 || h.Compression != 0 {
		t.Errorf("initrd: got %+v", h)
	}
}

// A reader may begin and end anywhere, also inside the header.
func TestWrappedFileInParts(t *testing.T) {
	w := newWorld(t, nil)
	name := "images/debian-12/" + generation + "/uInitrd"
	whole := w.mustOpen(t, "127.0.0.1", name)
	f, err := w.r.TFTP().Open(netip.MustParseAddr("127.0.0.1"), name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, at := range []int{0, 1, 63, 64, 65, 1000, len(whole) - 1} {
		for _, n := range []int{1, 63, 64, 65, 512} {
			b := make([]byte, n)
			got, err := f.ReadAt(b, int64(at))
			want := whole[at:min(len(whole), at+n)]
			if string(b[:got]) != want || got < n && !errors.Is(err, io.EOF) {
				t.Errorf("%d bytes at %d: got %d, %v", n, at, got, err)
			}
		}
	}
}

func TestGzippedKernel(t *testing.T) {
	w := newWorld(t, nil)
	img := w.images["debian-12"]
	packed := []byte("\x1f\x8b\x08 and so on")
	writeFile(t, filepath.Join(img.Dir, "gz"), packed)
	img.Kernel = script.FileInfo{Name: "gz", Size: int64(len(packed)), SHA256: digest(packed)}
	w.images["debian-12@sha256:"+generation] = img
	if h, _ := unwrap(t, w.mustOpen(t, "127.0.0.1", "images/debian-12/"+generation+"/uImage")); h.Compression != 1 {
		t.Errorf("compression %d, want gzip", h.Compression)
	}
}

func TestDamagedImageByName(t *testing.T) {
	w := newWorld(t, nil)
	img := w.images["debian-12"]
	writeFile(t, filepath.Join(img.Dir, img.Kernel.Name), []byte("short"))
	_, err := w.open(t, "127.0.0.1", "images/debian-12/"+generation+"/kernel")
	if err == nil || !strings.Contains(err.Error(), `kernel of image "debian-12" is damaged: it has 5 bytes, its manifest says 7000`) {
		t.Errorf("got %v", err)
	}
}

func TestBootScriptOfUBoot(t *testing.T) {
	w := newWorld(t, func(w *world) { w.farm[macBIOS].Cluster = "it's" })
	h, content := unwrap(t, w.mustOpen(t, "127.0.0.1", "boot.scr.uimg"))
	if h.Type != 6 || !strings.HasPrefix(string(h.Name[:]), "drover node-1\x00") {
		t.Errorf("got %+v", h)
	}
	if n := binary.BigEndian.Uint32([]byte(content)); int(n) != len(content)-8 || content[4:8] != "\x00\x00\x00\x00" {
		t.Errorf("the script has %d bytes and says %d", len(content)-8, n)
	}
	fixture.Golden(t, "testdata/boot.uboot", content[8:])
	if w.boots.n != 0 {
		t.Error("a boot was opened")
	}
}

func TestStepOf(t *testing.T) {
	for name, want := range map[string]boots.Step{
		"undionly.kpxe": boots.StepLoader, "sb/shimx64.efi": boots.StepLoader, "boot.scr.uimg": boots.StepLoader,
		"images/x/y/kernel": boots.StepKernel, "images/x/y/uImage": boots.StepKernel,
		"images/x/y/initrd": boots.StepInitrd, "images/x/y/uInitrd": boots.StepInitrd,
		"images/x/y/root.squashfs": "", "images/x/y/manifest.json": "", "grub/grub.cfg": "", node1PXE: "", "grub/x86_64-efi/fs.lst": "",
		"grub/x86_64-efi/linux.mod": "", "grub/fonts/unicode.pf2": "",
	} {
		if got := script.StepOf(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// counted counts the questions to the directory of machines.
type counted struct {
	script.Machines
	n int
}

func (c *counted) At(addr netip.Addr) (machines.Machine, bool) { c.n++; return c.Machines.At(addr) }
func (c *counted) Of(m pools.MAC) machines.Machine             { c.n++; return c.Machines.Of(m) }

// A request asks the directory of machines once.
func TestOneQuestion(t *testing.T) {
	w := newWorld(t, withLoaders(t, "shimx64.efi"))
	asked := &counted{Machines: w.r.Machines}
	w.r.Machines = asked
	for _, name := range []string{
		"shimx64.efi", "grub/grub.cfg", node1GRUB, node1PXE, "pxelinux.cfg/default", "boot.scr.uimg", "images/debian-12/" + generation + "/uImage",
	} {
		if w.mustOpen(t, "127.0.0.1", name); asked.n != 1 {
			t.Errorf("%s: %d questions, want 1", name, asked.n)
		}
		asked.n = 0
	}
}
