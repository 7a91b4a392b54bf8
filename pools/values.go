package pools

import (
	"encoding/json"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// MarshalJSON writes the list, or {"replace": [...]}.
func (l List[T]) MarshalJSON() ([]byte, error) {
	if l.Replace {
		return json.Marshal(map[string][]T{"replace": l.Items})
	}
	return json.Marshal(l.Items)
}

// IsZero reports whether the list changes nothing.
func (l List[T]) IsZero() bool { return !l.Replace && len(l.Items) == 0 }

// UnmarshalText splits the words of a kernel command line.
func (k *KernelArgs) UnmarshalText(b []byte) error {
	k.Args = strings.Fields(string(b))
	return nil
}

// MarshalJSON writes the words as one string, or {"replace": "..."}.
func (k KernelArgs) MarshalJSON() ([]byte, error) {
	s := strings.Join(k.Args, " ")
	if k.Replace {
		return json.Marshal(map[string]string{"replace": s})
	}
	return json.Marshal(s)
}

// IsZero reports whether there are no arguments and none to replace.
func (k KernelArgs) IsZero() bool { return !k.Replace && len(k.Args) == 0 }

// D returns the duration as the standard library's type.
func (d Duration) D() time.Duration { return time.Duration(d) }

// Infinite is a lease time without an end (RFC 2131, section 3.3).
const Infinite = Duration((1<<32 - 1) * time.Second)

// String returns the shortest form: 12h, not 12h0m0s.
func (d Duration) String() string {
	if d == Infinite {
		return "infinite"
	}
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalText writes the form of [Duration.String].
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a positive duration, 90s, 10m, 12h, 1h30m, or infinite.
func (d *Duration) UnmarshalText(b []byte) error {
	if string(b) == "infinite" {
		*d = Infinite
		return nil
	}
	v, err := time.ParseDuration(string(b))
	if err != nil || v <= 0 {
		return Hint("write 90s, 10m or 12h", "%q is not a duration", b)
	}
	*d = Duration(v)
	return nil
}

// IsValid reports whether the range was set.
func (r Range) IsValid() bool { return r.First.IsValid() }

// Contains reports whether the range holds a.
func (r Range) Contains(a netip.Addr) bool {
	return r.IsValid() && a.IsValid() && r.First.Compare(a) <= 0 && a.Compare(r.Last) <= 0
}

// Count returns the number of addresses, up to limit; 0 if the range was not set.
func (r Range) Count(limit int) int {
	if !r.IsValid() {
		return 0
	}
	a, z := r.First.As16(), r.Last.As16()
	n := 0
	for i := range a {
		n = n<<8 + int(z[i]) - int(a[i])
		if n >= limit {
			return limit
		}
	}
	return n + 1
}

// String returns 10.28.72.10-10.28.72.250.
func (r Range) String() string {
	if !r.IsValid() {
		return ""
	}
	return r.First.String() + "-" + r.Last.String()
}

// MarshalText writes the form of [Range.String].
func (r Range) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads first-last. An empty text is no range.
func (r *Range) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*r = Range{}
		return nil
	}
	first, last, ok := strings.Cut(string(b), "-")
	a, err1 := netip.ParseAddr(strings.TrimSpace(first))
	z, err2 := netip.ParseAddr(strings.TrimSpace(last))
	if !ok || err1 != nil || err2 != nil || a.BitLen() != z.BitLen() || a.Is4In6() || a.Zone() != "" || z.Zone() != "" {
		return Hint("write 10.28.72.10-10.28.72.250", "%q is not a range of addresses", b)
	}
	*r = Range{First: a, Last: z}
	return nil
}

// IsZero reports whether no type was set.
func (a Arch) IsZero() bool { return !a.set }

// Code returns the number; 0 for none, which is also that of a PC with a BIOS.
func (a Arch) Code() uint16 { return a.code }

// String returns the number in decimal; "" for none.
func (a Arch) String() string {
	if !a.set {
		return ""
	}
	return strconv.Itoa(int(a.code))
}

// MarshalText writes the form of [Arch.String].
func (a Arch) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads 7, 0x07 or 00007, as DHCP clients write it.
func (a *Arch) UnmarshalText(b []byte) error {
	base, digits := 10, string(b)
	if hex, ok := strings.CutPrefix(digits, "0x"); ok {
		base, digits = 16, hex
	}
	n, err := strconv.ParseUint(digits, base, 16)
	if err != nil {
		return Hint("write the number of option 93: 7 or 0x07", "%q is not an architecture type", b)
	}
	*a = Arch{uint16(n), true}
	return nil
}

// IsZero reports whether nothing is set.
func (m Match) IsZero() bool { return m == Match{} }

// Match returns the conditions of the rule.
func (r LoaderRule) Match() Match {
	return Match{Firmware: r.Firmware, Arch: r.Arch, Class: r.Class, UserClass: r.UserClass}
}

// String returns the form of kubectl taint: key=value:effect.
func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}
