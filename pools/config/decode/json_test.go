package decode_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"drover/pools"
	"drover/pools/config/decode"
	"drover/pools/config/mistake"
)

// TestNodeFields: each field of a node survives encoding and decoding.
func TestNodeFields(t *testing.T) {
	want := pools.PoolNode{Pool: "p", Node: pools.Node{Name: "n", MACs: []pools.MAC{{2, 0, 0, 0, 0, 1}}, Tags: []string{"t"}}}
	want.Match = pools.Match{MAC: "02:*", ClientID: "a", CircuitID: "b", RemoteID: "c", SubscriberID: "d", Class: "e", UserClass: "f", UUID: "g", Serial: "h", DMI: "i", LLDP: "j k", Firmware: pools.BIOS}
	want.ChassisSlot = pools.ChassisSlot{Chassis: "m1", Slot: "c1n1"}
	want.DHCPOptions, want.Ignore = map[string]pools.Strings{"ntp-server": {"10.0.0.1", "10.0.0.2"}}, true
	want.Lease = pools.Infinite
	want.Power = &pools.NodePower{Driver: pools.Exec, Program: "/bin/true"}
	if err := errors.Join(want.IP.UnmarshalText([]byte("10.0.0.1")), want.IP6.UnmarshalText([]byte("fd00::1")), want.Match.Arch.UnmarshalText([]byte("7"))); err != nil {
		t.Fatal(err)
	}
	for _, v := range []reflect.Value{reflect.ValueOf(want), reflect.ValueOf(want.Match)} {
		for _, f := range reflect.VisibleFields(v.Type()) {
			if v.FieldByIndex(f.Index).IsZero() {
				t.Fatalf("field %s is new: set it in this test", f.Name)
			}
		}
	}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got pools.PoolNode
	if err := decode.JSON(data, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

// TestBodyMistakes: a body has the error texts of a config file, all at once.
func TestBodyMistakes(t *testing.T) {
	for body, want := range map[string]string{
		`{"name": 7, "macs": ["zz", null, "52:54:00:00:00:01"], "ip": "10.0.0.256", "tagz": []}`: `name: want a string, not 7 (write "7")
macs[0]: "zz" is not a MAC address (write six pairs such as 52:54:00:12:34:56)
macs[1]: has no value (remove the key, or write "" for an empty text)
ip: "10.0.0.256" is not an IP address (write 10.28.0.2)
unknown key "tagz" (did you mean "tags"?)`,
		`{"name": "a", "match": {"port": "7"}, "name": "b"}`: `unknown key "match.port" (known: arch, circuitID, class, clientID, dmi, firmware, lldp, mac, remoteID, serial, subscriberID, userClass, uuid)
duplicate key "name" (remove one)`,
		`{"macs": "zz", "ignore": "yes"}`: `macs: want a list, not a plain value (write it as [a, b] or as lines that start with '- ')
ignore: "yes" is neither true nor false (write true or false)`,
		`{"dhcpOptions": {"mtu": 9000, "100": "CET"}}`: `dhcpOptions.mtu: want a string, not 9000 (write "9000")`,
		`[{}]`:                         `the body is not an object, but a list (write {"key": "value"})`,
		`null`:                         `the body is not an object, but a plain value (write {"key": "value"})`,
		``:                             `the body is not JSON: unexpected end of JSON input at byte 0 (mind the quotes and the commas)`,
		`{} {}`:                        `the body is not JSON: invalid character '{' after top-level value at byte 4 (mind the quotes and the commas)`,
		"{\"name\": \"\xff\"}":         `the body is not UTF-8 (JSON is always UTF-8 (RFC 8259))`,
		`name: a`:                      `the body is not JSON: invalid character 'a' in literal null (expecting 'u') at byte 2 (mind the quotes and the commas)`,
		`{"name": &a "x"}`:             `the body is not JSON: invalid character '&' looking for beginning of value at byte 10 (mind the quotes and the commas)`,
		`{"<<": {"name": "x"}}`:        `unknown key "<<" (known: dhcpOptions, ignore, ip, ip6, lease, macs, match, name, place, pool, power, tags)`,
		`{"name": "*a", "pool": "&a"}`: "",
	} {
		var n pools.PoolNode
		got := ""
		if err := decode.JSON([]byte(body), &n); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s\ngot  %s\nwant %s", body, got, want)
		}
	}
	many := `{"tags": [` + strings.Repeat("0,", 1<<18) + `0]}`
	if err := decode.JSON([]byte(many), new(pools.PoolNode)); err == nil || !strings.Contains(err.Error(), "more than 131072 values (send it in parts)") {
		t.Errorf("many values: %v", err)
	}
	wrong := `{"tags": [` + strings.Repeat("0,", 200) + `0]}`
	if err := decode.JSON([]byte(wrong), new(pools.PoolNode)); err == nil || strings.Count(err.Error(), "\n") != 100 || !strings.HasSuffix(err.Error(), "\n101 more mistakes (mend the others first)") {
		t.Errorf("many mistakes: %v", err)
	}
	deep := strings.Repeat("[", 1<<19) + strings.Repeat("]", 1<<19)
	if err := decode.JSON([]byte(deep), new(pools.PoolNode)); err == nil || !strings.Contains(err.Error(), "exceeded max depth") {
		t.Errorf("nested deep: %v", err)
	}
}

// TestMergePatch has the cases of RFC 7386, appendix A, that a Go type allows.
func TestMergePatch(t *testing.T) {
	type inner struct {
		B string `json:"b,omitempty"`
		C string `json:"c,omitempty"`
	}
	type value struct {
		A string            `json:"a,omitempty"`
		B string            `json:"b,omitempty"`
		L []string          `json:"l,omitempty"`
		M map[string]string `json:"m,omitempty"`
		S inner             `json:"s,omitzero"`
		P *inner            `json:"p,omitempty"`
	}
	for _, tt := range []struct{ target, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"l":["b"]}`, `{"l":["c","d"]}`, `{"l":["c","d"]}`},
		{`{"l":["b"]}`, `{"l":null}`, `{}`},
		{`{"s":{"b":"c"}}`, `{"s":{"b":"d","c":null}}`, `{"s":{"b":"d"}}`},
		{`{"m":{"b":"c"}}`, `{"m":{"b":"d","c":null}}`, `{"m":{"b":"d"}}`},
		{`{"m":{"b":"c","e":"f"}}`, `{"m":{"b":null}}`, `{"m":{"e":"f"}}`},
		{`{"p":{"b":"c"}}`, `{"p":{"c":"d"}}`, `{"p":{"b":"c","c":"d"}}`},
		{`{"p":{"b":"c"}}`, `{"p":null,"a":"x"}`, `{"a":"x"}`},
		{`{}`, `{"m":{"b":null},"s":{"b":null},"nothing":null}`, `{}`},
	} {
		var v value
		if err := decode.JSON([]byte(tt.target), &v); err != nil {
			t.Fatal(err)
		}
		before, _ := json.Marshal(v)
		patched := v
		err := decode.JSON([]byte(tt.patch), &patched)
		if got, _ := json.Marshal(patched); err != nil || string(got) != tt.want {
			t.Errorf("%s with %s: got %s, %v; want %s", tt.target, tt.patch, got, err, tt.want)
		}
		if after, _ := json.Marshal(v); string(after) != string(before) {
			t.Errorf("%s with %s: the value before became %s", tt.target, tt.patch, after)
		}
	}
}

// FuzzJSON patches a node with any bytes. An accepted body is valid JSON, and the
// patched node survives encoding and decoding.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{}`, `{"ip":null}`, `{"macs":["02:00:00:00:00:09"],"tags":null}`, `{"name":{"a":{"b":1}}}`, `{"tags":[]}`,
		`{"match":{"arch":"0x07","class":null},"dhcpOptions":{"42":"x"},"ignore":false}`, `{"ip":"fe80::1%eth0"}`,
		`{"a":1,"a":2}`, `{"a":[1,{"b":null}]} `, `[]]`, `{"a"}`, `{"a":}`, `1 2`, "\"\\ud800\"", `{"A":1,"a":1e400}`, `[,]`, `{,}`, `[1,]`, ``, `{"<<":{}}`, `{"name":*a}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		n := pools.PoolNode{Pool: "p", Node: pools.Node{Name: "n", MACs: []pools.MAC{{2, 0, 0, 0, 0, 1}}, Tags: []string{"t"}}}
		if err := decode.JSON(body, &n); err != nil {
			if _, ok := errors.AsType[mistake.Errors](err); !ok {
				t.Errorf("got error %T, want mistake.Errors", err)
			}
			return
		}
		if !json.Valid(body) {
			t.Errorf("accepted %q, which is not JSON", body)
		}
		written, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		var again pools.PoolNode
		if err := decode.JSON(written, &again); err != nil {
			t.Fatalf("%s does not read again: %v", written, err)
		}
		if rewritten, _ := json.Marshal(again); string(rewritten) != string(written) {
			t.Errorf("got %s, and then %s", written, rewritten)
		}
	})
}
