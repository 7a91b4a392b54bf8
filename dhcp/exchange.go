package dhcp

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"drover/pools"
	"drover/pools/resolve"
)

// Exchange is the outcome of one received packet.
type Exchange struct {
	Time     time.Time      // when the packet was received
	MAC      pools.MAC      // of the client; zero when the packet has none
	Type     string         // DISCOVER, REQUEST, DECLINE, RELEASE, INFORM, BOOTREQUEST; empty for a packet that is none, or was dropped and is BOOTP
	Reply    string         // OFFER, ACK, NAK or BOOTREPLY; empty for silence
	Plan     *resolve.Plan  // nil for a machine that is not of the farm
	Address  netip.Addr     // given, or requested when refused
	Firmware pools.Firmware // empty for an operating system
	IPXE     bool           // the client is iPXE
	Netboot  bool           // the client is a boot program, not an operating system
	Class    string         // option 60, at most 64 printable characters, as in Circuit and Remote
	Giaddr   netip.Addr     // the relay agent; zero when the packet came directly
	Circuit  string         // option 82.1: the port of the switch, as named by the relay
	Remote   string         // option 82.2: the switch
	Decision Decision       // the outcome
	Why      string         // the property that identified the machine, or the reason for silence
	Warning  string         // for the operator
	Err      error          // the reason why there is no reply; in the log, also why it was not sent
	Took     time.Duration  // from receiving the packet to sending the reply
}

// Exchange returns the exchange of a request that is dropped.
func (r *Request) Exchange(d Decision, received time.Time) Exchange {
	return Exchange{Time: received, MAC: r.MAC, Type: typeName(r.Type), Decision: d}
}

// Unknown reports whether the packet is from a machine that no node declares.
func (x *Exchange) Unknown() bool {
	return !x.MAC.IsZero() && (x.Plan == nil || x.Plan.CatchAll)
}

// Begins reports whether the packet is one that a boot begins with. Boot programs on a
// network without DHCPv6 addresses begin with an INFORMATION-REQUEST.
func (x *Exchange) Begins() bool {
	return x.Type == "DISCOVER" || x.Type == "SOLICIT" || x.Type == bootRequest || x.Type == "INFORMATION-REQUEST" && x.Netboot
}

// Decision names the outcome of a packet. The decisions are few, so that they
// can label a metric.
type Decision string

// The decisions. Only those up to Refused send an answer.
const (
	Offered      Decision = "offered"
	Acknowledged Decision = "acknowledged"
	Informed     Decision = "informed"
	Refused      Decision = "refused: wrong address"

	Released Decision = "released"
	Declined Decision = "declined: address in use by somebody else"

	Observed Decision = "observed: another server gives the address" // proxy mode

	NotOurs     Decision = "ignored: not ours"
	OtherServer Decision = "ignored: chose another server"
	Unusable    Decision = "ignored: makes no sense" // a message that clients do not send in any state
	NoAddress   Decision = "ignored: no address"     // none free, or the lease was not stored
	Waiting     Decision = "ignored: its address is being probed"
	Twice       Decision = "ignored: answered on another interface" // of this server, on the same wire

	Malformed Decision = "dropped: malformed"
	Spoofed   Decision = "dropped: not sent by its machine or a relay agent"
	TooOften  Decision = "dropped: client asks too often"
	QueueFull Decision = "dropped: queue full"
	Stale     Decision = "dropped: waited too long"
	Failed    Decision = "dropped: internal error"
)

// warn adds a warning.
func (x *Exchange) warn(text string) {
	if x.Warning != "" {
		text = x.Warning + "; " + text
	}
	x.Warning = text
}

// Kind is the event for a limit on log lines: the decision, with warnings apart.
func (x *Exchange) Kind() string {
	if x.Warning != "" {
		return string(x.Decision) + ", with a warning"
	}
	return string(x.Decision)
}

// Level is the level at which an exchange is logged.
func (x *Exchange) Level() slog.Level {
	switch x.Decision {
	case Malformed, Spoofed, TooOften, QueueFull, Stale: // any host can send any number of these
		return slog.LevelDebug
	case Declined, NoAddress:
		return slog.LevelWarn
	case Failed:
		return slog.LevelError
	}
	if x.Err != nil || x.Warning != "" {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// Log writes an exchange to l as one line.
func (x *Exchange) Log(l *slog.Logger) {
	if level := x.Level(); l.Enabled(context.Background(), level) {
		l.LogAttrs(context.Background(), level, "dhcp", x.attrs()...)
	}
}

func (x *Exchange) attrs() []slog.Attr {
	a := append(make([]slog.Attr, 0, 16), slog.String("decision", string(x.Decision)))
	add := func(key, value string) {
		if value != "" {
			a = append(a, slog.String(key, value))
		}
	}
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
	add("circuit", x.Circuit)
	add("remote", x.Remote)
	add("why", x.Why)
	add("warning", x.Warning)
	if x.Err != nil {
		add("error", x.Err.Error())
	}
	return append(a, slog.Duration("took", x.Took))
}
