package mistake_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"drover/pools"
	"drover/pools/config/mistake"
)

func TestHint(t *testing.T) {
	few := []string{"debug", "gpu", "storage", "in", "LoadBalancer"}
	many := strings.Fields("a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 mirror")
	for _, tt := range []struct {
		got   string
		known []string
		want  string
	}{
		{"debg", few, `did you mean "debug"?`},
		{"debuug", few, `did you mean "debug"?`},
		{"DEBUG", few, `did you mean "debug"?`},
		{"loadbalancer", few, `did you mean "LoadBalancer"?`},
		{"stroage", few, `did you mean "storage"?`},
		{"on", few, `did you mean "in"?`},
		{"xy", few, "known: debug, gpu, storage, in, LoadBalancer"}, // all of a short word is no spelling of another
		{"", few, "known: debug, gpu, storage, in, LoadBalancer"},
		{"network", few, "known: debug, gpu, storage, in, LoadBalancer"},
		{"miror", many, `did you mean "mirror"?`},
		{"network", many, "see the manual"},
		{"x", nil, "see the manual"},
		{strings.Repeat("x", 1<<20), few, "known: debug, gpu, storage, in, LoadBalancer"},
	} {
		if got := mistake.Hint(tt.got, tt.known, "see the manual"); got != tt.want {
			t.Errorf("%.20q: got %q, want %q", tt.got, got, tt.want)
		}
	}
}

func TestError(t *testing.T) {
	at := pools.Origin{File: "drover.yaml", Line: 41, Path: "pools[0].tags"}
	for _, tt := range []struct {
		err  mistake.Error
		want string
	}{
		{mistake.Error{Origin: at, Msg: "unknown tag", Hint: "known: a"}, "drover.yaml:41: unknown tag (known: a)"},
		{mistake.Error{Origin: at, Msg: "unknown tag"}, "drover.yaml:41: unknown tag"},
		{mistake.Error{Origin: pools.Origin{File: "Pool web"}, Msg: "bad"}, "Pool web: bad"},
		{mistake.Error{Origin: pools.Origin{Path: `API (node "n1")`}, Added: true, Msg: "bad"}, `API (node "n1"): bad`},
		{mistake.Error{Origin: pools.Origin{Path: "pools[0]"}, Msg: "bad"}, "bad"}, // the path of a value is in no file
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestExplain(t *testing.T) {
	hint := pools.Hint("write eth1", "%q is none", "eth")
	for _, tt := range []struct {
		err       error
		msg, hint string
	}{
		{hint, `nic: "eth" is none`, "write eth1"},
		{fmt.Errorf("far away: %w", hint), `nic: "eth" is none`, "write eth1"},
		{errors.New("no such file"), "nic: no such file", ""},
	} {
		if msg, hint := mistake.Explain("nic", tt.err); msg != tt.msg || hint != tt.hint {
			t.Errorf("%v: got %q, %q; want %q, %q", tt.err, msg, hint, tt.msg, tt.hint)
		}
	}
}

// TestErr: mistakes come in the order of files and lines, and those of one line as they were found.
func TestErr(t *testing.T) {
	if err := (mistake.Errors{}).Err(); err != nil {
		t.Errorf("no mistake: got %v", err)
	}
	at := func(file string, line int, msg string) *mistake.Error {
		return &mistake.Error{Origin: pools.Origin{File: file, Line: line}, Msg: msg}
	}
	err := mistake.Errors{at("b", 1, "z"), at("a", 12, "x"), at("a", 2, "second"), at("a", 2, "first"), at("", 0, "nowhere")}.Err()
	if want := "nowhere\na:2: second\na:2: first\na:12: x\nb:1: z"; err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}
