package dhcp6

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"
)

// OptionText is an option of a message as text.
type OptionText struct {
	Code  uint16
	Name  string // empty for an option that this package does not know
	Value string
	Data  []byte
}

// Describe returns the options of a message of a client or a server, in their order. The
// options of relay agents around it are left out.
func Describe(packet []byte) ([]OptionText, error) {
	for len(packet) > 0 && dhcpv6.MessageType(packet[0]) == dhcpv6.MessageTypeRelayReply {
		if len(packet) < relayHeader {
			return nil, errors.New("the message for a relay agent is cut off")
		}
		around := options(packet[relayHeader:])
		if err := around.check(); err != nil {
			return nil, err
		}
		packet = around.get(dhcpv6.OptionRelayMsg)
	}
	var r Request
	if err := r.parse(packet); err != nil {
		return nil, err
	}
	var all []OptionText
	for code, data, rest, ok := r.options.next(); ok; code, data, rest, ok = rest.next() {
		name, value := describe(code, data)
		all = append(all, OptionText{Code: uint16(code), Name: name, Value: value, Data: data})
	}
	return all, nil
}

// describe returns the name of an option and its value as text; in hex where the value
// violates the specification.
func describe(code dhcpv6.OptionCode, data []byte) (name, value string) {
	ok := false
	switch code {
	case dhcpv6.OptionClientID:
		name = "client identifier"
	case dhcpv6.OptionServerID:
		name = "server identifier"
	case dhcpv6.OptionIANA:
		name = "address"
		value, ok = readIA(data)
	case dhcpv6.OptionPreference:
		name = "preference"
		if ok = len(data) == 1; ok {
			value = fmt.Sprint(data[0])
		}
	case dhcpv6.OptionStatusCode:
		name = "status"
		value, ok = readStatus(data)
	case dhcpv6.OptionRapidCommit:
		name, ok = "rapid commit", len(data) == 0
	case dhcpv6.OptionVendorClass:
		name = "vendor class"
		if ok = len(data) > 6; ok {
			counted(data[4:], func(text []byte) { value = strings.TrimSpace(value + " " + string(text)) })
			ok = isText(value)
		}
	case dhcpv6.OptionDNSRecursiveNameServer:
		name = "DNS servers"
		value, ok = readAddresses(data)
	case dhcpv6.OptionDomainSearchList:
		name = "domain"
		value, ok = readDomains(data)
	case dhcpv6.OptionBootfileURL:
		name, value, ok = "boot file", string(data), isText(string(data))
	}
	if !ok {
		value = "hex:" + hex.EncodeToString(data)
	}
	return name, value
}

// isText reports whether a text is printable, and not empty.
func isText(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// readIA returns the addresses of an IA_NA with their lifetimes, or its status.
func readIA(data []byte) (string, bool) {
	if len(data) < 12 {
		return "", false
	}
	var words []string
	inner := options(data[12:])
	for code, data, rest, ok := inner.next(); ok; code, data, rest, ok = rest.next() {
		switch {
		case code == dhcpv6.OptionIAAddr && len(data) >= 24:
			words = append(words, fmt.Sprintf("%s for %d s", address(data), binary.BigEndian.Uint32(data[20:])))
		case code == dhcpv6.OptionStatusCode:
			status, _ := readStatus(data)
			words = append(words, status)
		}
	}
	return strings.Join(words, ", "), len(words) > 0
}

func readStatus(data []byte) (string, bool) {
	if len(data) < 2 {
		return "", false
	}
	status := iana.StatusCode(binary.BigEndian.Uint16(data)).String()
	if text := string(data[2:]); isText(text) {
		status += ": " + text
	}
	return status, true
}

func readAddresses(data []byte) (string, bool) {
	var words []string
	for ; len(data) >= 16; data = data[16:] {
		words = append(words, netip.AddrFrom16([16]byte(data)).String())
	}
	return strings.Join(words, " "), len(data) == 0 && len(words) > 0
}

// readDomains reads names as DNS writes them (RFC 1035, section 3.1), without compression.
func readDomains(data []byte) (string, bool) {
	var names, labels []string
	for len(data) > 0 {
		n := int(data[0])
		if n == 0 {
			names, labels, data = append(names, strings.Join(labels, ".")), nil, data[1:]
			continue
		}
		if n > 63 || len(data) < 1+n || !isText(string(data[1:1+n])) {
			return "", false
		}
		labels, data = append(labels, string(data[1:1+n])), data[1+n:]
	}
	return strings.Join(names, " "), labels == nil && len(names) > 0
}
