package power_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"drover/cmd/drover/power"
	"drover/e2e/clitest"
	"drover/e2e/ilosim"
)

// drover runs a command line and returns what came of it.
func drover(t *testing.T, line string) (code int, stdout, stderr string) {
	t.Helper()
	got := clitest.Run(t, power.Commands(), "", line)
	return got.Code, got.Out, got.Err
}

// TestPowerMoonshot: the words of the command line, to what happens in the
// chassis.
func TestPowerMoonshot(t *testing.T) {
	t.Chdir(t.TempDir())
	c := ilosim.New(1, 4, 1, 2)
	c.Profile = ilosim.Legacy14
	c.PowerDelay = 30 * time.Millisecond
	var happened []string
	c.OnAction = func(slot string, a ilosim.Action) {
		happened = append(happened, slot+map[bool]string{true: " on", false: " off"}[a.On]+map[bool]string{true: " pxe", false: ""}[a.PXE])
	}
	flags := " --legacy --poll 10ms --wait 60s " + clitest.Chassis(t, c)
	for _, tt := range []struct {
		line     string
		code     int
		out, err string
		happened string
	}{
		{"power status all", 0, "MACHINE  POWER  ERROR\nc1n1     off    -\nc2n1     off    -\nc3n1     off    -\nc4n1     off    -\n", "pinned", ""},
		{"power on c3n1,c1n1", 0, "MACHINE  POWER  ERROR\nc3n1     on     -\nc1n1     on     -\n", "drover: c3n1: on\ndrover: c1n1: on\n", "c3n1 on,c1n1 on"},
		{"power pxe 1-2", 2, "", "power pxe of 2 machines? [y/N]", ""},
		{"power pxe 1-2 -y", 0, "MACHINE  POWER  ERROR\nc1n1     on     -\nc2n1     on     -\n", "drover: c2n1: pxe once\n", "c1n1 off,c1n1 on pxe,c2n1 on pxe"},
		{"power off c1 -y", 0, "MACHINE  POWER  ERROR\nc1n1     off    -\n", "drover: c1n1: off\n", "c1n1 off"},
		{"power cycle c2n1 -o json", 0, "[\n  {\n    \"name\": \"c2n1\",\n    \"state\": \"on\"\n  }\n]\n", "drover: c2n1: off\n", "c2n1 off,c2n1 on"},
		{"power status c1n1,c9n1", 3, "MACHINE  POWER    ERROR\nc1n1     off      -\nc9n1     unknown  not understood: ", "drover: c9n1: ", ""},
		{"power status c9", 2, "", "selects no machine", ""},
		{"power status web", 2, "", "chooses no nodes", ""},
		{"power status c1n1 --driver telnet", 2, "", "want ssh, rest, redfish, ipmi or exec", ""},
		{"power status c1n1 --driver ipmi", 2, "", "--chassis is not for the driver ipmi", ""},
		{"power status c1n1 --driver exec --chassis=", 2, "", "--program is missing", ""},
		{"power status c1n1 --chassis=", 2, "", "--chassis is missing", ""},
		{"power status c1n1 --password-file nowhere", 2, "", "no such file", ""},
		{"power explode c1n1", 2, "", "unknown", ""},
	} {
		happened = nil
		line := strings.Fields(tt.line)
		code, out, errs := drover(t, strings.Join(line[:2], " ")+flags+" "+strings.Join(line[2:], " "))
		if code != tt.code || !strings.HasPrefix(out, tt.out) || !strings.Contains(errs, tt.err) || strings.Join(happened, ",") != tt.happened {
			t.Errorf("drover %s: exit %d\n%s%s%q\nwant exit %d\n%s%s%q", tt.line, code, out, errs, happened, tt.code, tt.out, tt.err, tt.happened)
		}
	}
	if err := os.WriteFile("pass", []byte("wrong horse"), 0o600); err != nil {
		t.Fatal(err)
	}
	logins := c.Logins()
	code, _, errs := drover(t, "power status c1n1,c2n1,c3n1"+flags)
	if code != 5 || c.Logins() != logins+1 || strings.Contains(errs, "horse") {
		t.Errorf("wrong password: exit %d after %d logins: %s", code, c.Logins()-logins, errs)
	}
	c.Inject(ilosim.SessionLimit, ilosim.Always)
	if code, _, _ := drover(t, "power status all"+flags); code != 4 {
		t.Errorf("nobody there: exit %d, want 4", code)
	}
}

// TestPowerOthers: REST, Redfish and the operator's program; a refusal names the machine, and leaves it
// on.
func TestPowerOthers(t *testing.T) {
	t.Chdir(t.TempDir())
	c := ilosim.New(1, 2, 1, 1)
	rest, err := ilosim.ServeHTTPS("127.0.0.1:0", c.Handler(ilosim.OData))
	if err != nil {
		t.Fatal(err)
	}
	defer rest.Close()
	sim := ilosim.NewILO(5, 1)
	redfish, err := ilosim.ServeHTTPS("127.0.0.1:0", sim.Handler())
	if err != nil {
		t.Fatal(err)
	}
	defer redfish.Close()
	if err := os.WriteFile("hook", []byte("#!/bin/sh\n[ $1 = status ] && cat $2 || echo $1 > $2\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("n1", []byte("off\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DROVER_ILO_PASSWORD", c.Password)
	refusing := ilosim.NewBMC(ilosim.Habits{IDs: []string{"Self", "Other"}}, true, ilosim.Override{Target: "None", Enabled: "Disabled", Mode: "UEFI"})
	refusing.Fault = ilosim.OverrideRefused
	other, err := ilosim.ServeHTTPS("127.0.0.1:0", refusing.Handler())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, tt := range []struct{ line, says string }{
		{"power pxe " + other.Addr + " --driver redfish --user root --system Self", other.Addr + ": rejected: " + other.Addr + ": PATCH /redfish/v1/Systems/Self: 400 Bad Request (Base.1.12.ActionNotSupported: The license has no boot override.)"},
		{"power pxe " + other.Addr + " --driver redfish --user root", "--system names one"},
	} {
		code, out, errs := drover(t, tt.line+" --known-certs certs --poll 5ms --wait 60s")
		if on, _, starts, _ := refusing.Machine(); code != 1 || !strings.Contains(errs, tt.says) || !on || starts != 0 {
			t.Errorf("drover %s: exit %d, on: %t\n%s%s", tt.line, code, on, out, errs)
		}
	}
	for _, tt := range []struct{ line, out string }{
		{"power pxe all -y --chassis https://" + rest.Addr, "c1n1     on     -\nc2n1     on     -\n"},
		{"power off c2n1 --driver rest --chassis m1=" + rest.Addr, "c2n1     off    -\n"},
		{"power pxe " + redfish.Addr + " --driver redfish", redfish.Addr + "  on     -\n"},
		{"power on n1 --driver exec --program ./hook", "n1       on     -\n"},
	} {
		code, out, errs := drover(t, tt.line+" --known-certs certs --poll 5ms --wait 60s")
		if code != 0 || !strings.HasSuffix(out, tt.out) {
			t.Errorf("drover %s: exit %d\n%s%s", tt.line, code, out, errs)
		}
	}
}
