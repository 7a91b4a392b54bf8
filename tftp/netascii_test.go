package tftp_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/tftp"
)

// TestNetascii: line ends are CR LF, and a CR of the file is CR NUL, also where a block or
// a piece ends between the two.
func TestNetascii(t *testing.T) {
	s := newSite(t, nil)
	for name, file := range map[string]string{
		"none":    "",
		"lines":   "one\ntwo\r\nthree\rfour\n",
		"ends":    strings.Repeat("\n", 70_000),
		"returns": "x" + strings.Repeat("\r", 70_000),
		"full":    strings.Repeat("1234567\n", 1<<17),
	} {
		s.write(name, []byte(file))
		want := strings.NewReplacer("\r", "\r\x00", "\n", "\r\n").Replace(file)
		r := newROM(t, 1)
		r.ask(s.addr, name, "NetASCII", "blksize", "1001")
		r.read()
		r.send(4, "\x00\x00")
		var got strings.Builder
		for len(got.String())%1001 == 0 {
			op, rest := r.read()
			if op != 3 {
				t.Fatalf("%s: got packet %d %q", name, op, rest)
			}
			r.send(4, rest[:2])
			got.WriteString(rest[2:])
			if len(rest) == 2 {
				break
			}
		}
		if got.String() != want {
			t.Errorf("%s: got %d bytes, want %d", name, got.Len(), len(want))
		}
		if x := s.next(); x.Err != nil || x.Bytes != int64(len(want)) {
			t.Errorf("%s: got transfer %+v, want %d bytes", name, x, len(want))
		}
	}
}

// TestNetasciiClient fetches with a client that turns the text back.
func TestNetasciiClient(t *testing.T) {
	if _, err := exec.LookPath("tftp"); err != nil {
		fixture.Missing(t, err)
	}
	s, c := newCableSite(t, false, func(s *tftp.Server) { s.SinglePort = true })
	want := content()[:100_000]
	s.write("loader", want)
	dir := t.TempDir()
	out, err := c.run(dir, "tftp", "-m", "ascii", "10.69.0.1", "-c", "get", "loader", "got")
	if got, failed := os.ReadFile(filepath.Join(dir, "got")); err != nil || failed != nil || !bytes.Equal(got, want) {
		t.Errorf("got %d bytes, %v, %v\n%s", len(got), err, failed, out)
	}
}
