package cmdline

import (
	"slices"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
)

const (
	testNonce  = "00112233445566778899aabbccddeeff"
	testDigest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	goodArgs   = "drover.url=http://10.77.0.1:80 drover.mac=52-54-00-77-00-01 drover.nonce=" + testNonce +
		" drover.image=sha256:" + testDigest + " drover.root=/images/debian-12/" + testDigest + "/root.squashfs"
)

func TestParseArgs(t *testing.T) {
	got, err := Parse("BOOT_IMAGE=/vmlinuz console=ttyS0,115200 quiet " + goodArgs +
		" drover.timeout=600 drover.shell=1 mlx4_core.debug_level=1 mlx4_core.x=\"a b\" modprobe.blacklist=floppy,ip-vs -- drover.timeout=5\n")
	if err != nil {
		t.Fatal(err)
	}
	if got.URL.String() != "http://10.77.0.1:80" {
		t.Errorf("url: got %q", got.URL)
	}
	if got.MAC.String() != "52:54:00:77:00:01" {
		t.Errorf("mac: got %q", got.MAC)
	}
	if got.Nonce != testNonce {
		t.Errorf("nonce: got %q", got.Nonce)
	}
	if got.Digest[0] != 0xe3 || got.Digest[31] != 0x55 {
		t.Errorf("digest: got %x", got.Digest)
	}
	if want := "/images/debian-12/" + testDigest + "/root.squashfs"; got.Root != want {
		t.Errorf("root: got %q, want %q", got.Root, want)
	}
	if got.Timeout != 600*time.Second || !got.Shell {
		t.Errorf("timeout and shell: got %v and %v, want 600 s and true", got.Timeout, got.Shell)
	}
	if want := `debug_level=1 x="a b"`; got.Modules.Options["mlx4_core"] != want {
		t.Errorf("options of mlx4_core: got %q, want %q", got.Modules.Options["mlx4_core"], want)
	}
	if !got.Modules.Blacklist["floppy"] || !got.Modules.Blacklist["ip_vs"] {
		t.Errorf("blacklist: got %v, want floppy and ip_vs", got.Modules.Blacklist)
	}
}

func TestParseArgsForms(t *testing.T) {
	for _, tt := range []struct{ name, line, mac, url string }{
		{"BOOTIF alone", strings.Replace(goodArgs, "drover.mac=", "BOOTIF=01-", 1), "52:54:00:77:00:01", "http://10.77.0.1:80"},
		{"drover.mac wins", goodArgs + " BOOTIF=01-52-54-00-00-00-09", "52:54:00:77:00:01", "http://10.77.0.1:80"},
		{"the last one counts", goodArgs + " drover.mac=525400000009", "52:54:00:00:00:09", "http://10.77.0.1:80"},
		{"a path below the host", strings.Replace(goodArgs, ":80", "/drover/", 1), "52:54:00:77:00:01", "http://10.77.0.1/drover"},
		{"quoted", `"` + strings.ReplaceAll(goodArgs, " ", `" "`) + `"`, "52:54:00:77:00:01", "http://10.77.0.1:80"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse(tt.line)
			if err != nil {
				t.Fatal(err)
			}
			if got.MAC.String() != tt.mac || got.URL.String() != tt.url {
				t.Errorf("got %s %s, want %s %s", got.MAC, got.URL, tt.mac, tt.url)
			}
			if got.Timeout != DefaultTimeout || got.Shell {
				t.Errorf("timeout and shell: got %v and %v, want the defaults", got.Timeout, got.Shell)
			}
		})
	}
}

func TestParseArgsErrors(t *testing.T) {
	replace := func(old, replacement string) string { return strings.Replace(goodArgs, old, replacement, 1) }
	for _, tt := range []struct{ name, line, want string }{
		{"no url", replace("drover.url", "url"), "drover.url is missing"},
		{"url without host", replace("http://10.77.0.1:80", "http://"), "is not the URL of a server"},
		{"url of a file", replace("http://", "file://"), "is not the URL of a server"},
		{"url with a password", replace("http://", "http://a:b@"), "has more than a host and a path"},
		{"broken url", replace("http://10", "http://%zz"), "drover.url: "},
		{"no mac", replace("drover.mac", "mac"), "drover.mac and BOOTIF are missing"},
		{"bad mac", replace("52-54", "53-54"), "drover.mac: MAC address"},
		{"no nonce", replace("drover.nonce", "nonce"), "drover.nonce is missing"},
		{"short nonce", replace(testNonce, "0011"), "drover.nonce (4 characters) is not"},
		{"nonce of other digits", replace(testNonce, "zz112233445566778899aabbccddeeff"), "drover.nonce (32 characters) is not"},
		{"short digest", replace("sha256:"+testDigest, "sha256:e3b0"), `drover.image="sha256:e3b0" is not`},
		{"long digest", replace("sha256:", "sha256:00"), "is not sha256: and 64 hex digits"},
		{"other digest", replace("sha256:", "md5:"), `is not sha256: and 64 hex digits`},
		{"no root", replace("drover.root", "root"), `drover.root="" is not a path`},
		{"root with dots", replace("/images", "/images/../../etc"), "is not a path such as"},
		{"root with a query", replace("/root.squashfs", "/root.squashfs?x=y"), "is not a path such as"},
		{"timeout of nothing", goodArgs + " drover.timeout=", `drover.timeout="" is not a number`},
		{"timeout too short", goodArgs + " drover.timeout=5", `drover.timeout="5" is not a number of seconds from 30 to 86400`},
		{"timeout that overflows", goodArgs + " drover.timeout=9223372036854775807", "is not a number of seconds"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse(tt.line)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got error %v, want %q in it", err, tt.want)
			}
			if strings.Contains(err.Error(), "112233445566") {
				t.Errorf("error quotes the nonce: %v", err)
			}
		})
	}
}

func TestParseArgsReportsAll(t *testing.T) {
	got, err := Parse("quiet drover.timeout=60")
	if err == nil {
		t.Fatal("got no error")
	}
	fixture.WantText(t, "error", err.Error(), "drover.url", "drover.mac", "drover.nonce", "drover.image", "drover.root")
	if got.Timeout != time.Minute {
		t.Errorf("timeout: got %v, want it read all the same", got.Timeout)
	}
}

func TestSplitArgs(t *testing.T) {
	for _, tt := range []struct {
		line string
		want []string
	}{
		{"", nil},
		{"  a  b\tc\n", []string{"a", "b", "c"}},
		{`a="b c" d`, []string{"a=b c", "d"}},
		{`"a=b c" d`, []string{"a=b c", "d"}},
		{`a="b`, []string{"a=b"}},
		{"a -- b", []string{"a"}},
	} {
		if got := splitArgs(tt.line); !slices.Equal(got, tt.want) {
			t.Errorf("splitArgs(%q): got %q, want %q", tt.line, got, tt.want)
		}
	}
}

func FuzzParseArgs(f *testing.F) {
	f.Add(goodArgs)
	f.Add(goodArgs + ` drover.timeout=60 a."b=c" "x -- y`)
	f.Add(`"`)
	f.Fuzz(func(t *testing.T, line string) {
		a, err := Parse(line)
		if a.Timeout < minTimeout || a.Timeout > maxTimeout {
			t.Errorf("timeout %v", a.Timeout)
		}
		if err != nil {
			return
		}
		if a.URL == nil || a.MAC.IsZero() || len(a.Nonce) < 16 || !strings.HasPrefix(a.Root, "/") {
			t.Errorf("accepted %+v", a)
		}
		if strings.Contains(a.URL.String()+a.Root, "..") && strings.Contains(a.Root, "/../") {
			t.Errorf("path %q leaves the server's directory", a.Root)
		}
	})
}

func TestPinMistakes(t *testing.T) {
	good := strings.Repeat("ab", 32)
	for _, tt := range []struct{ line, want string }{
		{"drover.https=https://10.28.0.2", `drover.pin="" is not`},
		{"drover.pin=sha256:" + good, `drover.https="" is not`},
		{"drover.https=http://10.28.0.2 drover.pin=sha256:" + good, "is not by TLS"},
		{"drover.https=https://u@10.28.0.2 drover.pin=sha256:" + good, "more than a host"},
		{"drover.https=https://10.28.0.2 drover.pin=" + good, "is not sha256: and 64"},
		{"drover.https=https://10.28.0.2 drover.pin=sha256:" + good[2:], "is not sha256: and 64"},
	} {
		a, err := Parse(tt.line)
		if err == nil || !strings.Contains(err.Error(), tt.want) || a.Secure != nil || a.Pin != nil {
			t.Errorf("%s: got %v, want %q and nothing taken", tt.line, err, tt.want)
		}
	}
}

func TestParseAlso(t *testing.T) {
	got, err := Parse(goodArgs + " drover.also=10.77.0.2,10.77.0.3:8080,[fd00::3]")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, u := range got.Also {
		all = append(all, u.String())
	}
	if want := []string{"http://10.77.0.2", "http://10.77.0.3:8080", "http://[fd00::3]"}; !slices.Equal(all, want) {
		t.Errorf("got %q, want %q", all, want)
	}
	for _, bad := range []string{"example.org", "10.77.0.2,", "http://10.77.0.2", "10.77.0.2/x", "0.0.0.0", "10.77.0.2:0", strings.Repeat("10.77.0.2,", 8) + "10.77.0.2"} {
		if _, err := Parse(goodArgs + " drover.also=" + bad); err == nil || !strings.Contains(err.Error(), "drover.also") {
			t.Errorf("drover.also=%s: got error %v", bad, err)
		}
	}
}
