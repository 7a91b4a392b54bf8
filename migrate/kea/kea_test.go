package kea_test

import (
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/e2e/importtest"
	"drover/migrate"
	"drover/migrate/kea"
)

const leased = "10.28.0.100-10.28.0.150"

// TestKeaHostName: the option names a machine that has no name, and else it is reported.
func TestKeaHostName(t *testing.T) {
	r, c := importtest.Text(t, kea.Read, `{"Dhcp4": {"subnet4": [{"subnet": "10.28.0.0/24",
  "option-data": [{"name": "host-name", "data": "many"}],
  "reservations": [
    {"hw-address": "52:54:00:28:00:16", "ip-address": "10.28.0.16", "option-data": [{"name": "host-name", "data": "rack4-n16"}]},
    {"hw-address": "52:54:00:28:00:17", "ip-address": "10.28.0.17", "option-data": [{"code": 12, "data": "n17"}], "hostname": "n17-mgmt"}]}]}}`)
	importtest.WantNodes(t, r, c, "rack4-n16 52:54:00:28:00:16 10.28.0.16", "n17-mgmt 52:54:00:28:00:17 10.28.0.17")
	fixture.WantText(t, "the report", importtest.Report(r), `input:4: taken: Dhcp4.subnet4[0].reservations[0].option-data[0] (host-name): pools[].nodes[].name: rack4-n16`,
		`input:5: not taken: Dhcp4.subnet4[0].reservations[1].option-data[0] (12): host name "n17": the node is named "n17-mgmt"`, `input:2: not taken: Dhcp4.subnet4[0].option-data[0] (host-name): host name "many"`)
}

// TestKeaInclude: files that a config includes are read, whatever part of JSON they hold, and
// the report has their names and lines.
func TestKeaInclude(t *testing.T) {
	t.Chdir(fixture.Tree(t, map[string]string{
		"kea.json": `{ "Dhcp4": { // <?include "nowhere.json"?>
  "comment": "# no /* comment",
  "subnet4": <?include "sub/subnets.json"?>,
  <?include "options.json"?>
}}`,
		"sub/subnets.json": "[ {\"subnet\": \"10.28.0.0/24\",\n \"reservations\": [ <?include \"one.json\"?> ] } ]",
		"sub/one.json":     "# a machine\n{\"hw-address\": \"52-54-00-28-00-11\", \"ip-address\": \"10.28.0.11\", \"hostname\": \"m1.\",\n \"option-data\": [{\"name\": \"ntp-servers\", \"data\": \"x\"}]}",
		"options.json":     "\"option-data\": [{\"name\": \"domain-name-servers\", \"data\": \"10.28.0.53\"}]",
		"gone.json":        "{\"Dhcp4\":\n <?include \"nowhere.json\"?> }",
		"loop.json":        "{\"Dhcp4\": <?include \"loop.json\"?> }",
	}))
	i := migrate.Import{Read: func(f *migrate.Farm) error { return kea.Read(f, []string{"kea.json"}) }}
	r, err := i.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fixture.WantText(t, "the config", string(r.Config()), "name: m1", "10.28.0.53")
	fixture.WantText(t, "the report", importtest.Report(r), "sub/one.json:3: not understood: Dhcp4.subnet4[0].reservations[0].option-data[0] (ntp-servers)")
	for file, want := range map[string]string{"gone.json": "gone.json:2: stat nowhere.json: no such file", "loop.json": "10 files in each other"} {
		if err := kea.Read(migrate.NewFarm(migrate.Options{}), []string{file}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}

// TestKeaOpensNothing: the classes of a network or a pool, and the class DROP.
func TestKeaOpensNothing(t *testing.T) {
	all := []string{leased}
	conf := func(global, shared, subnet, pool string) string {
		return `{"Dhcp4": {` + global + ` "shared-networks": [{"name": "n", ` + shared + ` "subnet4": [{"id": 1, "subnet": "10.28.0.0/24", ` + subnet +
			` "pools": [{"pool": "` + leased + `"` + pool + `}]}]}]}}`
	}
	for _, tt := range []struct {
		text       string
		open       []string
		restricted bool // a range is left out by a rule that drover does not have
	}{
		{conf("", "", "", ""), all, false},
		{conf(`"client-classes": [{"name": "moonshot", "test": "substring(pkt4.mac,0,3) == 0x9457a5"}],`, "", "", `, "client-class": "moonshot"`), nil, true},
		{conf(`"client-classes": [{"name": "efi", "test": "option[93].hex == 0x0007"}],`, "", "", `, "client-class": "efi"`), nil, true},
		{conf("", "", "", `, "client-classes": ["a", "b"]`), nil, true},
		{conf("", "", "", `, "client-class": "VENDOR_CLASS_docsis3.0"`), nil, true},
		{conf("", "", `"client-class": "a",`, ""), nil, true},
		{conf("", `"client-class": "a",`, "", ""), nil, true},
		{conf("", `"client-classes": ["a"],`, "", ""), nil, true},
		{conf("", "", "", `, "client-class": "KNOWN"`), nil, false},
		{conf("", "", `"client-class": "KNOWN",`, ""), nil, false},
		{conf("", `"client-class": "KNOWN",`, "", ""), nil, false},
		{conf("", "", "", `, "client-class": "UNKNOWN"`), all, false},
		{conf("", "", `"reservations": [{"hw-address": "52:54:00:28:00:19"}],`, `, "client-class": "UNKNOWN"`), nil, true},
		{conf("", "", `"reservations": [{"hw-address": "52:54:00:28:00:19"}],`, ""), all, false},
		{conf("", "", "", `, "client-classes": ["KNOWN", "UNKNOWN"]`), all, false},
		{conf("", "", `"client-class": "a",`, `, "client-class": "ALL"`), nil, true},
		{conf("", "", "", `, "require-client-classes": ["a"]`), all, false}, // options alone
		{conf("", "", `"evaluate-additional-classes": ["a"],`, ""), all, false},
		{conf("", "", `"user-context": {"comment": "x"},`, ""), all, false},
		{conf("", "", `"user-context": {"limits": {"address-limit": 4}},`, ""), nil, true},
		{conf("", "", "", `, "user-context": {"limits": {"rate-limit": "1 packet per second"}}`), nil, true},
		{conf("", "", "", `, "frobnicate": "x"`), nil, true},
		{conf("", "", `"frobnicate": "x",`, ""), nil, true},
		{conf(`"client-classes": [{"name": "DROP", "test": "not member('KNOWN')"}],`, "", "", ""), nil, true},
		{conf(`"client-classes": [{"name": "x", "user-context": {"limits": {"address-limit": 4}}}],`, "", "", ""), nil, true},
		{conf(`"client-classes": [{"name": "x", "test": "member('KNOWN')", "option-data": [{"name": "time-offset", "data": "1"}]}],`, "", "", ""), all, false},
	} {
		importtest.WantOpen(t, kea.Read, tt.text, tt.open, tt.restricted)
	}
	_, c := importtest.Text(t, kea.Read, `{"Dhcp4": {"subnet4": [{"subnet": "10.28.0.0/24", "reservations": [
		{"hw-address": "52:54:00:28:00:11", "ip-address": "10.28.0.11", "client-classes": ["DROP"]}]}]}}`)
	if n := c.Pools[0].Nodes; len(n) != 1 || !n[0].Ignore {
		t.Errorf("a machine of class DROP: %+v", n)
	}
}

// TestKeaHostile: damage closes ranges and opens none.
func TestKeaHostile(t *testing.T) {
	importtest.Refused(t, kea.Read)
	for _, text := range []string{
		`{"Dhcp4": {"subnet4": [{"subnet": "10.28.0.0/24", "client-class": "a", "pools": [{"pool": "` + leased + `"}]}]}}`,
		`{"Dhcp4": {"subnet4": [{"subnet": "10.28.0.0/24", "pools": [{"pool": "` + leased + `", "client-classes": ["a", "b"]}]}]}}`,
		`{"Dhcp4": {"shared-networks": [{"name": "n", "client-classes": ["KNOWN"], "subnet4": [{"subnet": "10.28.0.0/24", "pools": [{"pool": "` + leased + `"}]}]}]}}`,
		`{"Dhcp4": {"client-classes": [{"name": "DROP", "test": "not member('KNOWN')"}], "subnet4": [{"subnet": "10.28.0.0/24", "pools": [{"pool": "` + leased + `"}]}]}}`,
		`{"Dhcp4": {"subnet4": [{"subnet": "10.28.0.0/24", "user-context": {"limits": {"address-limit": 4}}, "pools": [{"pool": "` + leased + `"}]}]}}`,
		`{"Dhcp4": {"client-classes": [{"name": "x", "user-context": {"limits": {"address-limit": 4}}}], "subnet4": [{"subnet": "10.28.0.0/24", "pools": [{"pool": "` + leased + `"}]}]}}`,
		`{"Dhcp6": {"subnet6": [{"subnet": "fd00:28::/64", "relay": {"ip-addresses": ["fd00::1"]}, "pools": [{"pool": "fd00:28::100-fd00:28::150", "client-class": "a"}]}]}}`,
	} {
		importtest.Damage(t, kea.Read, text)
	}
	importtest.Damage(t, kea.Read, `{"Dhcp4": {"authoritative": true, "valid-lifetime": 600, "option-def": [{"name": "x", "code": 224, "type": "string"}], "interfaces-config": {"interfaces": ["eth1/10.28.0.1"]},
  "option-data": [{"name": "x", "data": "y"}], "subnet4": [{"subnet": "10.28.0.0/24", "relay": {"ip-address": "10.29.0.1"}, "option-data": [{"code": 3, "data": "10.28.0.1", "csv-format": true}],
    "reservations": [{"hw-address": "52:54:00:28:00:11", "ip-address": "10.28.0.11", "hostname": "m1", "client-classes": ["DROP"], "circuit-id": "'x'"}]}]}}`)
}
