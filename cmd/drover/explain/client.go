package explain

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"drover/dhcp/bootprogram"
	"drover/pools"
	"drover/pools/resolve"
)

// maxCapture is the maximum size of the file with a captured request, in bytes.
const maxCapture = 64 << 10

// OperatingSystem is the --arch of a DHCP client that is no firmware.
const OperatingSystem = "os"

// Client describes the DHCP client, as the flags of drover explain do.
type Client struct {
	Arch  string // a firmware, or [OperatingSystem]
	Relay string // address of the relay agent; empty: none
	File  string // with a captured request; the other fields are then unused
	IPXE  bool   // the client is iPXE
	IPv6  bool   // it asks by DHCPv6

	CircuitID, RemoteID, Class, UserClass, ClientID, UUID string // in the notation of the flags
}

func (a *Client) flags(cmd *cobra.Command) {
	archs := append(firmwareNames(), OperatingSystem)
	f := cmd.Flags()
	f.StringVar(&a.Arch, "arch", string(pools.UEFIx64), "what asks, a firmware or an operating system: "+strings.Join(archs, "|"))
	f.BoolVar(&a.IPXE, "ipxe", false, "iPXE asks, and wants its script rather than a loader")
	f.BoolVar(&a.IPv6, "ipv6", false, "it asks by DHCPv6; a machine with IPv6 only does so in any case")
	f.StringVar(&a.Relay, "relay", "", "address of the relay agent that it asks through (giaddr; with DHCPv6 the link-address)")
	f.StringVar(&a.CircuitID, "circuit-id", "", "what the relay agent calls its port (option 82.1), text or hex:0a0b")
	f.StringVar(&a.RemoteID, "remote-id", "", "what the relay agent calls its switch (option 82.2), text or hex:0a0b")
	f.StringVar(&a.Class, "class", "", "vendor class, instead of the firmware's (option 60)")
	f.StringVar(&a.UserClass, "user-class", "", "user class (option 77)")
	f.StringVar(&a.ClientID, "client-id", "", "client identifier (option 61; with DHCPv6 the DUID), text or hex:0a0b")
	f.StringVar(&a.UUID, "uuid", "", "UUID of the machine, instead of one that is made from the MAC (option 97)")
	f.StringVar(&a.File, "request", "", "file with a captured DHCP request: the bytes of its UDP payload, or these in hex")
	_ = cmd.MarkFlagFilename("request")
	_ = cmd.RegisterFlagCompletionFunc("arch", cobra.FixedCompletions(archs, cobra.ShellCompDirectiveNoFileComp))
}

func firmwareNames() []string {
	names := make([]string, len(pools.Firmwares))
	for i, f := range pools.Firmwares {
		names[i] = string(f)
	}
	return names
}

// Request returns the packet that the client sends; nil for DHCPv6. The argument args has
// its MAC, unless the request is a captured one.
func (a *Client) Request(args []string) (packet []byte, err error) {
	switch {
	case a.File != "" && len(args) > 0:
		return nil, errors.New("a captured request has a MAC: leave out the one beside")
	case a.File != "" && a.IPv6:
		return nil, errors.New("a captured request is one of DHCPv4: leave out --ipv6, or give a MAC")
	case a.File != "":
		return ReadCapture(a.File)
	}
	d, err := a.discover(args)
	if err != nil || a.IPv6 {
		return nil, err
	}
	return d.Packet().ToBytes(), nil
}

// discover returns the boot program that asks.
func (a *Client) discover(args []string) (*bootprogram.Discover, error) {
	if len(args) == 0 {
		return nil, errors.New("whose? give a MAC, or a captured request with --request FILE")
	}
	var err error
	d := bootprogram.Discover{IPXE: a.IPXE, Class: a.Class, UserClass: a.UserClass}
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	d.MAC, err = pools.ParseMAC(args[0])
	note(err)
	if a.Arch != OperatingSystem {
		d.Firmware, err = pools.ParseFirmware(a.Arch)
		note(err)
	} else if a.IPXE {
		note(errors.New("--arch os is no firmware that loads iPXE"))
	}
	if a.UUID != "" {
		d.UUID, err = resolve.ParseUUID(a.UUID)
		note(err)
	}
	if a.Relay != "" {
		d.Relay, err = netip.ParseAddr(a.Relay)
		if family := map[bool]string{false: "IPv4", true: "IPv6"}[a.IPv6]; err != nil || d.Relay.Is6() != a.IPv6 {
			note(fmt.Errorf("--relay: %q is not an %s address", a.Relay, family))
		}
	}
	for flag, text := range map[string]struct {
		from string
		to   *string
	}{"--circuit-id": {a.CircuitID, &d.CircuitID}, "--remote-id": {a.RemoteID, &d.RemoteID}, "--client-id": {a.ClientID, &d.ClientID}} {
		if *text.to, err = octets(text.from); err != nil {
			note(fmt.Errorf("%s: %w", flag, err))
		}
	}
	return &d, errors.Join(errs...)
}

// octets returns the bytes of text, or of hex:0a0b or hex:0a:0b. The limit is 120 bytes,
// so that two of them fit into one option.
func octets(s string) (string, error) {
	if digits, ok := strings.CutPrefix(s, "hex:"); ok {
		b, err := hex.DecodeString(strings.ReplaceAll(digits, ":", ""))
		if err != nil {
			return "", fmt.Errorf("%q is not bytes in hex (write hex:0a0b)", s)
		}
		s = string(b)
	}
	if len(s) > 120 {
		return "", fmt.Errorf("%d bytes, more than 120", len(s))
	}
	return s, nil
}

// ReadCapture reads a captured request from a file: raw, in hex digits, or as hexdump -C
// writes it. Lines that begin with # are comments. Text after the first block of hex
// is ignored.
func ReadCapture(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxCapture {
		return nil, fmt.Errorf("%s is not a file of at most %d bytes", file, maxCapture)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	packet, ok := parseCapture(data)
	if !ok {
		return nil, fmt.Errorf("%s is neither a DHCP request nor one in hex", file)
	}
	return packet, nil
}

func parseCapture(data []byte) (packet []byte, ok bool) {
	if len(data) > 0 && data[0] == 1 { // the op code BOOTREQUEST; no text begins with it
		return data, true
	}
	var digits strings.Builder
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "|") // the text column
		if strings.HasPrefix(line, "#") {
			continue
		}
		if line == "" {
			if digits.Len() > 0 {
				break
			}
			continue
		}
		if offset, rest, ok := strings.Cut(line, "  "); ok && len(offset) == 8 {
			line = rest
		}
		digits.WriteString(strings.NewReplacer(" ", "", ":", "").Replace(line))
	}
	packet, err := hex.DecodeString(digits.String())
	return packet, err == nil && len(packet) > 0
}
