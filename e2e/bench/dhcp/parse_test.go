package main_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

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

func TestFlags(t *testing.T) {
	tests := []struct {
		args []string
		want string // part of the error; empty: none
	}{
		{nil, ""},
		{[]string{"-quick", "-rates", "100,200.5", "-seconds", "1", "-rounds", "3", "-only", "drover,kea"}, ""},
		{[]string{"-6", "-only", "drover-6,kea-6"}, ""},
		{[]string{"-rates", "200,100"}, `"100" (want rising numbers`},
		{[]string{"-rates", "1000,x"}, `"x" (want rising numbers`},
		{[]string{"-rates", "0"}, `"0" (want rising numbers`},
		{[]string{"-rates", "NaN"}, `"NaN" (want rising numbers`},
		{[]string{"-seconds", "0.1"}, "want 0.5 to 60 s"},
		{[]string{"-rounds", "0"}, "want 0.5 to 60 s, and 1 or more"},
		{[]string{"-only", "dhcpd"}, `-only: no server "dhcpd"`},
		{[]string{"-only", "kea-6"}, `no server "kea-6"`},
		{[]string{"-6", "-only", "kea"}, `no server "kea"`},
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
