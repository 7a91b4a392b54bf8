package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"drover/pools"
)

func TestRun(t *testing.T) {
	for _, tt := range []struct {
		name     string
		args     []string
		code     int
		out, err string // parts of the output
	}{
		{"help", []string{"drover-init", "--help"}, 0, "not meant to be\nrun by hand", ""},
		{"version", []string{"drover-init", "version"}, 0, "drover-init ", ""},
		{"nothing", []string{"drover-init"}, 2, "", "usage:"},
		{"unknown", []string{"drover-init", "boot"}, 2, "", `unknown command "boot"`},
		{"too much", []string{"drover-init", "agent", "now"}, 2, "", "usage:"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if got := run(t.Context(), tt.args, &stdout, &stderr); got != tt.code {
				t.Errorf("exit code: got %d, want %d", got, tt.code)
			}
			if !strings.Contains(stdout.String(), tt.out) || tt.out == "" && stdout.Len() > 0 {
				t.Errorf("stdout: got %q, want %q in it", &stdout, tt.out)
			}
			if !strings.Contains(stderr.String(), tt.err) || tt.err == "" && stderr.Len() > 0 {
				t.Errorf("stderr: got %q, want %q in it", &stderr, tt.err)
			}
		})
	}
}

const (
	testNonce  = "00112233445566778899aabbccddeeff"
	testDigest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	goodArgs   = "drover.url=http://10.77.0.1:80 drover.mac=52-54-00-77-00-01 drover.nonce=" + testNonce +
		" drover.image=sha256:" + testDigest + " drover.root=/images/debian-12/" + testDigest + "/root.squashfs"
)

var testMAC = pools.MAC{0x52, 0x54, 0, 0x77, 0, 1}

func fixedUptime() time.Duration { return 3200 * time.Millisecond }
