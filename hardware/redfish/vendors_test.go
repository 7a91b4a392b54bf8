package redfish_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/e2e/ilosim"
	"drover/hardware/bmc"
	"drover/hardware/redfish"
)

// processor starts a management processor with the habits of a vendor, and returns a driver for its
// machine.
func processor(t *testing.T, b *ilosim.BMC) *redfish.System {
	t.Helper()
	s, err := ilosim.ServeHTTPS("127.0.0.1:0", b.Handler())
	if err != nil {
		t.Fatal(err)
	}
	client, err := redfish.Open(bmc.Login{
		Address: s.Addr, User: b.User, Password: bmc.Secret(b.Password), TLSPin: s.Pin,
		Timeouts: bmc.Timeouts{Backoff: time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		s.Close()
		if n := b.Sessions(); n != 0 {
			t.Errorf("%d sessions are left open", n)
		}
	})
	p := &redfish.System{Client: client}
	if len(b.IDs) > 1 {
		p.Name = b.IDs[0]
	}
	return p
}

// prevented are the faults that no client overcomes, with the actions that they prevent and what the
// error says.
var prevented = map[ilosim.BMCFault]struct{ actions, says string }{
	ilosim.OverrideRefused:    {"pxe", "rejected: ADDRESS: PATCH PATH: 400 Bad Request (Base.1.12.ActionNotSupported: The license has no boot override.)"},
	ilosim.OverrideForbidden:  {"pxe", "login refused: ADDRESS: PATCH PATH: 403 Forbidden (Base.1.12.InsufficientPrivilege: The account may not configure.)"},
	ilosim.OverrideIgnored:    {"pxe", `rejected: ADDRESS: it was told to boot from the network once, and says target `},
	ilosim.OverridePending:    {"pxe", `rejected: ADDRESS: it was told to boot from the network once, and says target `},
	ilosim.OverrideContinuous: {"pxe", `, enabled "Continuous"`},
	ilosim.OverrideLegacy:     {"pxe", `, enabled "Once", mode "Legacy"`},
	ilosim.OverrideRefusedOff: {"pxe", "PATCH PATH: 400 Bad Request (Base.1.12.ActionNotSupported"},
	ilosim.ResetRefused:       {"off cycle pxe", "400 Bad Request (Base.1.12.ActionParameterNotSupported: ForceOff is not supported.)"},
	ilosim.ResetFailed:        {"off cycle pxe", "rejected: ADDRESS: ForceOff (Base.1.12.InternalError: The machine could not be switched off.)"},
	ilosim.ResetIgnored:       {"off cycle pxe", "it is on after 30ms, and should be off"},
}

// prevents returns what the error says when a fault prevents an action.
func prevents(h ilosim.Habits, f ilosim.BMCFault, a bmc.Action, on bool) (says string, fails bool) {
	if f == ilosim.SessionsFull && h.Login == ilosim.SessionLogin {
		return "login refused: ADDRESS: GET /redfish/v1/Systems/: 401", true
	}
	p, ok := prevented[f]
	reset := strings.HasPrefix(string(f), "reset-")
	switch {
	case !ok || !slices.Contains(strings.Fields(p.actions), string(a)):
		return "", false
	case reset && !on: // nothing is to be switched off
		return "", false
	case f == ilosim.OverrideLegacy && h.NoMode:
		return "", false
	}
	return p.says, true
}

// TestVendors: with the habits of each vendor, and each fault, on, off, cycle and pxe end as asked, or
// leave the machine as it was: its power and its boot source.
func TestVendors(t *testing.T) {
	for _, h := range ilosim.Vendors() {
		for _, f := range ilosim.BMCFaults() {
			t.Run(fmt.Sprintf("%s, %s", h.Vendor, f), func(t *testing.T) { t.Parallel(); machines(t, h, f) })
		}
	}
	for _, h := range ilosim.Variants() {
		for _, f := range []ilosim.BMCFault{ilosim.NoBMCFault, ilosim.OverrideRefused, ilosim.OverrideIgnored, ilosim.OverrideRefusedOff, ilosim.TagStale} {
			t.Run(fmt.Sprintf("%s, %s", h.Vendor, f), func(t *testing.T) { t.Parallel(); machines(t, h, f) })
		}
	}
}

// machines executes the actions that a fault may concern on machines that are on and off.
func machines(t *testing.T, h ilosim.Habits, f ilosim.BMCFault) {
	actions := []bmc.Action{bmc.PXE}
	if f == ilosim.NoBMCFault || strings.HasPrefix(string(f), "session") || strings.HasPrefix(string(f), "reset") {
		actions = []bmc.Action{bmc.SwitchOn, bmc.SwitchOff, bmc.Cycle, bmc.PXE}
	}
	for _, a := range actions {
		for _, on := range []bool{true, false} {
			switched(t, h, f, a, on, ilosim.Override{Target: "Hdd", Enabled: "Continuous", Mode: "UEFI"})
			if a == bmc.PXE {
				switched(t, h, f, a, on, ilosim.Override{Target: "None", Enabled: "Disabled", Mode: "UEFI"})
			}
		}
	}
}

// switched executes an action on a machine, and compares it with what was asked and with what it was.
func switched(t *testing.T, h ilosim.Habits, f ilosim.BMCFault, a bmc.Action, on bool, boot ilosim.Override) {
	t.Helper()
	if f == ilosim.OverrideLegacy && h.ModeRefused {
		return // the processor changes the mode and lets no client restore it
	}
	if h.NoMode {
		boot.Mode = ""
	}
	b := ilosim.NewBMC(h, on, boot)
	b.Fault = f
	p := processor(t, b)
	says, fails := prevents(h, f, a, on)
	s := bmc.Switcher{Poll: time.Millisecond, Wait: 2 * time.Minute}
	if f == ilosim.ResetIgnored && fails {
		s.Wait = 30 * time.Millisecond // the state is never reached
	}
	r := s.Do(t.Context(), a, []bmc.Machine{{Name: "n1", Driver: p}})[0]
	is, next, starts, booted := b.Machine()
	what := fmt.Sprintf("%s of a machine that is on: %t, from %v: %v, now on: %t, from %v, %d starts from %v\n%s", a, on, boot, r.Err, is, next, starts, booted, b.Log())
	if fails {
		says = strings.ReplaceAll(says, "ADDRESS", p.Client.Address)
		if at := p.Path; h.Settings != "" && !h.Undeclared {
			says = strings.ReplaceAll(says, "PATH", at+"/"+h.Settings)
		} else if !h.Undeclared {
			says = strings.ReplaceAll(says, "PATH", at)
		}
		if i := strings.Index(says, "PATH"); i >= 0 {
			says = says[i+len("PATH"):] // the settings resource was found in an error, which comes before
		}
		if r.Err == nil || !strings.Contains(r.Error, says) || is != on || next != boot && booted != boot {
			t.Errorf("%s\nwant %q, and the machine as it was", what, says)
		}
		return
	}
	want := on
	switch a {
	case bmc.SwitchOn, bmc.PXE:
		want = true
	case bmc.SwitchOff:
		want = false
	}
	asked := is == want && (r.State == bmc.On) == want
	switch {
	case a == bmc.PXE:
		asked = asked && starts == 1 && strings.EqualFold(booted.Target, "pxe") && booted.Enabled == "Once" && booted.Mode == boot.Mode
	case a == bmc.Cycle && on || a == bmc.SwitchOn && !on:
		asked = asked && starts == 1
	default:
		asked = asked && starts == 0
	}
	if r.Err != nil || !asked {
		t.Errorf("%s\nwant it as asked", what)
	}
}

// TestSystemByName: one of several systems is chosen by its ID, name, serial number or UUID.
func TestSystemByName(t *testing.T) {
	h := ilosim.Habits{IDs: []string{"System_0", "HGX_Baseboard_0"}}
	const list = ` has HGX_Baseboard_0 (name "Baseboard", serial "B2"), System_0 (name "System", serial "S1"): `
	for _, tt := range []struct{ name, says string }{
		{"System_0", ""}, {"system", ""}, {"s1", ""}, {"37333036-3831-5A43-0001-303538304a31", ""},
		{"", list + "which of them is meant? (--system names one, or system in the machine's power)"},
		{"System_1", list + `0 of them are "System_1"`},
	} {
		p := processor(t, ilosim.NewBMC(h, false, ilosim.Override{Target: "None", Enabled: "Disabled"}))
		p.Name = tt.name
		state, err := p.State(t.Context())
		if tt.says == "" && (err != nil || state != bmc.Off) || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%q: got %s, %v, want %q", tt.name, state, err, tt.says)
		}
	}
}

// TestRefusedLogin: the password is sent once, and no error has it, even if the processor repeats it.
func TestRefusedLogin(t *testing.T) {
	b := ilosim.NewBMC(ilosim.Habits{}, false, ilosim.Override{})
	p := processor(t, b)
	p.Client.Password = "wrong horse"
	b.Password = "other horse"
	for range 3 {
		_, err := p.State(t.Context())
		if !errors.Is(err, bmc.ErrRefused) || !strings.Contains(err.Error(), "Invalid credentials [secret].") {
			t.Errorf("got %v", err)
		}
	}
	if n := b.Logins(); n != 1 {
		t.Errorf("got %d logins, want 1", n)
	}
}
