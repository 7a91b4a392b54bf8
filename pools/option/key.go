package option

import (
	"fmt"
	"strings"
)

// Force begins the key of an option that clients get unasked.
const Force = "force:"

// ofClass stands between the key of an option and the vendor class that it is for.
const ofClass = "@"

// Parse encodes one entry of dhcpOptions. When err is not nil, hint is the remedy; it
// is empty for an unknown name, see [Names].
func Parse(key string, values []string) (v Value, hint string, err error) {
	plain, forced := strings.CutPrefix(key, Force)
	plain, class, bound := strings.Cut(plain, ofClass)
	if strings.HasPrefix(plain, Prefix6) && !bound {
		v, hint, err = parse6(plain, values)
	} else {
		v, hint, err = parse4(plain, values)
	}
	switch v.Class = class; {
	case err != nil:
		return v, hint, err
	case bound && v.Code != 43:
		return v, "write it without " + ofClass + class, fmt.Errorf("DHCP option %s: only vendor options (43) are for a vendor class", key)
	case bound && (class == "" || len(class) > 255):
		return v, `write 43.1@PXEClient*`, fmt.Errorf("DHCP option %s: %q is no vendor class", key, class)
	case forced && v.Code == 108:
		return v, "remove " + Force, fmt.Errorf("DHCP option %s: RFC 8925 forbids to send it unasked", key)
	}
	v.Forced = forced
	return v, "", nil
}

// Code returns the number of the option in a key of dhcpOptions that is of DHCPv4.
func Code(key string) uint8 {
	key, _, _ = strings.Cut(strings.TrimPrefix(key, Force), ofClass)
	s, _, _ := find(key)
	return s.code
}

// Field returns the name of an option in a Plan, from its key: dhcpOptions.42, or
// dhcpOptions.option6:56.
func Field(key string) string {
	key = strings.TrimPrefix(key, Force)
	if strings.HasPrefix(key, Prefix6) {
		s, _ := find6(key)
		return fmt.Sprintf("dhcpOptions.%s%d", Prefix6, s.code)
	}
	_, class, _ := strings.Cut(key, ofClass)
	return FieldOf(Code(key), class)
}

// FieldOf returns the name in a Plan of an option of DHCPv4 that is for a vendor class, or for all.
func FieldOf(code uint8, class string) string {
	if class != "" {
		class = ofClass + class
	}
	return fmt.Sprintf("dhcpOptions.%d%s", code, class)
}
