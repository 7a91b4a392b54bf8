package crontab_test

import (
	"errors"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"drover/pools"
	"drover/pools/crontab"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		line string
		want crontab.Entry
	}{
		{"30 15 * * *  root  poweroff", crontab.Entry{Calendar: []string{"*-*-* 15:30:00"}, User: "root", Command: "poweroff"}},
		{"*/20 * * * * root a  b", crontab.Entry{Calendar: []string{"*-*-* *:00,20,40:00"}, User: "root", Command: "a  b"}},
		{"\t0 0-6/3 1,15 jan-MAR * www-data x\\%y", crontab.Entry{Calendar: []string{"*-01,02,03-01,15 00,03,06:00:00"}, User: "www-data", Command: "x%y"}},
		{"0 4 * * 7 root x", crontab.Entry{Calendar: []string{"Sun *-*-* 04:00:00"}, User: "root", Command: "x"}},
		{"0 4 * * 0-7 root x", crontab.Entry{Calendar: []string{"*-*-* 04:00:00"}, User: "root", Command: "x"}},
		{"0 4 1 * mon,fri root x", crontab.Entry{Calendar: []string{"*-*-01 04:00:00", "Mon,Fri *-*-* 04:00:00"}, User: "root", Command: "x"}},
		{"0 4 */2 * mon root x", crontab.Entry{Calendar: []string{"Mon *-*-01,03,05,07,09,11,13,15,17,19,21,23,25,27,29,31 04:00:00"}, User: "root", Command: "x"}},
		{"@weekly root x", crontab.Entry{Calendar: []string{"Sun *-*-* 00:00:00"}, User: "root", Command: "x"}},
		{"@reboot root echo up", crontab.Entry{Boot: true, User: "root", Command: "echo up"}},
	} {
		got, err := crontab.Parse(tt.line)
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%q: got %+v, %v, want %+v", tt.line, got, err, tt.want)
		}
	}
}

// TestSystemdReads: systemd reads all events, where it is installed.
func TestSystemdReads(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skipf("SKIPPED, NOT TESTED: %v", err)
	}
	for _, line := range []string{"30 15 * * * root x", "*/7 0-6/3 1,15 jan-mar * root x", "0 4 1 * mon,fri root x", "@yearly root x"} {
		e, err := crontab.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range e.Calendar {
			if out, err := exec.Command(analyze, "calendar", event).CombinedOutput(); err != nil {
				t.Errorf("%q: %q: %v\n%s", line, event, err, out)
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for line, want := range map[string]string{
		"":                              "is not a line of cron",
		"* * * * *":                     "is not a line of cron",
		"* * * * * root":                "is not a line of cron",
		"60 * * * * root x":             `"60" is not the minute`,
		"* 24 * * * root x":             `"24" is not the hour`,
		"* * 0 * * root x":              `"0" is not the day`,
		"* * * foo * root x":            `"foo" is not the month`,
		"* * * * 5-1 root x":            `"5-1" is not the weekday`,
		"*/0 * * * * root x":            `"*/0" is not the minute`,
		"5/2 * * * * root x":            `"5/2" is not the minute`,
		"1,,2 * * * * root x":           `"1,,2" is not the minute`,
		"+5 * * * * root x":             `"+5" is not the minute`,
		"@noon root x":                  `unknown time "@noon"`,
		"0 0 * * * /bin/true x":         `"/bin/true" is not the name of a user`,
		"0 0 * * * root date +%s":       `begins its input`,
		"0 0 * * * root a\n* * * * * b": "line break",
	} {
		_, err := crontab.Parse(line)
		if _, ok := errors.AsType[*pools.HintError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q with a hint", line, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("*/5 1-3 * jan 0,7 root x\\%")
	f.Fuzz(func(t *testing.T, line string) {
		e, err := crontab.Parse(line)
		if err == nil && (e.Command == "" || e.User == "" || e.Boot == (len(e.Calendar) > 0)) {
			t.Errorf("%q: %+v", line, e)
		}
	})
}
