package bmc_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/hardware/bmc"
)

// ipmitool is a processor behind ipmitool. Its files are power, flags (of boot parameter 5) and
// habits, words that say how it departs from the standard.
const ipmitool = `cd "$(dirname "$0")" || exit 9
echo "$*" >>log
[ "$IPMI_PASSWORD" = "correct horse" ] || { echo "RAKP 2 HMAC is invalid: $IPMI_PASSWORD" >&2; exit 1; }
habit() { grep -qx -e "$1" habits; }
fail() { echo "$*" >&2; exit 1; }
case "$*" in
*"power status") echo "Chassis Power is $(cat power)" ;;
*"power on")
	habit refuses-on && fail "Set Chassis Power Control to Up/On failed: Command not supported in present state"
	echo on >power; cat flags >booted; echo 0000000000 >flags ;;
*"power off")
	habit refuses-off && fail "Set Chassis Power Control to Down/Off failed: Command not supported in present state"
	habit forgets && echo 0000000000 >flags
	echo off >power ;;
*"bootdev pxe"*)
	habit refuses-pxe && fail "Set Chassis Boot Parameter 5 failed: Parameter is read-only"
	habit refuses-pxe-off && [ "$(cat power)" = off ] && fail "Set Chassis Boot Parameter 5 failed: Unspecified error"
	f=8004000000
	case "$*" in *options=efiboot) habit no-uefi || f=a004000000 ;; esac
	habit always && f=c004000000
	habit ignores || echo $f >flags ;;
*"bootparam get 5")
	f=$(cat flags)
	printf 'Boot parameter version: 1\nBoot parameter 5 is valid/unlocked\nBoot parameter data: %s\n Boot Flags :\n   - Options of %s\n' $f $f ;;
*"raw 0x00 0x08 0x05 "*) echo "$*" | sed 's/.*0x05 //; s/0x//g; s/ //g' >flags ;;
esac
`

// processor makes a processor behind ipmitool, and returns its driver and its directory.
func processor(t *testing.T, power, flags, habits string) (bmc.IPMI, string) {
	t.Helper()
	tool := program(t, ipmitool)
	dir := filepath.Dir(tool)
	for name, text := range map[string]string{"power": power, "flags": flags, "habits": habits, "booted": "", "log": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return bmc.IPMI{Program: tool, Host: "bmc1", User: "admin", Password: "correct horse", Options: []string{"-L", "OPERATOR"}, Timeout: time.Minute}, dir
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// TestIPMI checks the arguments of ipmitool, and that no error contains the password.
func TestIPMI(t *testing.T) {
	p, dir := processor(t, "on", "0000000000", "")
	s := bmc.Switcher{Poll: time.Millisecond, Wait: 2 * time.Minute}
	r := s.Do(t.Context(), bmc.PXE, []bmc.Machine{{Name: "bmc1", Driver: p}})[0]
	if r.Err != nil || r.State != bmc.On {
		t.Fatalf("got %+v", r)
	}
	const all = "-I lanplus -H bmc1 -U admin -E -L OPERATOR chassis "
	set := []string{"bootparam get 5", "bootdev pxe", "bootparam get 5"}
	want := []string{"power status"}
	want = append(append(want, set...), "power off", "power status")
	want = append(append(want, set...), "power on", "power status")
	if log := read(t, dir, "log"); log != all+strings.Join(want, "\n"+all) {
		t.Errorf("got\n%s\nwant\n%s", log, want)
	}
	p.Password = "wrong horse"
	if _, err := p.State(t.Context()); err == nil || strings.Contains(err.Error(), "horse") || !strings.Contains(err.Error(), "[secret]") || !strings.HasPrefix(err.Error(), "login refused") {
		t.Errorf("got %v, want the error without the password", err)
	}
}

// TestIPMIPXE: a machine boots from the network once, in its boot type; or it keeps its power and its
// boot flags, and the error says what the processor said.
func TestIPMIPXE(t *testing.T) {
	uefi, bios := func() (bool, bool) { return true, true }, func() (bool, bool) { return false, true }
	for _, tt := range []struct {
		name, flags, habits string
		uefi                func() (bool, bool)
		booted, says        string // the flags of the boot, or part of the error
	}{
		{"unknown, BIOS", "0000000000", "", nil, "8004000000", ""},
		{"unknown, UEFI by its flags", "2000000000", "", nil, "a004000000", ""},
		{"UEFI", "0000000000", "", uefi, "a004000000", ""},
		{"BIOS", "2000000000", "", bios, "8004000000", ""},
		{"forgets when it is switched off", "0000000000", "forgets", uefi, "a004000000", ""},
		{"has no UEFI in its flags", "0000000000", "no-uefi", uefi, "", `says "- Options of 8004000000"`},
		{"ignores the boot device", "0000000000", "ignores", nil, "", `says "- Options of 0000000000"`},
		{"ignores it, beside flags of an operator", "c008000000", "ignores", nil, "", `says "- Options of c008000000"`},
		{"ignores it, beside stale flags", "2004000000", "ignores", nil, "", `says "- Options of 2004000000"`}, // Supermicro
		{"takes it for all boots", "c008000000", "always", nil, "", `says "- Options of c004000000"`},
		{"refuses it", "e008000000", "refuses-pxe", nil, "", "failed: Parameter is read-only"},
		{"refuses it when it is off", "c008000000", "refuses-pxe-off", nil, "", "failed: Unspecified error"},
		{"cannot be switched off", "c008000000", "refuses-off", nil, "", "Down/Off failed: Command not supported in present state"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, dir := processor(t, "on", tt.flags, tt.habits)
			p.UEFI = tt.uefi
			s := bmc.Switcher{Poll: time.Millisecond, Wait: 2 * time.Minute}
			r := s.Do(t.Context(), bmc.PXE, []bmc.Machine{{Name: "n1", Driver: p}})[0]
			power, flags, booted := read(t, dir, "power"), read(t, dir, "flags"), read(t, dir, "booted")
			switch {
			case tt.says == "" && (r.Err != nil || power != "on" || booted != tt.booted):
				t.Errorf("got %v, power %s, booted with %s, want %s", r.Err, power, booted, tt.booted)
			case tt.says != "" && (r.Err == nil || !strings.Contains(r.Error, tt.says) || !strings.Contains(r.Error, "bmc1: ") || power != "on"):
				t.Errorf("got %v, power %s, want %q, power on", r.Err, power, tt.says)
			case tt.says != "" && flags != tt.flags && booted != tt.flags:
				t.Errorf("the flags are %s, want %s", flags, tt.flags)
			}
		})
	}
}

// TestIPMIUnreadable: ipmitool, or a program in its place, that prints no flags.
func TestIPMIUnreadable(t *testing.T) {
	p := bmc.IPMI{Program: program(t, "echo Boot parameter data: 80"), Host: "bmc1"}
	if _, err := p.PXEOnce(t.Context()); err == nil || !strings.Contains(err.Error(), `bmc1: the boot flags are "Boot parameter data: 80"`) {
		t.Errorf("got %v", err)
	}
}
