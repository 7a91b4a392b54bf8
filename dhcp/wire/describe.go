package wire

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// OptionText is an option of a packet as text.
type OptionText struct {
	Code  uint8
	Name  string // empty for an option that this package does not know
	Value string
	Data  []byte
	In    string // the field that holds the option: file or sname (RFC 2131, option overload); empty for the options field
}

// Describe returns the options of a packet in the order of their codes. It
// joins options that were sent in pieces (RFC 3396). A packet without the magic
// cookie is an error.
func Describe(packet []byte) ([]OptionText, error) {
	if len(packet) < OptionsAt || [4]byte(packet[CookieAt:]) != MagicCookie() {
		return nil, errors.New("not a DHCP packet: the magic cookie is not there")
	}
	var all []OptionText
	read := func(field string, b []byte) (overload byte) {
		_ = EachOption(b, func(code uint8, data []byte) { // the options before a broken one count
			if code == OptOverload && len(data) == 1 {
				overload = data[0]
			}
			if i := slices.IndexFunc(all, func(o OptionText) bool { return o.Code == code }); i >= 0 {
				all[i].Data = append(slices.Clip(all[i].Data), data...)
				return
			}
			all = append(all, OptionText{Code: code, Data: data, In: field})
		})
		return overload
	}
	overload := read("", packet[OptionsAt:])
	if overload&OverloadFile != 0 {
		read("file", packet[FileAt:CookieAt])
	}
	if overload&OverloadSname != 0 {
		read("sname", packet[SnameAt:FileAt])
	}
	for i := range all {
		all[i].Name, all[i].Value = describe(all[i].Code, all[i].Data)
	}
	slices.SortStableFunc(all, func(a, b OptionText) int { return int(a.Code) - int(b.Code) })
	return all, nil
}

// describe returns the name of an option and its value as text.
func describe(code uint8, data []byte) (name, value string) {
	for _, d := range descriptions() {
		if d.code == code {
			if value, ok := d.read(data); ok {
				return d.name, value
			}
			return d.name, "hex:" + hex.EncodeToString(data)
		}
	}
	value, _ = readText(data)
	return "", value
}

// description is the name of an option and the function that reads its value. read
// returns false for a value that violates the specification.
type description struct {
	code uint8
	name string
	read func([]byte) (string, bool)
}

// descriptions returns the options that drover itself sends or reads. The plan
// has the names and texts of options that an operator sets.
func descriptions() []description {
	return []description{
		{OptSubnetMask, "subnet mask", readAddrs}, {OptRouter, "router", readAddrs}, {OptDNS, "DNS servers", readAddrs},
		{OptHostName, "host name", readText}, {OptDomain, "domain", readText}, {OptBroadcast, "broadcast address", readAddrs},
		{OptVendor, "vendor options", readSubOptions}, {OptRequested, "requested address", readAddrs},
		{OptLease, "lease time", readSeconds}, {OptOverload, "option overload", readNumber}, {OptMessageType, "message type", readMessageType},
		{OptServerID, "server", readAddrs}, {OptParameters, "asked for", readCodes}, {OptMessage, "message", readText},
		{OptMaxSize, "largest message", readNumber}, {OptRenew, "renews after", readSeconds}, {OptRebind, "rebinds after", readSeconds},
		{OptClass, "class", readText}, {OptClientID, "client identifier", readHex}, {OptTFTPServer, "TFTP server", readText},
		{OptBootFile, "boot file", readText}, {OptUserClass, "user class", readText}, {OptFQDN, "FQDN", readHex},
		{OptRelay, "relay agent", readSubOptions}, {OptArch, "architecture", readNumber}, {OptUNDI, "network interface", readHex},
		{OptMachineID, "machine UUID", readHex}, {OptSubnetSelection, "subnet selection", readAddrs}, {OptIPXE, "iPXE options", readSubOptions},
	}
}

func readHex(b []byte) (string, bool) { return "hex:" + hex.EncodeToString(b), true }

// readText returns printable text as it is, and other bytes in hex.
func readText(b []byte) (string, bool) {
	text := strings.TrimRight(string(b), "\x00")
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		return readHex(b)
	}
	return text, true
}

func readAddrs(b []byte) (string, bool) {
	var words []string
	for ; len(b) >= 4; b = b[4:] {
		words = append(words, netip.AddrFrom4([4]byte(b)).String())
	}
	return strings.Join(words, " "), len(b) == 0 && len(words) > 0
}

func readSeconds(b []byte) (string, bool) {
	if len(b) != 4 {
		return "", false
	}
	s := time.Duration(binary.BigEndian.Uint32(b)) * time.Second
	return fmt.Sprintf("%d s (%s)", int(s.Seconds()), s), true
}

func readNumber(b []byte) (string, bool) {
	switch len(b) {
	case 1:
		return fmt.Sprint(b[0]), true
	case 2:
		return fmt.Sprint(binary.BigEndian.Uint16(b)), true
	}
	return "", false
}

func readMessageType(b []byte) (string, bool) {
	if len(b) != 1 {
		return "", false
	}
	return dhcpv4.MessageType(b[0]).String(), true
}

func readCodes(b []byte) (string, bool) {
	words := make([]string, len(b))
	for i, c := range b {
		words[i] = fmt.Sprint(c)
	}
	return strings.Join(words, " "), true
}

// readSubOptions returns the options within an option, each as code=value.
func readSubOptions(b []byte) (string, bool) {
	var words []string
	for len(b) > 0 && b[0] != OptEnd {
		if len(b) < 2 || len(b) < 2+int(b[1]) {
			return "", false
		}
		value, _ := readText(b[2 : 2+int(b[1])])
		words = append(words, fmt.Sprintf("%d=%s", b[0], value))
		b = b[2+int(b[1]):]
	}
	return strings.Join(words, " "), len(words) > 0
}
