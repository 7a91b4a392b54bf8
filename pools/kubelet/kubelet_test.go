package kubelet_test

import (
	"strings"
	"testing"

	"drover/pools/kubelet"
)

func TestCheckArg(t *testing.T) {
	for _, tt := range []struct {
		name, flag, value string
		want              string // a part of the error; empty: none
	}{
		{"usual", "max-pods", "250", ""},
		{"one letter", "v", "4", ""},
		{"empty value", "cpu-cfs-quota", "", ""},
		{"longest name", strings.Repeat("a", 63), "", ""},
		{"longest value", "v", strings.Repeat("a", 4096), ""},
		{"no name", "", "", `"" is not the name`},
		{"dashes", "--max-pods", "250", "starts with dashes (write max-pods)"},
		{"a dash at its end", "max-pods-", "3", `"max-pods-" is not the name`},
		{"a digit first", "1v", "3", `"1v" is not the name`},
		{"capitals", "maxPods", "3", `"maxPods" is not the name`},
		{"name too long", strings.Repeat("a", 64), "", "is not the name"},
		{"value too long", "v", strings.Repeat("a", 4097), "too long"},
		{"white space", "v", "4 --config=/x", "white space"},
		{"quotes", "v", `4"`, "quotes"},
		{"made from labels", "node-labels", "a=b", "use labels: instead"},
		{"made from taints", "register-with-taints", "a:NoExecute", "use taints: instead"},
		{"of the join", "hostname-override", "other", "set by the join itself"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := kubelet.CheckArg(tt.flag, tt.value)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
