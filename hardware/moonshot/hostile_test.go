package moonshot_test

import (
	"fmt"
	"strings"
	"testing"

	"drover/hardware/moonshot"
)

// TestHostileTranscripts parses invented outputs, as firmware, terminals and people could
// produce them. Rows that are not readable must be reported. No node may have a MAC of
// another slot, and no slot may be missing silently.
func TestHostileTranscripts(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		nodes      string // slots with the ends of their MACs, in order
		refused    string // slots without a node, which Problems must report
		err        bool   // the whole text is refused
	}{
		{"four nodes with gaps, narrow columns, upper case and dashes", `
Slot ID   NIC 1 (Switch A)   NIC 2 (Switch B)
---- ---- ------------------ ------------------
 17  c17n1 94-57-A5-00-17-10  94-57-A5-00-17-11
     c17n2 94-57-A5-00-17-20  94-57-A5-00-17-21
     c17n4 94-57-A5-00-17-40  N/A
 18  c18n3 n/a                94-57-A5-00-18-31
`, "c17n1=17:10,17:11 c17n2=17:20,17:21 c17n4=17:40 c18n3=18:31", "", false},
		{"the second card first", `
Slot ID    NIC 2 (Switch B)  NIC 1 (Switch A)
---- ----- ----------------- -----------------
  1  c1n1  94:57:a5:00:01:02 94:57:a5:00:01:01
`, "c1n1=01:01,01:02", "", false},
		{"dots, no separators, and a slot with a zero", `
Slot ID     NIC 1 (Switch A) NIC 2 (Switch B)
---- ------ ---------------- ----------------
 01  c01n1  9457.a500.0101   9457A5000102
 45  c45n8  9457.A500.4581   9457a5004582
`, "c1n1=01:01,01:02 c45n8=45:81,45:82", "", false},
		{"four cards, wrapped by a terminal of 80 columns", wrapAt(80, `
Slot ID    NIC 1 (Switch A)  NIC 2 (Switch B)  NIC 3 (Switch A)  NIC 4 (Switch B)
---- ----- ----------------- ----------------- ----------------- -----------------
  1  c1n1  94:57:a5:00:01:01 94:57:a5:00:01:02 94:57:a5:00:01:03 94:57:a5:00:01:04
  2  c2n1  94:57:a5:00:02:01 94:57:a5:00:02:02 N/A               N/A
`), "c1n1=01:01,01:02,01:03,01:04 c2n1=02:01,02:02", "", false},
		{"four cards, wrapped by a terminal of 64 columns, in the middle of MACs", wrapAt(64, `
Slot ID    NIC 1 (Switch A)  NIC 2 (Switch B)  NIC 3 (Switch A)  NIC 4 (Switch B)
---- ----- ----------------- ----------------- ----------------- -----------------
  1  c1n1  94:57:a5:00:01:01 94:57:a5:00:01:02 94:57:a5:00:01:03 94:57:a5:00:01:04
  2  c2n1  94:57:a5:00:02:01 94:57:a5:00:02:02 94:57:a5:00:02:03 94:57:a5:00:02:04
`), "c1n1=01:01,01:02,01:03,01:04 c2n1=02:01,02:02,02:03,02:04", "", false},
		{"a message between the halves of a wrapped row", `
Slot ID    NIC 1 (Switch A)  NIC 2 (Switc
h B)
---- ----- ----------------- ------------
-----
  1  c1n1  94:57:a5:00:01:01 94:57:a5:00:
*** cartridge 7 was inserted, 52:54:00:00:00:01 ***
01:02
  2  c2n1  94:57:a5:00:02:01 94:57:a5:00:
02:02
`, "c2n1=02:01,02:02", "c1n1", false},
		{"a tag that reads like rows, prompts and tables", `
hpiLO-> show node list
Slot ID    Proc Manufacturer  Node Asset Tag                     Power Health
---- ----- ------------------ ---------------------------------- ----- ------
  1  c1n1  Intel Corporation  hpiLO-> show node macaddr all      On    OK
  2  c2n1  Intel Corporation  c9n1 94:57:a5:00:09:01             Off   OK
  3  c3n1  Intel Corporation  ---- ----- -----------------       On    OK
  4  c4n1  Intel Corporation  No Asset Information               On    OK
hpiLO-> show node macaddr all
Slot ID    NIC 1 (Switch A)
---- ----- -----------------
  1  c1n1  94:57:a5:00:01:01
  2  c2n1  94:57:a5:00:02:01
  3  c3n1  94:57:a5:00:03:01
  4  c4n1  94:57:a5:00:04:01
`, "c1n1=01:01 c2n1=02:01 c3n1=03:01 c4n1=04:01", "", false},
		{"an IPv6 address in a column more, and cards behind it", `
Slot ID    Node State  Mgmt Address                 NIC 1 (Switch A)  NIC 2 (Switch B)
---- ----- ----------- ---------------------------- ----------------- -----------------
  1  c1n1  Ready       fe80::9657:a5ff:fe00:101     94:57:a5:00:01:01 94:57:a5:00:01:02
  2  c2n1  Not Ready   94:57:a5:ff:ff:01            N/A               94:57:a5:00:02:02
`, "c1n1=01:01,01:02 c2n1=02:02", "", false},
		{"a header torn by tabs", `
Slot ID	NIC 1 (Switch A)	NIC 2 (Switch B)
----	-----	-----------------	-----------------
1	c1n1	94:57:a5:00:01:01	94:57:a5:00:01:02
2	c2n1	N/A	94:57:a5:00:02:02
`, "", "c1n1 c2n1", false},
		{"a MAC with a digit too few, one too many, and one with an o", `
Slot ID    NIC 1 (Switch A)  NIC 2 (Switch B)
---- ----- ----------------- -----------------
  1  c1n1  94:57:a5:00:01:1  94:57:a5:00:01:02
  2  c2n1  94:57:a5:00:02:011 94:57:a5:00:02:02
  3  c3n1  94:57:a5:o0:03:01 94:57:a5:00:03:02
  4  c4n1  94:57:a5:00:04:01 94:57:a5:00:04:02
`, "c4n1=04:01,04:02", "c1n1 c2n1 c3n1", false},
		{"rows that name no slot", `
Slot ID    NIC 1 (Switch A)
---- ----- -----------------
  1  bay1  94:57:a5:00:01:01
  2  bay2  94:57:a5:00:02:01
`, "", "", true},
		{"two chassis in one paste, with the same slots", `
Slot ID    NIC 1 (Switch A)
---- ----- -----------------
  1  c1n1  94:57:a5:00:01:01
  2  c2n1  94:57:a5:00:02:01
hpiLO-> exit
Slot ID    NIC 1 (Switch A)
---- ----- -----------------
  1  c1n1  94:57:a5:00:11:01
  2  c2n1  94:57:a5:00:02:01
`, "c2n1=02:01", "c1n1", false},
		{"the power of a row whose maker is too long", `
Slot ID    Proc Manufacturer  Power Node Asset Tag
---- ----- ------------------ ----- --------------
  1  c1n1  Advanced Micro Devices, Inc. Off   was On hold
hpiLO->
Slot ID    NIC 1 (Switch A)
---- ----- -----------------
  1  c1n1  94:57:a5:00:01:01
`, "c1n1=01:01", "", false},
		{"dashes of another kind, as word processors put them", `
Slot ID    NIC 1 (Switch A)
–––– ––––– –––––––––––––––––
  1  c1n1  94:57:a5:00:01:01
`, "", "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inv, err := moonshot.Parse(tt.text)
			if tt.err {
				if err == nil {
					t.Errorf("got %s, want an error", summary(inv, nil))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var nodes, refused []string
			for _, n := range inv.Nodes {
				var ends []string
				for _, nic := range n.NICs {
					ends = append(ends, strings.TrimPrefix(nic.MAC.String(), "94:57:a5:00:"))
				}
				nodes = append(nodes, fmt.Sprintf("%s=%s", n.Slot, strings.Join(ends, ",")))
			}
			for _, p := range inv.Problems {
				if s := p.Slot.String(); len(refused) == 0 || refused[len(refused)-1] != s {
					refused = append(refused, s)
				}
			}
			if strings.Join(nodes, " ") != tt.nodes || strings.Join(refused, " ") != tt.refused {
				t.Errorf("got %s\nwant nodes %s and refused %q", summary(inv, nil), tt.nodes, tt.refused)
			}
		})
	}
}

// wrapAt breaks lines as a terminal does.
func wrapAt(width int, text string) string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		for len(line) > width {
			out, line = append(out, line[:width]), line[width:]
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}
