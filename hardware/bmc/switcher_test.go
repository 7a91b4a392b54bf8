package bmc_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"drover/hardware/bmc"
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
	if r.Err != nil || r.State != bmc.On || string(log) != "pxe\noff\npxe\non\n" {
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
	refuses  map[string]error // by command
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
func (p *scripted) On(context.Context) error {
	p.commands = append(p.commands, "on")
	return p.refuses["on"]
}
func (p *scripted) Off(context.Context) error {
	word := "off"
	if slices.Contains(p.commands, "off") {
		word = "off again"
	}
	p.commands = append(p.commands, word)
	return p.refuses[word]
}
func (p *scripted) PXEOnce(context.Context) (func(context.Context) error, error) {
	word := "pxe"
	if slices.Contains(p.commands, "pxe") {
		word = "pxe again"
	}
	p.commands = append(p.commands, word)
	return func(ctx context.Context) error { p.commands = append(p.commands, "undo"); return ctx.Err() }, p.refuses[word]
}

// TestSequence: PXE is the boot source, off, wait for off, the boot source again, on, wait for on. An
// unknown state is waited for. A state that is not reached in time is an error, and the machine
// is left as it was.
func TestSequence(t *testing.T) {
	list := func(words string) (out []bmc.State) {
		for w := range strings.FieldsSeq(words) {
			out = append(out, bmc.State(w))
		}
		return out
	}
	no := errors.New("no")
	for _, tt := range []struct {
		name, states string
		err          error
		refuses      map[string]error
		commands     string
		want         string
		took         time.Duration
	}{
		{"no delay", "on powering-off off powering-on on", nil, nil, "pxe off pxe again on", "on", 20 * time.Second},
		{"off already", "off on", nil, nil, "pxe on", "on", 5 * time.Second},
		{"unknown is not off", "on unknown unavailable unknown off on", nil, nil, "pxe off pxe again on", "on", 25 * time.Second},
		{"the command is repeated when it was ignored", "on on on on off on", nil, nil, "pxe off off again pxe again on", "on", 25 * time.Second},
		{"seen late, and the command is rejected when it is repeated", "on on on on off on", nil, map[string]error{"off again": bmc.ErrRejected}, "pxe off off again pxe again on", "on", 25 * time.Second},
		{"40 s to be on", "off powering-on powering-on powering-on powering-on powering-on powering-on powering-on on", nil, nil, "pxe on", "on", 40 * time.Second},
		{"unreachable now and then", "on powering-off off powering-on on", bmc.ErrUnreachable, nil, "pxe off pxe again on", "on", 40 * time.Second},
		{"never off", "unavailable", nil, nil, "pxe off undo", "it is unavailable after 2m0s, and should be off", 125 * time.Second},
		{"off at last, too late", "on" + strings.Repeat(" powering-off", 26) + " off on", nil, nil, "pxe off undo on on", "it is powering-off after 2m0s, and should be off", 145 * time.Second},
		{"refused meanwhile", "on powering-off", bmc.ErrRefused, nil, "pxe off undo on", "login refused; it was on, and could not be switched on again: login refused", 15 * time.Second},
		{"the boot source is refused", "on", nil, map[string]error{"pxe": no}, "pxe", "no", 0},
		{"the boot source is refused while it is off", "on off on", nil, map[string]error{"pxe again": no}, "pxe off pxe again undo on", "no", 10 * time.Second},
		{"off is refused", "on", nil, map[string]error{"off": no}, "pxe off undo", "no", 0},
		{"on is refused, and it was off", "off", nil, map[string]error{"on": no}, "pxe on undo", "no", 0},
		{"on is refused, and it was on", "on off", nil, map[string]error{"on": no}, "pxe off pxe again on undo", "no", 5 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &scripted{states: list(tt.states), err: tt.err, refuses: tt.refuses}
				begin := time.Now()
				r := bmc.Switcher{}.Do(t.Context(), bmc.PXE, []bmc.Machine{{Name: "n1", Driver: p}})[0]
				got := string(r.State)
				if r.Err != nil {
					got = r.Error
				}
				if strings.Join(p.commands, " ") != tt.commands || got != tt.want || time.Since(begin) != tt.took {
					t.Errorf("got %v, %s after %s, want %s, %s after %s", p.commands, got, time.Since(begin), tt.commands, tt.want, tt.took)
				}
			})
		})
	}
}

// TestInterrupted: an interrupt takes the boot source back, and switches nothing more.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &scripted{states: []bmc.State{bmc.On, bmc.PoweringOff}}
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		r := bmc.Switcher{}.Do(ctx, bmc.PXE, []bmc.Machine{{Name: "n1", Driver: p}})[0]
		if got := strings.Join(p.commands, " "); got != "pxe off undo" || r.Error != context.DeadlineExceeded.Error() {
			t.Errorf("got %s, %v", got, r.Err)
		}
	})
}
