package bmc_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"drover/pools/hardware/bmc"
)

// program writes a shell script and returns its path.
func program(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestIPMI checks the arguments of ipmitool, and that no error contains the password.
func TestIPMI(t *testing.T) {
	dir := t.TempDir()
	tool := program(t, `
echo "$*" >> `+dir+`/log
[ "$IPMI_PASSWORD" = "correct horse" ] || { echo "wrong: $IPMI_PASSWORD" >&2; exit 1; }
case "$*" in
*"power status") echo "Chassis Power is $(cat `+dir+`/power)";;
*"power on") echo on > `+dir+`/power;;
*"power off") echo off > `+dir+`/power;;
*"bootparam get 5") echo "   - Boot Device Selector : Force PXE";;
esac
`)
	if err := os.WriteFile(dir+"/power", []byte("on\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := bmc.IPMI{Program: tool, Host: "bmc1", User: "admin", Password: "correct horse", Options: []string{"-L", "OPERATOR"}}
	s := bmc.Switcher{Poll: time.Millisecond, Wait: 2 * time.Minute}
	r := s.Do(t.Context(), bmc.PXE, []bmc.Machine{{Name: "bmc1", Driver: p}})[0]
	if r.Err != nil || r.State != bmc.On {
		t.Fatalf("got %+v", r)
	}
	log, err := os.ReadFile(dir + "/log")
	const all = "-I lanplus -H bmc1 -U admin -E -L OPERATOR chassis "
	want := all + strings.Join([]string{"power status", "power off", "power status", "bootdev pxe", "bootparam get 5", "power on", "power status"}, "\n"+all) + "\n"
	if err != nil || string(log) != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, log, want)
	}
	p.Password = "wrong horse"
	if _, err := p.State(t.Context()); err == nil || strings.Contains(err.Error(), "horse") || !strings.Contains(err.Error(), "[secret]") {
		t.Errorf("got %v, want the error without the password", err)
	}
}

// TestProgram switches a machine with a program of the operator.
func TestProgram(t *testing.T) {
	dir := t.TempDir()
	hook := program(t, `
case $1 in
status) cat `+dir+`/$2 || echo dreaming;;
pxe) echo pxe >> `+dir+`/log;;
on|off) echo $1 > `+dir+`/$2; echo $1 >> `+dir+`/log;;
esac
exit 0
`)
	s := bmc.Switcher{Poll: time.Millisecond, Wait: 2 * time.Minute}
	r := s.Do(t.Context(), bmc.PXE, []bmc.Machine{{Name: "n1", Driver: bmc.Program{Path: hook, Name: "n1"}}})[0]
	log, _ := os.ReadFile(dir + "/log")
	if r.Err != nil || r.State != bmc.On || string(log) != "off\npxe\non\n" {
		t.Errorf("got %+v, %q", r, log)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"fails", "echo no such machine >&2; exit 3", "exit status 3: no such machine"},
		{"hangs", "sleep 60", "did not end within"},
	} {
		p := bmc.Program{Path: program(t, tt.text), Name: "n1", Timeout: 300 * time.Millisecond}
		if _, err := p.State(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
	if _, err := (bmc.Program{Path: dir + "/nothing", Name: "n1"}).State(t.Context()); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no program: got %v", err)
	}
}

// scripted is a machine that reports a list of states and records its commands.
type scripted struct {
	states   []bmc.State
	err      error // of every second reading
	readings int
	commands []string
}

func (p *scripted) State(context.Context) (bmc.State, error) {
	p.readings++
	if p.err != nil && p.readings%2 == 0 {
		return bmc.Unknown, p.err
	}
	s := p.states[0]
	if len(p.states) > 1 {
		p.states = p.states[1:]
	}
	return s, nil
}
func (p *scripted) On(context.Context) error      { p.commands = append(p.commands, "on"); return nil }
func (p *scripted) Off(context.Context) error     { p.commands = append(p.commands, "off"); return nil }
func (p *scripted) PXEOnce(context.Context) error { p.commands = append(p.commands, "pxe"); return nil }

// TestSequence: PXE is off, wait for off, boot source, on, wait for on. An unknown state
// is waited for. A state that is not reached in time is an error, and ends the sequence.
func TestSequence(t *testing.T) {
	list := func(words string) (out []bmc.State) {
		for w := range strings.FieldsSeq(words) {
			out = append(out, bmc.State(w))
		}
		return out
	}
	for _, tt := range []struct {
		name, states string
		err          error
		commands     string
		want         string
		took         time.Duration
	}{
		{"no delay", "on powering-off off powering-on on", nil, "[off pxe on]", "on", 20 * time.Second},
		{"off already", "off on", nil, "[pxe on]", "on", 5 * time.Second},
		{"unknown is not off", "on unknown unavailable unknown off on", nil, "[off pxe on]", "on", 25 * time.Second},
		{"the command is repeated when it was ignored", "on on on on off on", nil, "[off off pxe on]", "on", 25 * time.Second},
		{"40 s to be on", "off powering-on powering-on powering-on powering-on powering-on powering-on powering-on on", nil, "[pxe on]", "on", 40 * time.Second},
		{"unreachable now and then", "on powering-off off powering-on on", bmc.ErrUnreachable, "[off pxe on]", "on", 40 * time.Second},
		{"never off", "unavailable", nil, "[off]", "it is unavailable after 2m0s, and should be off", 125 * time.Second},
		{"refused meanwhile", "on powering-off", bmc.ErrRefused, "[off]", "login refused", 5 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &scripted{states: list(tt.states), err: tt.err}
				begin := time.Now()
				r := bmc.Switcher{}.Do(t.Context(), bmc.PXE, []bmc.Machine{{Name: "n1", Driver: p}})[0]
				got := string(r.State)
				if r.Err != nil {
					got = r.Error
				}
				if fmt.Sprint(p.commands) != tt.commands || got != tt.want || time.Since(begin) != tt.took {
					t.Errorf("got %v, %s after %s, want %s, %s after %s", p.commands, got, time.Since(begin), tt.commands, tt.want, tt.took)
				}
			})
		})
	}
}
