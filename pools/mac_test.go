package pools_test

import (
	"strings"
	"testing"

	"drover/pools"
)

func mac(t testing.TB, s string) pools.MAC {
	t.Helper()
	m, err := pools.ParseMAC(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestParseMAC(t *testing.T) {
	for in, want := range map[string]string{
		"52:54:00:12:34:56": "52:54:00:12:34:56",
		"52-54-00-AB-CD-EF": "52:54:00:ab:cd:ef",
		"5254.0012.3456":    "52:54:00:12:34:56",
		"525400123456":      "52:54:00:12:34:56",
		"52:54:00:12:34":    "",
		"52:54:00:12:34:5":  "",
		"5:254:00:12:34:56": "",
		"52:54:00:12:34:zz": "",
		"00:00:00:00:00:00": "",
		"ff:ff:ff:ff:ff:ff": "",
		"01:00:5e:00:00:01": "",
		"":                  "",
		"52-54:00-12:34-56": "",
	} {
		m, err := pools.ParseMAC(in)
		switch {
		case want == "" && err == nil:
			t.Errorf("ParseMAC(%q) = %s, want an error", in, m)
		case want != "" && m.String() != want:
			t.Errorf("ParseMAC(%q) = %s, %v; want %s", in, m, err, want)
		}
	}
}

func TestMACForms(t *testing.T) {
	m := mac(t, "525400abcdef")
	if got, want := m.Dashed()+" "+m.Hex()+" "+m.String(), "52-54-00-ab-cd-ef 525400abcdef 52:54:00:ab:cd:ef"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzParseMAC(f *testing.F) {
	f.Add("52:54:00:12:34:56")
	f.Add("5254.0012.3456")
	f.Fuzz(func(t *testing.T, s string) {
		m, err := pools.ParseMAC(s)
		if err != nil {
			return
		}
		if again, err := pools.ParseMAC(m.String()); err != nil || again != m {
			t.Errorf("%q reads as %s, which reads as %s, %v", s, m, again, err)
		}
	})
}

func TestMachineID(t *testing.T) {
	ids := map[string]bool{}
	for i := range byte(20) {
		id := pools.MachineID(pools.MAC{2, 0, 0, 0, 0, i})
		if len(id) != 32 || id[12] != '4' || !strings.ContainsRune("89ab", rune(id[16])) {
			t.Errorf("%q is not a UUID of version 4", id)
		}
		ids[id] = true
	}
	if len(ids) != 20 {
		t.Errorf("20 MACs have %d ids", len(ids))
	}
}
