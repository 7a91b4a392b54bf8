package moonshot

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"strings"

	"drover/pools"
)

// Address is a chassis as an operator writes it: [NAME=]ADDRESS, where the
// address is ssh://host:port, https://host:port or a host.
type Address struct {
	Name string
	Via  pools.Via // empty: the address has no scheme
	Host string    // host or host:port
}

// ParseAddress reads the value of a flag --chassis. The default name is the first part
// of the host name.
func ParseAddress(text string) (Address, error) {
	name, rest, named := strings.Cut(text, "=")
	if !named {
		name, rest = "", text
	}
	scheme, address, ok := strings.Cut(rest, "://")
	if !ok {
		scheme, address = "", rest
	}
	u, err := url.Parse("x://" + address)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "":
		return Address{}, fmt.Errorf("--chassis %q: want [NAME=]ADDRESS, such as m1=ilo-m1.example.org or m1=ssh://10.1.2.3:22", text)
	case scheme != "" && scheme != "ssh" && scheme != "https":
		return Address{}, fmt.Errorf("--chassis %q: want ssh:// or https://", text)
	case named && name == "":
		return Address{}, fmt.Errorf("--chassis %q: the name is missing", text)
	}
	if name == "" {
		name, _, _ = strings.Cut(u.Hostname(), ".")
		if net.ParseIP(u.Hostname()) != nil {
			return Address{}, fmt.Errorf("--chassis %q: an address has no name: write NAME=%s", text, rest)
		}
	}
	return Address{name, map[string]pools.Via{"ssh": pools.ViaSSH, "https": pools.ViaREST}[scheme], u.Host}, nil
}

// Choose returns the protocol for the chassis: the value of a flag unless it is "auto",
// else that of the address, else SSH.
func (a Address) Choose(flag string) pools.Via {
	if flag != "auto" {
		return pools.Via(flag)
	}
	return cmp.Or(a.Via, pools.ViaSSH)
}
