package tftp_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/tftp"
)

func TestClean(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "undionly.kpxe", "undionly.kpxe"},
		{"leading slash", "/grub/grub.cfg", "grub/grub.cfg"},
		{"two of them", "//grubx64.efi", "grubx64.efi"},
		{"backslashes", `\Boot\x64\wdsnbp.com`, "Boot/x64/wdsnbp.com"},
		{"dots", "./a/./b", "a/b"},
		{"double slash inside", "a//b", "a/b"},
		{"trailing slash", "a/", "a"},
		{"trailing END option", "undionly.kpxe\xff", "undionly.kpxe"},
		{"three dots", "a/.../b", "a/.../b"},
		{"a MAC", "pxelinux.cfg/01-52-54-00-00-00-01", "pxelinux.cfg/01-52-54-00-00-00-01"},
		{"longest", strings.Repeat("x", 255), strings.Repeat("x", 255)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tftp.Clean(tt.in)
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
	for _, tt := range []struct{ name, in, want string }{
		{"nothing", "", "no file name"},
		{"a slash", "/", "no file name"},
		{"a dot", ".", "no file name"},
		{"only an END option", "\xff", "no file name"},
		{"parent", "..", "climbs out"},
		{"parent first", "../etc/passwd", "climbs out"},
		{"parent after a slash", "/../etc/passwd", "climbs out"},
		{"parent with backslashes", `..\..\etc\passwd`, "climbs out"},
		{"parent inside", "a/../../b", "climbs out"},
		{"parent last", "a/..", "climbs out"},
		{"NUL", "a\x00b", "not text"},
		{"new line", "a\nb", "not text"},
		{"not UTF-8", "a\xffb", "not text"},
		{"too long", strings.Repeat("x", 256), "256 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tftp.Clean(tt.in)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, error %v, want one with %q", got, err, tt.want)
			}
		})
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"", "/", "undionly.kpxe\xff", "//grubx64.efi", `\Boot\BCD`, "../x", "a/../b", "a/./b", "..", "a\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		name, err := tftp.Clean(in)
		if err != nil {
			return
		}
		// What fs.ValidPath takes is relative, has no "..", and no empty
		// elements.
		if !fs.ValidPath(name) || name == "." || len(name) > 255 || strings.ContainsAny(name, "\\\x00\n") {
			t.Errorf("%q became %q", in, name)
		}
		if again, err := tftp.Clean(name); err != nil || again != name {
			t.Errorf("%q became %q, and that %q, %v", in, name, again, err)
		}
	})
}

// What the kernel has in memory is read without waiting, and nothing else is.
func TestReadCached(t *testing.T) {
	dir := t.TempDir()
	content := bytes.Repeat([]byte("drover "), 20_000)
	if err := os.WriteFile(filepath.Join(dir, "kernel"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := tftp.OpenBelow(dir, "kernel")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 64<<10)
	if tftp.ReadCached(f, b, int64(len(content))-10) {
		t.Error("a read beyond the end is reported as whole")
	}
	if tftp.ReadCached(f, b, 70_000) && !bytes.Equal(b, content[70_000:70_000+len(b)]) {
		t.Error("other bytes than the file's") // on tmpfs and others, none are read
	}
}
