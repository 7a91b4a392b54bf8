package imagebuild_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"drover/imagebuild/layer"
	"drover/imagebuild/rootfs"
)

// layerOf returns a tar of the files that short descriptions describe: "d/" is a
// directory, "f" or "f=content" a file, "l@target" a symbolic link, "h>target" a hard link.
func layerOf(t *testing.T, files ...string) []byte {
	t.Helper()
	headers := make([]tarEntry, len(files))
	for i, f := range files {
		headers[i] = describe(f)
	}
	return tarOf(t, headers...)
}

type tarEntry struct {
	tar.Header
	content string
}

func describe(f string) tarEntry {
	e := tarEntry{Header: tar.Header{Name: f, Mode: 0o644, Typeflag: tar.TypeReg, ModTime: time.Unix(1000, 0)}}
	if strings.HasSuffix(f, "/") {
		e.Typeflag, e.Mode = tar.TypeDir, 0o755
	} else if name, content, ok := strings.Cut(f, "="); ok {
		e.Name, e.content = name, content
	} else if name, target, ok := strings.Cut(f, ">"); ok {
		e.Name, e.Linkname, e.Typeflag = name, target, tar.TypeLink
	} else if name, target, ok := strings.Cut(f, "@"); ok {
		e.Name, e.Linkname, e.Typeflag = name, target, tar.TypeSymlink
	}
	e.Size = int64(len(e.content))
	return e
}

func tarOf(t testing.TB, entries ...tarEntry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatalf("%q: %v", e.Name, err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			t.Fatalf("%q: %v", e.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// list returns the descriptions of the files of a tar, without the root.
func list(t testing.TB, b []byte) string {
	t.Helper()
	var files []string
	for r := tar.NewReader(bytes.NewReader(b)); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		f := h.Name
		switch h.Typeflag {
		case tar.TypeLink:
			f += ">" + h.Linkname
		case tar.TypeSymlink:
			f += "@" + h.Linkname
		case tar.TypeReg:
			if len(content) > 0 {
				f += "=" + string(content)
			}
		}
		files = append(files, f)
	}
	if len(files) == 0 || files[0] != "./" {
		t.Fatalf("the tar begins with %q, want the root directory", files)
	}
	return strings.Join(files[1:], " ")
}

func TestFlatten(t *testing.T) {
	type layers = [][]string
	tests := []struct {
		name   string
		layers layers
		want   string
	}{
		{"files are sorted whatever their order", layers{{"b", "a/", "a.x", "a/z", "a/b"}}, "a/ a/b a/z a.x b"},
		{"upper file wins", layers{{"a=1"}, {"a=2"}}, "a=2"},
		{"last of one layer wins", layers{{"a=1", "a=2"}}, "a=2"},
		{"directories merge", layers{{"d/", "d/x"}, {"d/", "d/y"}}, "d/ d/x d/y"},
		{"directory that no layer lists", layers{{"d/e/x"}}, "d/ d/e/ d/e/x"},
		{"no layer at all", layers{}, ""},

		{"whiteout of a file", layers{{"a", "b"}, {".wh.a"}}, "b"},
		{"whiteout of a directory", layers{{"d/", "d/x"}, {".wh.d"}}, ""},
		{"whiteout of a link takes the link", layers{{"d/", "d/x", "l@d"}, {".wh.l"}}, "d/ d/x"},
		{"whiteout of nothing", layers{{"a"}, {".wh.b", "d/.wh.c", ".wh."}}, "a"},
		{"whiteout below a file", layers{{"a"}, {"a/.wh.c"}}, "a"},
		{"whiteout in the lowest layer", layers{{".wh.a", "b"}}, "b"},
		{"whiteout and new file, mark first", layers{{"a=1"}, {".wh.a", "a=2"}}, "a=2"},
		{"whiteout and new file, mark last", layers{{"a=1"}, {"a=2", ".wh.a"}}, "a=2"},
		{"whiteout and new directory, mark first", layers{{"d/", "d/x"}, {".wh.d", "d/", "d/y"}}, "d/ d/y"},
		{"whiteout and new directory, mark last", layers{{"d/", "d/x"}, {"d/", "d/y", ".wh.d"}}, "d/ d/y"},
		{"removed, then added again", layers{{"a=1"}, {".wh.a"}, {"a=3"}}, "a=3"},
		{"whiteout does not follow links", layers{{"d/", "d/x", "l@d"}, {"l/.wh.x"}}, "d/ d/x l@d"},

		{"opaque", layers{{"d/", "d/x"}, {"d/", "d/.wh..wh..opq", "d/y"}}, "d/ d/y"},
		{"opaque, mark last", layers{{"d/", "d/x"}, {"d/", "d/y", "d/.wh..wh..opq"}}, "d/ d/y"},
		{"opaque keeps neighbors", layers{{"d/", "d/x", "e"}, {"d/", "d/.wh..wh..opq"}}, "d/ e"},
		{"opaque without the directory's entry", layers{{"d/", "d/x"}, {"d/.wh..wh..opq", "d/y"}}, "d/ d/y"},
		{"opaque root", layers{{"a", "d/", "d/x"}, {".wh..wh..opq", "b"}}, "b"},
		{"opaque over a link", layers{{"e/", "e/x", "d@e"}, {"d/", "d/.wh..wh..opq", "d/y"}}, "d/ d/y e/ e/x"},
		{"bookkeeping of AUFS", layers{{"a"}, {".wh..wh.plnk/", ".wh..wh.plnk/1.2", ".wh..wh.aufs", ".wh..wh.orph/"}}, "a"},

		{"file to directory", layers{{"d"}, {"d/", "d/y"}}, "d/ d/y"},
		{"file to directory without an entry", layers{{"d"}, {"d/y"}}, "d/ d/y"},
		{"directory to file", layers{{"d/", "d/x"}, {"d=1"}}, "d=1"},
		{"directory to link", layers{{"d/", "d/x"}, {"d@e"}}, "d@e"},
		{"link to directory", layers{{"e/", "e/x", "d@e"}, {"d/", "d/y"}}, "d/ d/y e/ e/x"},
		{"link to file", layers{{"a=1", "l@a"}, {"l=2"}}, "a=1 l=2"},

		{"merged /usr: real lib/ over the link", layers{{"usr/", "usr/lib/", "usr/lib/a", "lib@usr/lib"}, {"lib/", "lib/modules/", "lib/modules/m"}},
			"lib@usr/lib usr/ usr/lib/ usr/lib/a usr/lib/modules/ usr/lib/modules/m"},
		{"merged /usr: absolute link", layers{{"usr/bin/", "bin@/usr/bin"}, {"bin/", "bin/sh"}}, "bin@/usr/bin usr/ usr/bin/ usr/bin/sh"},
		{"merged /usr: no entry for lib/", layers{{"usr/lib/", "lib@usr/lib"}, {"lib/m"}}, "lib@usr/lib usr/ usr/lib/ usr/lib/m"},
		{"merged /usr: whiteout through the link", layers{{"usr/lib/a", "usr/lib/b", "lib@usr/lib"}, {"lib/", "lib/.wh.a"}}, "lib@usr/lib usr/ usr/lib/ usr/lib/b"},
		{"merged /usr: opaque lib/ does not wipe out usr/lib", layers{{"usr/lib/a", "lib@usr/lib"}, {"lib/", "lib/.wh..wh..opq", "lib/b"}},
			"lib@usr/lib usr/ usr/lib/ usr/lib/a usr/lib/b"},
		{"merged /usr: the link really removed", layers{{"usr/lib/a", "lib@usr/lib"}, {".wh.lib", "lib/", "lib/b"}}, "lib/ lib/b usr/ usr/lib/ usr/lib/a"},
		{"merged /usr: target made on the way", layers{{"lib@usr/lib"}, {"lib/"}}, "lib@usr/lib usr/ usr/lib/"},
		{"not merged /usr: deeper link of that name", layers{{"x/usr/lib/a", "x/lib@usr/lib"}, {"x/lib/", "x/lib/b"}}, "x/ x/lib/ x/lib/b x/usr/ x/usr/lib/ x/usr/lib/a"},

		{"hard link", layers{{"a=1", "b>a"}}, "a=1 b>a"},
		{"hard link emitted before its target", layers{{"z=1", "a>z"}}, "a=1 z>a"},
		{"hard link to a lower layer", layers{{"a=1"}, {"b>a"}}, "a=1 b>a"},
		{"hard link, target replaced above", layers{{"a=1", "b>a"}, {"a=2"}}, "a=2 b=1"},
		{"hard link, target deleted above", layers{{"a=1", "b>a"}, {".wh.a"}}, "b=1"},
		{"three names, first deleted above", layers{{"a=1", "b>a", "c>a"}, {".wh.a"}}, "b=1 c>b"},
		{"hard link, target replaced in its own layer", layers{{"a=1", "b>a", "a=2"}}, "a=2 b=1"},
		{"hard link to a link", layers{{"l@t", "m>l"}}, "l@t m>l"},
		{"hard link through a link", layers{{"usr/lib/a=1", "lib@usr/lib", "b>lib/a"}}, "b=1 lib@usr/lib usr/ usr/lib/ usr/lib/a>b"},
		{"hard link to itself", layers{{"a=1", "a>a"}}, "a=1"},

		{"path through a link", layers{{"d/", "l@d"}, {"l/x"}}, "d/ d/x l@d"},
		{"path through an absolute link", layers{{"d/", "a/l@/d"}, {"a/l/x"}}, "a/ a/l@/d d/ d/x"},
		{"path through a dangling link", layers{{"l@a/b"}, {"l/x"}}, "a/ a/b/ a/b/x l@a/b"},
		{"link out of the root ends at the root", layers{{"l@../../.."}, {"l/x"}}, "l@../../.. x"},
		{"link up and down", layers{{"a/b/", "a/l@../c", "c/"}, {"a/l/x"}}, "a/ a/b/ a/l@../c c/ c/x"},

		{"leading slash and dot", layers{{"/a", "./b", ".//c", "d/./e"}}, "a b c d/ d/e"},
		{"root entry", layers{{"./", "/", "a"}}, "a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var layers [][]byte
			for _, l := range test.layers {
				layers = append(layers, layerOf(t, l...))
			}
			out, err := flatten(t.TempDir(), true, layers...)
			if err != nil {
				t.Fatal(err)
			}
			if got := list(t, out); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestFlattenWithoutWhiteouts: a tar of a root file system is not a layer and has no whiteouts.
func TestFlattenWithoutWhiteouts(t *testing.T) {
	out, err := flatten(t.TempDir(), false, layerOf(t, "a", ".wh.a", "d/.wh..wh..opq"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := list(t, out), ".wh.a a d/ d/.wh..wh..opq"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	_, err = flatten(t.TempDir(), false, layerOf(t, "a=1", "b=2")[:1024])
	if want := "cut short"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("tar that was cut between two files: got error %v, want one with %q", err, want)
	}
}

// TestFlattenKeepsAttributes: all attributes of an inode stay the same.
func TestFlattenKeepsAttributes(t *testing.T) {
	want := []tarEntry{
		{Header: tar.Header{Name: "a", Typeflag: tar.TypeReg, Mode: 0o4755, Uid: 1234, Gid: 4321, Size: 2,
			PAXRecords: map[string]string{"SCHILY.xattr.security.capability": "\x01\x00\x00\x02\x00 \x00\x00", "SCHILY.xattr.user.имя": "значение"}}, content: "hi"},
		{Header: tar.Header{Name: "c", Typeflag: tar.TypeChar, Mode: 0o666, Devmajor: 1, Devminor: 3}},
		{Header: tar.Header{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o1777, Gid: 5}},
		{Header: tar.Header{Name: "e", Typeflag: tar.TypeBlock, Mode: 0o660, Devmajor: 259, Devminor: 70000}},
		{Header: tar.Header{Name: "f", Typeflag: tar.TypeFifo, Mode: 0o600}},
		{Header: tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Mode: 0o777, Linkname: "/" + strings.Repeat("long-имя/", 40)}},
		{Header: tar.Header{Name: strings.Repeat("deep/", 60) + "x", Typeflag: tar.TypeReg, Mode: 0o600, Uid: 1 << 31, ModTime: time.Unix(1<<31+5, 0)}},
		{Header: tar.Header{Name: "имя с пробелом\n\xff", Typeflag: tar.TypeReg, Mode: 0o644}},
	}
	out, err := flatten(t.TempDir(), true, tarOf(t, want...))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]*tar.Header{}
	r := tar.NewReader(bytes.NewReader(out))
	for h, err := r.Next(); !errors.Is(err, io.EOF); h, err = r.Next() {
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = h
	}
	for _, w := range want {
		g := got[w.Name]
		if g == nil {
			t.Errorf("%.30q is missing", w.Name)
			continue
		}
		if g.Typeflag != w.Typeflag || g.Mode != w.Mode || g.Uid != w.Uid || g.Gid != w.Gid || g.Size != w.Size ||
			g.Linkname != w.Linkname || g.Devmajor != w.Devmajor || g.Devminor != w.Devminor || max(w.ModTime.Unix(), 0) != g.ModTime.Unix() {
			t.Errorf("got  %+v\nwant %+v", g, w.Header)
		}
		for key, value := range w.PAXRecords {
			if g.PAXRecords[key] != value {
				t.Errorf("%s: %s is %q, want %q", w.Name, key, g.PAXRecords[key], value)
			}
		}
	}
	if root := got["./"]; root.Mode != 0o755 || root.Uid != 0 || root.Gid != 0 {
		t.Errorf("root is %o %d:%d, want 755 0:0", root.Mode, root.Uid, root.Gid)
	}
}

func TestFlattenDropsXattrs(t *testing.T) {
	for _, name := range []string{"system.posix_acl_access", "trusted.overlay.opaque", "user.overlay.redirect", "user.", "user"} {
		in := tarEntry{Header: tar.Header{Name: "a", Typeflag: tar.TypeReg, PAXRecords: map[string]string{"SCHILY.xattr." + name: "y"}}}
		out, err := flatten(t.TempDir(), true, tarOf(t, in))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(out, []byte("SCHILY")) {
			t.Errorf("%s was kept", name)
		}
	}
}

func TestFlattenSparse(t *testing.T) {
	content := make([]byte, 3<<20)
	copy(content[1<<20:], "middle")
	hole := string(make([]byte, 1<<20))
	out, err := flatten(t.TempDir(), true, layerOf(t, "a=first", "s="+string(content), "t=last", "z="+hole))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := list(t, out), "a=first s="+string(content)+" t=last z="+hole; got != want {
		t.Errorf("got %d bytes, want %d, or other ones", len(got), len(want))
	}
}

func TestFlattenRefuses(t *testing.T) {
	file := func(h tar.Header) []byte { return tarOf(t, tarEntry{Header: h}) }
	reg := tar.Header{Name: "a", Typeflag: tar.TypeReg}
	tests := []struct {
		name  string
		layer []byte
		want  string
	}{
		{"name with ..", layerOf(t, "../etc/passwd"), `entry "../etc/passwd": name holds ".."`},
		{"name with .. inside", layerOf(t, "a/../../b"), `name holds ".."`},
		{"absolute name with ..", layerOf(t, "/../b"), `name holds ".."`},
		{"whiteout of ..", layerOf(t, "../.wh.b"), `name holds ".."`},
		{"hard link to ..", layerOf(t, "a>../../etc/shadow"), `hard link to "../../etc/shadow": name holds ".."`},
		{"hard link to nothing", layerOf(t, "a>b"), `entry "a": hard link to "b": file does not exist`},
		{"hard link to nothing, deeper", layerOf(t, "a>b/c"), `hard link to "b/c": file does not exist`},
		{"hard link to a directory", layerOf(t, "d/", "a>d"), "is a directory"},
		{"hard link to the root", layerOf(t, "a>."), "hard link to the root"},
		{"root is a file", file(tar.Header{Name: "./.", Typeflag: tar.TypeSymlink, Linkname: "x"}), "the root is not a directory"},
		{"links in a circle", layerOf(t, "a@b", "b@a", "a/x"), "more than 40 symbolic links"},
		{"link that grows", layerOf(t, "a@a/a", "a/x"), "more than 40 symbolic links"},
		{"link to nothing", file(tar.Header{Name: "a", Typeflag: tar.TypeSymlink}), "symbolic link to"},
		{"long element", layerOf(t, strings.Repeat("x", 256)), "longer than 255"},
		{"long name", layerOf(t, strings.Repeat("x/", 2100)+"y"), "longer than 4095"},
		{"unknown type", file(tar.Header{Name: "a", Typeflag: 'M', Format: tar.FormatGNU}), "unknown type 'M'"},
		{"device number", file(tar.Header{Name: "a", Typeflag: tar.TypeChar, Devmajor: 1 << 12, Devminor: 0}), "out of range"},
		{"owner", func() []byte { h := reg; h.Uid = 1 << 33; return file(h) }(), "owner 8589934592:0 is out of range"},
		{"not a tar", bytes.Repeat([]byte("no tar "), 100), "invalid tar header"},
		{"cut short in a file", layerOf(t, "a=content")[:515], "unexpected EOF"},
		{"xz", []byte("\xfd7zXZ\x00 and more"), "compressed with xz"},
		{"bzip2", []byte("BZh91AY and more"), "compressed with bzip2"},
		{"larger than allowed", sparseClaim(t), "the image is larger than"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := flatten(t.TempDir(), true, test.layer)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

// sparseClaim returns a tar of a few hundred bytes whose header claims a file of 8 TiB.
func sparseClaim(t *testing.T) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: "huge", Typeflag: tar.TypeReg, Size: 8 << 40}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func FuzzFlatten(f *testing.F) {
	f.Add([]byte{}, []byte{})
	for _, pair := range [][2][]string{
		{{"d/", "d/x=1", "l@d", "h>d/x"}, {".wh.d", "d/", "d/y"}},
		{{"usr/lib/a", "lib@usr/lib"}, {"lib/", "lib/.wh..wh..opq", "lib/b"}},
		{{"a@b", "b@a"}, {"a/x"}},
		{{"../x"}, {".wh..."}},
	} {
		var layers [2][]byte
		for i, l := range pair {
			var entries []tarEntry
			for _, d := range l {
				entries = append(entries, describe(d))
			}
			layers[i] = tarOf(f, entries...)
		}
		f.Add(layers[0], layers[1])
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, lower, upper []byte) {
		out, err := flatten(dir, true, lower, upper)
		if err != nil {
			return
		}
		again, err := flatten(dir, false, out)
		if err != nil {
			t.Fatalf("the result cannot be read: %v", err)
		}
		if !bytes.Equal(out, again) {
			t.Error("flattening the result changed it")
		}
		r := tar.NewReader(bytes.NewReader(out))
		for h, err := r.Next(); err == nil; h, err = r.Next() {
			if strings.HasPrefix(h.Name, "/") || strings.Contains("/"+h.Name+"/", "/../") {
				t.Errorf("name %q leads out of the root", h.Name)
			}
		}
	})
}

// flatten puts layers on top of each other and returns the tar of the result.
func flatten(dir string, whiteouts bool, layers ...[]byte) ([]byte, error) {
	spool, err := layer.NewSpool(dir, 1<<30)
	if err != nil {
		return nil, err
	}
	defer spool.Close()
	tree := rootfs.New()
	reader := layer.Reader{Spool: spool, Whiteouts: whiteouts}
	for _, l := range layers {
		list, err := reader.Stream(context.Background(), bytes.NewReader(l), func(int64) {})
		if err != nil {
			return nil, err
		}
		if err := tree.Apply(list); err != nil {
			return nil, err
		}
	}
	if err := spool.Finish(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = tree.Emit(&b, func(int64) {})
	return b.Bytes(), err
}
