package main_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	main "drover/e2e/bench/dhcp"
)

func TestParsePerfdhcp(t *testing.T) {
	text, err := os.ReadFile("testdata/perfdhcp.txt")
	if err != nil {
		t.Fatal(err)
	}
	got, err := main.ParsePerfdhcp(string(text))
	if err != nil || got.Discovers != 23999 || got.Offers != 23999 || got.Requests != 23999 || got.Acks != 23999 {
		t.Errorf("got %+v, %v; want 23999 of each", got, err)
	}
	half, _, _ := strings.Cut(string(text), "***Statistics for: REQUEST-ACK***")
	for _, bad := range []string{"", half, strings.ReplaceAll(string(text), "23999", "99999999999999999999")} {
		if got, err := main.ParsePerfdhcp(bad); err == nil {
			t.Errorf("%q: got %+v, want an error", bad, got)
		}
	}
}

func TestParseStat(t *testing.T) {
	stat := "17 (a name) with 9 9 (9) S 1 17 17 0 -1 4194560 900 0 0 0 120 30 4 6 20 0 3 0 100 2000 300 1\n"
	got, err := main.ParseStat([]byte(stat))
	if err != nil || got != 1600*time.Millisecond {
		t.Errorf("got %s, %v; want 1.6 s: user, system, and of children", got, err)
	}
	for _, bad := range []string{"", "17 (x) S 1 2", "17 (x) S 1 17 17 0 -1 4194560 900 0 0 0 a 30 4 6 20"} {
		if got, err := main.ParseStat([]byte(bad)); err == nil {
			t.Errorf("%q: got %s, want an error", bad, got)
		}
	}
}

func TestFlags(t *testing.T) {
	tests := []struct {
		args []string
		want string // part of the error; empty: none
	}{
		{nil, ""},
		{[]string{"-quick", "-rates", "100,200.5", "-seconds", "1", "-rounds", "3", "-only", "drover,kea"}, ""},
		{[]string{"-rates", "200,100"}, `"100" (want rising numbers`},
		{[]string{"-rates", "1000,x"}, `"x" (want rising numbers`},
		{[]string{"-rates", "0"}, `"0" (want rising numbers`},
		{[]string{"-rates", "NaN"}, `"NaN" (want rising numbers`},
		{[]string{"-seconds", "0.1"}, "want 0.5 to 60 s"},
		{[]string{"-rounds", "0"}, "want 0.5 to 60 s, and 1 or more"},
		{[]string{"-only", "dhcpd"}, `-only: no server "dhcpd"`},
		{[]string{"-only", "kea,kea"}, `-only: "kea" twice`},
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

func TestParseBusy(t *testing.T) {
	stat := "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 100 20 30 5000 700 1 2 3 0 0\ncpu1 1 1 1 1 1 1 1 1 0 0\n"
	got, err := main.ParseBusy(stat, "0")
	if err != nil || got != 1560*time.Millisecond {
		t.Errorf("got %s, %v; want 1.56 s: neither idle nor waiting for the disk", got, err)
	}
	for _, bad := range []string{"", stat[:30], "cpu0 a 20 30 5000 700 1 2 3 0 0"} {
		if got, err := main.ParseBusy(bad, "0"); err == nil {
			t.Errorf("%q: got %s, want an error", bad, got)
		}
	}
}
