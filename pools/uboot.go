package pools

import (
	"fmt"
	"strconv"
	"strings"
)

// UBoot describes how U-Boot starts Linux. Fields that are not set have defaults.
type UBoot struct {
	// Wrap puts the 64-byte header of mkimage before kernel and initrd, for a
	// U-Boot that boots no plain kernel: that of the HPE m400.
	Wrap *bool `json:"wrap,omitempty"`

	// Load is the physical address to which U-Boot copies a wrapped kernel, default
	// 0x00080000. Entry is the address at which it starts the kernel, default Load.
	Load  *Address32 `json:"load,omitempty"`
	Entry *Address32 `json:"entry,omitempty"`

	// FDT is a device tree in the loaders directory. Default: none, the
	// firmware has its own.
	FDT string `json:"fdt,omitempty"`
}

// defaultLoad is the load address on boards with APM's X-Gene.
const defaultLoad Address32 = 0x80000

// Wrapped reports whether kernel and initrd get mkimage's header.
func (u UBoot) Wrapped() bool { return u.Wrap != nil && *u.Wrap }

// Addresses returns the load address and the entry address of a wrapped kernel.
func (u UBoot) Addresses() (load, entry uint32) {
	l := defaultLoad
	if u.Load != nil {
		l = *u.Load
	}
	e := l
	if u.Entry != nil {
		e = *u.Entry
	}
	return uint32(l), uint32(e)
}

// IsZero reports whether nothing is set.
func (u UBoot) IsZero() bool { return u == UBoot{} }

// Address32 is a physical address of 32 bits, written 0x00080000.
type Address32 uint32

// UnmarshalText reads 0x00080000.
func (a *Address32) UnmarshalText(b []byte) error {
	digits, ok := strings.CutPrefix(string(b), "0x")
	n, err := strconv.ParseUint(digits, 16, 32)
	if !ok || err != nil {
		return Hint("write it as 0x00080000", "%q is not an address of 32 bits", b)
	}
	*a = Address32(n)
	return nil
}

// MarshalText writes 0x00080000.
func (a Address32) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

func (a Address32) String() string { return fmt.Sprintf("0x%08x", uint32(a)) }

// Seconds is a time in whole seconds, written as a number.
type Seconds int

// maxMenu bounds the time that a menu may delay a boot.
const maxMenu Seconds = 3600

// UnmarshalText reads a number of seconds.
func (s *Seconds) UnmarshalText(b []byte) error {
	n, err := strconv.ParseUint(string(b), 10, 16)
	if err != nil || Seconds(n) > maxMenu {
		return Hint("write 10 for ten seconds, 0 for none", "%q is not a number of seconds from 0 to %d", b, maxMenu)
	}
	*s = Seconds(n)
	return nil
}
