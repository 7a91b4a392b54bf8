package web_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"drover/pools"
	"drover/web"
)

// The fields that parseNode knows are those that the API answers with: each
// field of the type, set, survives a round trip.
func TestNodeFields(t *testing.T) {
	want := pools.PoolNode{Pool: "p", Node: pools.Node{Name: "n", MACs: []pools.MAC{{2, 0, 0, 0, 0, 1}}, Tags: []string{"t"}}}
	want.Match = pools.Match{ClientID: "a", CircuitID: "b", RemoteID: "c", SubscriberID: "d", Class: "e", UserClass: "f", Firmware: pools.BIOS}
	want.Place = pools.Place{Chassis: "m1", Slot: "c1n1"}
	want.DHCPOptions, want.Ignore = map[string]pools.Strings{"ntp-server": {"10.0.0.1", "10.0.0.2"}}, true
	if err := errors.Join(want.IP.UnmarshalText([]byte("10.0.0.1")), want.Match.Arch.UnmarshalText([]byte("7"))); err != nil {
		t.Fatal(err)
	}
	for _, v := range []reflect.Value{reflect.ValueOf(want), reflect.ValueOf(want.Match)} {
		for _, f := range reflect.VisibleFields(v.Type()) {
			if f.Name == "Power" {
				continue // of the config file alone
			}
			if v.FieldByIndex(f.Index).IsZero() {
				t.Fatalf("field %s is new: this test and parseNode must know it", f.Name)
			}
		}
	}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := web.ParseJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	got, err := web.ParseNode(parsed)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

// The cases of RFC 7386, appendix A.
func TestMergePatch(t *testing.T) {
	tests := []struct{ target, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"a":1,"e":null}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	}
	for _, tt := range tests {
		got, err := json.Marshal(web.MergePatch(parse(t, tt.target), parse(t, tt.patch)))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s with %s: got %s, %v; want %s", tt.target, tt.patch, got, err, tt.want)
		}
	}
}

func parse(t *testing.T, s string) any {
	t.Helper()
	v, err := web.ParseJSON([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// FuzzJSON holds the strict parser against the standard library's: what it
// accepts, that one accepts, and both read the same value.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{n3, `{"a":1,"a":2}`, `{"a":[1,{"b":null}]} `, `[]]`, `{"a"}`, `{"a":}`, `1 2`, "\"\\ud800\"", `{"A":1,"a":1e400}`, `[,]`, `{,}`, `[1,]`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := web.ParseJSON(data)
		if err != nil {
			if v != nil {
				t.Errorf("an error and a value: %v, %v", v, err)
			}
			return
		}
		var want any
		dec := json.NewDecoder(strings.NewReader(string(data)))
		dec.UseNumber()
		if err := dec.Decode(&want); err != nil || !json.Valid(data) {
			t.Fatalf("accepted %q, which is not JSON: %v", data, err)
		}
		if !reflect.DeepEqual(v, want) {
			t.Errorf("got %#v, want %#v", v, want)
		}
	})
}

// FuzzPatch patches a node with anything: what comes out is a node that says
// the same when it is written and read again.
func FuzzPatch(f *testing.F) {
	for _, s := range []string{`{}`, `{"ip":null}`, `{"macs":["02:00:00:00:00:09"],"tags":null}`, `{"name":{"a":{"b":1}}}`, `{"tags":[]}`, `{"match":{"arch":"0x07","class":null},"dhcpOptions":{"42":"x"},"ignore":false}`, `{"ip":"fe80::1%eth0"}`} {
		f.Add([]byte(s))
	}
	n := pools.PoolNode{Pool: "p", Node: pools.Node{Name: "n", MACs: []pools.MAC{{2, 0, 0, 0, 0, 1}}, Tags: []string{"t"}}}
	f.Fuzz(func(t *testing.T, data []byte) {
		patch, err := web.ParseJSON(data)
		if err != nil {
			return
		}
		got, err := web.PatchNode(n, patch)
		if err != nil {
			return
		}
		again, err := web.PatchNode(got, map[string]any{})
		if err != nil {
			t.Fatalf("%+v does not read again: %v", got, err)
		}
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(again)
		if string(a) != string(b) {
			t.Errorf("got %s, and then %s", a, b)
		}
	})
}
