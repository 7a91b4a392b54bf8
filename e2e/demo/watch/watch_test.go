package watch

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"drover/e2e/lab"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/resolve"
)

// TestFollow: each step of a boot is printed once, with its time in the boot, and those of the
// next boot anew.
func TestFollow(t *testing.T) {
	var out strings.Builder
	w := &Watch{Log: NewLog(&out)}
	m := &Machine{Machine: lab.Machine{NICs: []lab.NIC{{MAC: "52:54:00:77:00:b1"}, {MAC: "52:54:00:77:00:0a", Boot: true}}}, Plan: &resolve.Plan{Node: "a1"}}
	start := time.Now()
	step := func(name boots.Step, seconds int, detail string) boots.StepTime {
		return boots.StepTime{Step: name, Time: start.Add(time.Duration(seconds) * time.Second), Detail: detail}
	}
	record := boots.Record{ID: "1", MAC: pools.MAC{0x52, 0x54, 0, 0x77, 0, 0x0a}, Started: start}
	follow := func(want bool, wantText string) {
		t.Helper()
		out.Reset()
		if got := w.follow(m, []boots.Record{{ID: "0"}, record}); got != want {
			t.Errorf("follow: %t, want %t", got, want)
		}
		if got := regexp.MustCompile(`(?m)^\[ *\d+ s\] `).ReplaceAllString(out.String(), ""); got != wantText {
			t.Errorf("it prints\n%s\nwant\n%s", got, wantText)
		}
	}
	follow(false, "")
	record.Steps = append(record.Steps, step(boots.StepDiscover, 0, ""), step(boots.StepJoined, 90, strings.Repeat("x", longest+1)))
	follow(true, "a1                     discover        0.0 s\n"+
		"a1                     joined         90.0 s  "+strings.Repeat("x", longest)+"...\n")
	if !m.joined() || m.state != `is at "joined"` || w.waiting() != "" {
		t.Errorf("joined %t, it %s, waiting %q", m.joined(), m.state, w.waiting())
	}
	follow(false, "")
	record.ID, record.Steps = "2", record.Steps[:1]
	follow(true, "a1                     discover        0.0 s\n")
	if m.joined() {
		t.Error("the machine has joined in its first boot, not in this one")
	}
	if w.follow(m, nil); m.state != "has not asked for an address yet" {
		t.Errorf("without a boot it %s", m.state)
	}
}
