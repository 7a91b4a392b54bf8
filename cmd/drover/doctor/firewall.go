package doctor

import (
	"net"
	"regexp"
	"strconv"
	"strings"

	"drover/pools"
)

// closed returns the ports of the server that rules, as nft and iptables-save print them, do
// not accept. It is a look at the text: a rule that accepts all packets of a card or of a
// network accepts the ports, too.
func (d *doctor) closed(rules string) (ports []string) {
	if !strings.Contains(rules, ":INPUT DROP") && !dropsInput.MatchString(rules) {
		return nil
	}
	var accepting []string
	for line := range strings.Lines(rules) {
		if accepts.MatchString(line) && !notForAll.MatchString(line) {
			accepting = append(accepting, strings.ReplaceAll(line, `"`, ""))
		}
	}
	for _, port := range d.served() {
		if !acceptsPort(accepting, port) {
			ports = append(ports, strconv.Itoa(port))
		}
	}
	return ports
}

// served returns the ports that machines send to.
func (d *doctor) served() (ports []int) {
	cfg := d.farm.Config.Server
	if cfg.DHCP != pools.DHCPOff {
		ports = append(ports, 67)
	}
	for _, address := range []string{cfg.TFTP, cfg.HTTP} {
		if _, text, err := net.SplitHostPort(address); err == nil {
			if port, err := strconv.Atoi(text); err == nil {
				ports = append(ports, port)
			}
		}
	}
	return ports
}

// The forms of rules, of ports, and of rules for all packets of a card or a network.
var (
	dropsInput = regexp.MustCompile(`hook input [^\n]*policy drop`)
	accepts    = regexp.MustCompile(`\baccept\b|-j ACCEPT\b`)
	notForAll  = regexp.MustCompile(`policy accept|established|icmp`)
	ofPorts    = regexp.MustCompile(`dports? (?:\{ *)?([0-9][0-9 ,:-]*)`)
	onePort    = regexp.MustCompile(`([0-9]+)(?:[:-]([0-9]+))?`)
	anyPacket  = regexp.MustCompile(`(?:iifname|iif|-i|saddr|-s) +(?:\{ *)?(\S+)`)
)

// acceptsPort reports whether one of the rules accepts a port.
func acceptsPort(rules []string, port int) bool {
	for _, rule := range rules {
		if !strings.Contains(rule, "port") {
			if m := anyPacket.FindStringSubmatch(rule); m != nil && m[1] != "lo" && !strings.HasPrefix(m[1], "127.") {
				return true
			}
			continue
		}
		m := ofPorts.FindStringSubmatch(rule)
		if m == nil {
			continue
		}
		for _, r := range onePort.FindAllStringSubmatch(m[1], -1) {
			first, _ := strconv.Atoi(r[1]) // digits
			last, err := strconv.Atoi(r[2])
			if err != nil {
				last = first
			}
			if first <= port && port <= last {
				return true
			}
		}
	}
	return false
}
