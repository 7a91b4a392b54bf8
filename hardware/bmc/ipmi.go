package bmc

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"drover/internal/printable"
)

// IPMI is the [Driver] for IPMI 2.0. It runs the program ipmitool. The password is in
// the environment of the program, because any user of the host can read arguments.
type IPMI struct {
	Program  string // default ipmitool
	Host     string
	User     string
	Password Secret
	Options  []string // further arguments, such as -L OPERATOR; for a cartridge -B 0 -T 0x82 -b 7 -t 0x72
	// UEFI reports whether the machine boots by UEFI. known is false when that is unknown: the boot
	// type then stays as it is. nil: it is unknown.
	UEFI    func() (uefi, known bool)
	Timeout time.Duration // of one command; default 30s
}

func (p IPMI) run(ctx context.Context, words ...string) (string, error) {
	args := []string{"-I", "lanplus", "-H", p.Host, "-U", p.User, "-E"}
	args = append(append(args, p.Options...), words...)
	c := child{program: cmp.Or(p.Program, "ipmitool"), args: args, env: []string{"IPMI_PASSWORD=" + string(p.Password)}, timeout: p.Timeout}
	text, err := c.run(ctx, p.Host)
	if err == nil {
		return text, nil
	}
	// ipmitool has one exit code for all failures. A processor that does not answer may be starting;
	// one that refuses the login is not asked again.
	switch says := strings.ToLower(err.Error()); {
	case strings.Contains(says, "rakp") || strings.Contains(says, "unauthorized name") || strings.Contains(says, "insufficient privilege"):
		return "", fmt.Errorf("%w: %w", ErrRefused, err)
	case strings.Contains(says, "unable to establish"):
		return "", fmt.Errorf("%w: %w", ErrUnreachable, err)
	case strings.Contains(says, "failed:") || strings.Contains(says, "rsp=0x"): // with the completion code
		return "", fmt.Errorf("%w: %w", ErrRejected, err)
	}
	return "", err
}

// State runs "chassis power status", which prints "Chassis Power is on".
func (p IPMI) State(ctx context.Context) (State, error) {
	text, err := p.run(ctx, "chassis", "power", "status")
	if err != nil {
		return Unknown, err
	}
	_, word, _ := strings.Cut(strings.ToLower(text), "power is ")
	s, _ := ParseState(word)
	return s, nil
}

// On runs "chassis power on".
func (p IPMI) On(ctx context.Context) error {
	_, err := p.run(ctx, "chassis", "power", "on")
	return err
}

// Off runs "chassis power off", which does not involve the operating system.
func (p IPMI) Off(ctx context.Context) error {
	_, err := p.run(ctx, "chassis", "power", "off")
	return err
}

// bootFlags are the data of boot parameter 5 (IPMI 2.0, table 28-14). The zero bootFlags are no
// override.
type bootFlags [5]byte

// The bits of the first byte, and the boot device of the second.
const (
	flagsValid      = 0x80
	flagsPersistent = 0x40
	flagsUEFI       = 0x20
	deviceMask      = 0x3c
	devicePXE       = 0x04
)

// overrides reports whether the flags change the next boot.
func (f bootFlags) overrides() bool { return f[0]&flagsValid != 0 && f[1]&deviceMask != 0 }

// pxeOnce reports whether the flags are the one boot from the network, by UEFI or not.
func (f bootFlags) pxeOnce(uefi bool) bool {
	return f[0]&flagsValid != 0 && f[0]&flagsPersistent == 0 && f[0]&flagsUEFI != 0 == uefi && f[1]&deviceMask == devicePXE
}

// flags reads boot parameter 5.
func (p IPMI) flags(ctx context.Context) (f bootFlags, text string, err error) {
	if text, err = p.run(ctx, "chassis", "bootparam", "get", "5"); err != nil {
		return f, "", err
	}
	_, data, _ := strings.Cut(text, "Boot parameter data:")
	data, _, _ = strings.Cut(data, "\n")
	b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(data), " ", ""))
	if err != nil || len(b) < len(f) {
		return f, "", fmt.Errorf("%w: %s: the boot flags are %q, want five bytes behind \"Boot parameter data:\"", ErrUnreadable, p.Host, printable.Line(text, maxShown))
	}
	return bootFlags(b[:len(f)]), text, nil
}

// PXEOnce sets the boot device, and reads the boot flags back. The boot type, UEFI or BIOS, is that
// of the machine: firmware ignores flags of the other one.
func (p IPMI) PXEOnce(ctx context.Context) (undo func(context.Context) error, err error) {
	before, _, err := p.flags(ctx)
	if err != nil {
		return nil, err
	}
	uefi := before[0]&flagsUEFI != 0
	if p.UEFI != nil {
		if is, known := p.UEFI(); known {
			uefi = is
		}
	}
	words := []string{"chassis", "bootdev", "pxe"}
	if uefi {
		words = append(words, "options=efiboot")
	}
	undo = func(ctx context.Context) error { return p.setFlags(ctx, before) }
	if _, err = p.run(ctx, words...); err == nil {
		var now bootFlags
		var text string
		if now, text, err = p.flags(ctx); err == nil && !now.pxeOnce(uefi) {
			err = fmt.Errorf("%w: %s: it was told to boot from the network once, and says %q", ErrRejected, p.Host, printable.Line(about(text), maxShown))
		}
	}
	if err == nil {
		return undo, nil
	}
	ctx, cancel := Restoring(ctx)
	defer cancel()
	if again := undo(ctx); again != nil {
		err = fmt.Errorf("%w; its boot flags could not be restored: %w", err, again)
	}
	return nil, err
}

// setFlags makes the boot flags those of before, byte for byte, which bootdev cannot. Flags that the
// machine has used since are left alone.
func (p IPMI) setFlags(ctx context.Context, before bootFlags) error {
	now, _, err := p.flags(ctx)
	if err != nil || now == before || !now.overrides() && !before.overrides() {
		return err
	}
	words := []string{"raw", "0x00", "0x08", "0x05"} // Set System Boot Options, parameter 5
	for _, b := range before {
		words = append(words, fmt.Sprintf("0x%02x", b))
	}
	if _, err = p.run(ctx, words...); err != nil {
		return err
	}
	if now, _, err = p.flags(ctx); err == nil && now != before && (now.overrides() || before.overrides()) {
		err = fmt.Errorf("%w: %s: its boot flags are %x, want %x", ErrRejected, p.Host, now[:], before[:])
	}
	return err
}

// about returns what ipmitool prints about boot flags, without the bytes before it.
func about(text string) string {
	if _, list, ok := strings.Cut(text, "Boot Flags :"); ok {
		text = list
	}
	return strings.Join(strings.Fields(text), " ")
}
