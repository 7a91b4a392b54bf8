package main_test

import (
	"bytes"
	"strings"
	"testing"

	main "drover/e2e/bench/boot"
)

func TestFlags(t *testing.T) {
	tests := []struct {
		args []string
		want string // part of the error; empty: none
	}{
		{nil, ""},
		{[]string{"-quick", "-only", "http,boot", "-rounds", "5", "-boots", "2", "-cpus", "1", "-memory", "1536"}, ""},
		{[]string{"-only", "dhcp"}, `-only: no part "dhcp"`},
		{[]string{"-only", "http,http"}, `-only: "http" twice`},
		{[]string{"-rounds", "0"}, "want 1 or more"},
		{[]string{"-boots", "0"}, "want 1 or more"},
		{[]string{"-connections", "8,64"}, ""},
		{[]string{"-connections", "8,x"}, `"x" (want different numbers from 1 to 64)`},
		{[]string{"-connections", "8,8"}, `"8" (want different`},
		{[]string{"-connections", "65"}, `"65" (want different`},
		{[]string{"-memory", "64"}, "and 512 MB"},
		{[]string{"now"}, `unknown argument "now"`},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			var stderr bytes.Buffer
			_, err := main.ParseOptions(tt.args, &stderr)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestUsedRAM(t *testing.T) {
	got, err := main.UsedRAM("bench-up 31.42 2013160 1513160 kB")
	if err != nil || got != 512 {
		t.Errorf("got %v, %v, want 512 MB: 500 000 kB", got, err)
	}
	for _, bad := range []string{"", "bench-up 31.42 2013160", "bench-up 31.42 2013160 1513160", "bench-up 31.42  1 kB"} {
		if got, err := main.UsedRAM(bad); err == nil {
			t.Errorf("%q: got %v, want an error", bad, got)
		}
	}
}

func TestReadHead(t *testing.T) {
	got, err := main.ReadHead("HTTP/1.1 200 OK\r\nServer: x\r\ncontent-length:  42")
	if err != nil || got != 42 {
		t.Errorf("got %d, %v, want 42", got, err)
	}
	for _, bad := range []string{"", "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 42", "HTTP/1.1 200 OK\r\nServer: x", "HTTP/1.1 200 OK\r\nContent-Length: x"} {
		if got, err := main.ReadHead(bad); err == nil {
			t.Errorf("%q: got %d, want an error", bad, got)
		}
	}
}
