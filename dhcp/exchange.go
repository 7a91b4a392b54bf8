package dhcp

import (
	"context"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"drover/pools"
)

// Exchange is what one received packet came to.
type Exchange struct {
	Time     time.Time      // when the packet was received
	MAC      pools.MAC      // who asks; zero when the packet does not say
	Type     string         // DISCOVER, REQUEST, DECLINE, RELEASE, INFORM; empty for what is no DHCP message
	Reply    string         // OFFER, ACK or NAK; empty for silence
	Plan     *pools.Plan    // nil when the MAC is none of ours
	Address  netip.Addr     // given, or asked for when refused
	Firmware pools.Firmware // empty for an operating system
	IPXE     bool           // iPXE asks
	Netboot  bool           // a boot program asks, not an operating system
	Class    string         // option 60, at most 64 printable characters
	Giaddr   netip.Addr     // the relay that it came through; zero when it came directly
	Decision Decision       // what was done
	Warning  string         // what the operator should know of an answer that was sent
	Err      error          // why nothing was sent, or why it did not leave
	Took     time.Duration  // from receiving the packet to the answer leaving
}

// Decision says what the server did with a packet. There are few, so that they
// can label a metric.
type Decision string

// The decisions. Those up to Refused send an answer.
const (
	Offered      Decision = "offered"
	Acknowledged Decision = "acknowledged"
	Informed     Decision = "informed"
	Refused      Decision = "refused: wrong address"

	Released Decision = "released"
	Declined Decision = "declined: address in use by somebody else"

	NotOurs     Decision = "ignored: not ours"
	OtherServer Decision = "ignored: chose another server"
	Unusable    Decision = "ignored: makes no sense" // a message no client sends in any state
	NoAddress   Decision = "ignored: no address"     // none free, or the lease was not stored

	Malformed Decision = "dropped: malformed"
	QueueFull Decision = "dropped: queue full"
	Stale     Decision = "dropped: waited too long"
	Failed    Decision = "dropped: internal error"
)

// log writes the one line of an exchange.
func (x *Exchange) log(l *slog.Logger) {
	level := slog.LevelInfo
	switch x.Decision {
	case Malformed, QueueFull, Stale: // anybody can send any number of these
		level = slog.LevelDebug
	case Declined, NoAddress:
		level = slog.LevelWarn
	case Failed:
		level = slog.LevelError
	default:
		if x.Err != nil || x.Warning != "" {
			level = slog.LevelWarn
		}
	}
	if !l.Enabled(context.Background(), level) {
		return
	}
	l.LogAttrs(context.Background(), level, "dhcp", x.attrs()...)
}

func (x *Exchange) attrs() []slog.Attr {
	a := make([]slog.Attr, 0, 16)
	add := func(key, value string) {
		if value != "" {
			a = append(a, slog.String(key, value))
		}
	}
	a = append(a, slog.String("decision", string(x.Decision)))
	if !x.MAC.IsZero() {
		add("mac", x.MAC.String())
	}
	add("type", x.Type)
	add("reply", x.Reply)
	if x.Plan != nil {
		add("node", x.Plan.Node)
		add("pool", x.Plan.Pool)
	}
	if x.Address.IsValid() {
		add("address", x.Address.String())
	}
	add("firmware", string(x.Firmware))
	if x.IPXE {
		a = append(a, slog.Bool("ipxe", true))
	}
	add("class", x.Class)
	if x.Giaddr.IsValid() {
		add("relay", x.Giaddr.String())
	}
	add("warning", x.Warning)
	if x.Err != nil {
		add("error", x.Err.Error())
	}
	return append(a, slog.Duration("took", x.Took))
}

// printable makes what a client sent fit for a log: at most 64 characters,
// those that are not printable ASCII quoted.
func printable(s string) string {
	s = s[:min(len(s), 64)]
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return strconv.QuoteToASCII(s)
	}
	return s
}
