package decode_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"drover/pools"
	"drover/pools/config/decode"
)

// TestTree: the values of another program's config stay as they were written.
func TestTree(t *testing.T) {
	var tag pools.Tag
	lines, errs := decode.YAML("x.yaml", []byte(`network:
  ethernets: &e {eno1: {dhcp4: no, mtu: 09000, list: [1, {a: 2}], empty: ""}}
  same: *e
`), &tag)
	const eno1 = "map[eno1:map[dhcp4:no empty: list:[1 map[a:2]] mtu:09000]]"
	if got, want := fmt.Sprint(tag.Network), "map[ethernets:"+eno1+" same:"+eno1+"]"; len(errs) > 0 || got != want {
		t.Errorf("got %s, %v\nwant %s", got, errs, want)
	}
	if lines["network.ethernets.eno1.mtu"] != 2 || lines["network.same"] != 3 {
		t.Errorf("lines: got %v", lines)
	}
	for in, want := range map[string]string{
		"network: [1]":                      "network: want keys with values, not a list",
		"network: x":                        "network: want keys with values, not a plain value",
		"network: {a: }":                    "network.a: has no value",
		"network: {a: 1, a: 2}":             `duplicate key "network.a"`,
		"network: &a {b: {c: [*a]}}":        "more than 16 levels",
		"network: " + bomb(12) + "\nx: 1\n": "the config unfolds to more than",
	} {
		var tag pools.Tag
		_, errs := decode.YAML("x.yaml", []byte(in), &tag)
		if len(errs) == 0 || !strings.Contains(errs.Error(), want) || len(errs) > 3 {
			t.Errorf("%.60s: got %.300v, want %q", in, errs, want)
		}
	}
}

// bomb returns a mapping that unfolds to 4^n values.
func bomb(n int) string {
	text := "{l0: &l0 [x, x]"
	for i := 1; i < n; i++ {
		text += fmt.Sprintf(", l%d: &l%d [*l%d, *l%[3]d, *l%[3]d, *l%[3]d]", i, i, i-1)
	}
	return text + "}"
}

// TestSecret: a text, or a reference; both survive encoding.
func TestSecret(t *testing.T) {
	for in, want := range map[string]pools.Secret{
		`{"rootPasswordHash": "$6$x"}`:                                                      {Text: "$6$x"},
		`{"rootPasswordHash": {"fromFile": "a/b"}}`:                                         {Reference: pools.Reference{FromFile: "a/b"}},
		`{"rootPasswordHash": {"fromSecret": {"namespace": "n", "name": "s", "key": "k"}}}`: {Reference: pools.Reference{FromSecret: pools.SecretRef{Namespace: "n", Name: "s", Key: "k"}}},
	} {
		var tag, again pools.Tag
		if err := decode.JSON([]byte(in), &tag); err != nil || tag.RootPasswordHash != want {
			t.Errorf("%s: got %#v, %v", in, tag.RootPasswordHash, err)
		}
		data, err := json.Marshal(tag)
		if err != nil {
			t.Fatal(err)
		}
		if err := decode.JSON(data, &again); err != nil || again.RootPasswordHash != want {
			t.Errorf("%s: encoded as %s, got %#v, %v", in, data, again.RootPasswordHash, err)
		}
	}
	var tag pools.Tag
	if err := decode.JSON([]byte(`{"rootPasswordHash": {"text": "x"}}`), &tag); err == nil || !strings.Contains(err.Error(), `unknown key "rootPasswordHash.text"`) {
		t.Errorf("got %v", err)
	}
	if s := fmt.Sprintf("%v %+v", pools.Secret{Text: "hash"}, struct{ S pools.Secret }{pools.Secret{Text: "hash"}}); strings.Contains(s, "hash") {
		t.Errorf("a secret is printed: %s", s)
	}
}
