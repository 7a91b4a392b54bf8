package match_test

import (
	"errors"
	"strings"
	"testing"

	"drover/pools"
	"drover/pools/config/match"
)

const (
	uuid    = "4c4c4544-0034-4210-8035-b4c04f4d3132"
	pattern = "94:57:a5:*"
)

// TestKind: what describes no machine is a mistake of its field, with a remedy.
func TestKind(t *testing.T) {
	for _, tt := range []struct {
		m    pools.Match
		want string // the fields, with a part of the text; "": it is good
	}{
		{pools.Match{}, ""},
		{pools.Match{MAC: pattern, ClientID: "hex:0a:0b", Class: "PXE*", UUID: uuid, Firmware: pools.BIOS, Serial: "CN*", LLDP: "leaf-7 *"}, ""},
		{pools.Match{MAC: "94-57-A5-*-*-*", UUID: "4c4c*", LLDP: "hex:0a"}, ""},
		{pools.Match{MAC: "94:57"}, `mac: "94:57" describes no MAC`},
		{pools.Match{MAC: "94:5:*"}, `mac: "94:5:*" describes no MAC`},
		{pools.Match{MAC: "9457a5*"}, `mac: "9457a5*" describes no MAC`},
		{pools.Match{MAC: "*:*:*:*:*:*:01"}, "mac: "},
		{pools.Match{MAC: "zz:*"}, "mac: "},
		{pools.Match{ClientID: "hex:0g"}, `clientID: clientID: "hex:0g" is not bytes in hex`},
		{pools.Match{Class: strings.Repeat("x", 766)}, "class: class has 766 characters"},
		{pools.Match{Serial: strings.Repeat("x", 130)}, "serial: serial has 130 characters"},
		{pools.Match{UUID: "4c4c-x-4c"}, `uuid: "4c4c-x-4c" is not a UUID`},
		{pools.Match{UUID: "4c4c"}, "uuid: "},
		{pools.Match{UUID: strings.Repeat("*", 73)}, "uuid: "},
		{pools.Match{Firmware: "uefi-x65"}, `firmware: unknown firmware "uefi-x65" (did you mean "uefi-x64"?)`},
		{pools.Match{DMI: " HPE"}, `dmi: dmi " HPE" begins or ends with a space`},
		{pools.Match{LLDP: "leaf-7"}, `lldp: lldp "leaf-7" has no port`},
		{pools.Match{MAC: "x", Serial: "hex:x"}, "mac: | serial: "},
	} {
		var got []string
		match.Kind(tt.m, func(field string, err error) {
			if err == nil {
				return
			}
			if hint, ok := errors.AsType[*pools.HintError](err); !ok || hint.Hint == "" {
				t.Errorf("%+v: %v has no remedy", tt.m, err)
			}
			got = append(got, field+": "+err.Error())
		})
		want := strings.Split(tt.want, " | ")
		if tt.want == "" {
			want = nil
		}
		if len(got) != len(want) {
			t.Errorf("%+v: got %q, want %q", tt.m, got, want)
			continue
		}
		for i := range want {
			if !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("%+v: got %q, want %q", tt.m, got[i], want[i])
			}
		}
	}
}

// TestNode: a node is one machine, which whole values name.
func TestNode(t *testing.T) {
	for _, tt := range []struct {
		m    pools.Match
		want string
	}{
		{pools.Match{CircuitID: "eth7", RemoteID: "hex:0a"}, ""},
		{pools.Match{MAC: pattern, ClientID: "hex:2a"}, ""},
		{pools.Match{UUID: uuid}, ""},
		{pools.Match{Serial: "10000000e2f1a3b4"}, ""},
		{pools.Match{ClientID: "n*"}, "a node is known by whole values"},
		{pools.Match{CircuitID: "hex:"}, "is not bytes in hex"},
		{pools.Match{MAC: "x", ClientID: "n"}, "describes no MAC"},
		{pools.Match{UUID: "4c4c*"}, "4c4c*"},
		{pools.Match{Serial: "CN1"}, `"CN1" is not the serial number of a Raspberry Pi`},
		{pools.Match{UUID: "e2f1a3b4", Serial: "e2f1a3b4"}, "e2f1a3b4"}, // as a UUID it is none
		{pools.Match{ClientID: "n", Class: "PXE"}, "a node is one machine"},
		{pools.Match{ClientID: "n", UserClass: "iPXE"}, "a node is one machine"},
		{pools.Match{ClientID: "n", Firmware: pools.BIOS}, "a node is one machine"},
		{pools.Match{ClientID: "n", DMI: "HPE"}, "a node is one machine"},
		{pools.Match{ClientID: "n", LLDP: "leaf-7 1"}, "a node is one machine"},
	} {
		for range 8 { // always the same answer
			if err := match.Node(tt.m); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%+v: got %v, want %q", tt.m, err, tt.want)
			}
		}
	}
}

func TestWithMACs(t *testing.T) {
	macs := []pools.MAC{{0x94, 0x57, 0xa5, 1, 2, 3}}
	for _, tt := range []struct {
		m    pools.Match
		macs []pools.MAC
		want string
	}{
		{pools.Match{}, nil, ""},
		{pools.Match{MAC: pattern}, macs, ""},
		{pools.Match{MAC: pattern, CircuitID: "eth7"}, nil, ""},
		{pools.Match{MAC: pattern}, nil, "match has a mac alone"},
		{pools.Match{MAC: "52:54:*"}, macs, "its MAC 94:57:a5:01:02:03 does not match"},
		{pools.Match{MAC: pattern}, append(macs, pools.MAC{2}), "its MAC 02:00:00:00:00:00 does not match"},
	} {
		if err := match.WithMACs(tt.m, tt.macs); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v, %v: got %v, want %q", tt.m, tt.macs, err, tt.want)
		}
	}
}

// TestCovers: a pool that takes all machines of a later one hides it.
func TestCovers(t *testing.T) {
	gpu := pools.Match{DMI: "gpu*"}
	for _, tt := range []struct {
		m, other pools.Match
		want     bool
	}{
		{pools.Match{}, gpu, true},
		{gpu, gpu, true},
		{gpu, pools.Match{}, false},
		{gpu, pools.Match{DMI: "gpu1"}, false}, // the texts do not show it
		{pools.Match{MAC: "94:*"}, pools.Match{MAC: pattern}, true},
		{pools.Match{MAC: pattern}, pools.Match{MAC: "94:*"}, false},
		{pools.Match{MAC: "94:*"}, pools.Match{MAC: pattern, DMI: "gpu*"}, true},
		{pools.Match{MAC: "94:*", DMI: "gpu*"}, pools.Match{MAC: pattern, DMI: "gpu*"}, true},
		{pools.Match{MAC: "94:*", DMI: "gpu*"}, pools.Match{MAC: pattern}, false},
		{pools.Match{MAC: "94:*"}, gpu, false},
	} {
		if got := match.Covers(tt.m, tt.other); got != tt.want {
			t.Errorf("%+v covers %+v: got %t, want %t", tt.m, tt.other, got, tt.want)
		}
	}
}

// TestIdentity: two ways to write an identity are one, and an identifier of one kind is none of
// another.
func TestIdentity(t *testing.T) {
	same := [][]pools.Match{
		{{ClientID: "n1"}, {ClientID: "hex:6e31"}, {ClientID: "hex:6E:31", CircuitID: "eth7"}},
		{{UUID: uuid}, {UUID: strings.ToUpper(uuid)}},
		{{Serial: "e2f1a3b4"}, {Serial: "10000000e2f1a3b4"}},
		{{CircuitID: "n1"}, {CircuitID: "hex:6e31", MAC: pattern}},
		{{RemoteID: "n1"}}, {{SubscriberID: "n1"}}, {{CircuitID: "n1", RemoteID: "n1"}},
	}
	seen := map[match.Identity]int{{}: -1}
	for i, group := range same {
		for _, m := range group {
			id := match.IdentityOf(m)
			if other, ok := seen[id]; ok && other != i {
				t.Errorf("%+v has an identity of another group, %d", m, other)
			}
			if id != match.IdentityOf(group[0]) {
				t.Errorf("%+v has another identity than %+v", m, group[0])
			}
			seen[id] = i
		}
	}
}
