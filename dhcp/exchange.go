package dhcp

import (
	"context"
	"log/slog"
	"net/netip"
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
	Class    string         // option 60, at most 64 printable characters; so are Circuit and Remote
	Giaddr   netip.Addr     // the relay that it came through; zero when it came directly
	Circuit  string         // option 82.1: the port of the switch, as the relay calls it
	Remote   string         // option 82.2: the switch
	Decision Decision       // what was done
	Why      string         // what the machine was known by, or why it gets silence
	Warning  string         // what the operator should know
	Err      error          // why nothing was sent, or why it did not leave
	Took     time.Duration  // from receiving the packet to the answer leaving

	wait  func() error // must return nil before the reply leaves: the lease is on disk
	fresh bool         // Address is new to the machine: worth asking the wire for it first
}

// Unknown tells whether a machine asked that no node declares.
func (x *Exchange) Unknown() bool {
	return !x.MAC.IsZero() && (x.Plan == nil || x.Plan.CatchAll)
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

	Observed Decision = "observed: another server gives the address" // proxy mode

	NotOurs     Decision = "ignored: not ours"
	OtherServer Decision = "ignored: chose another server"
	Unusable    Decision = "ignored: makes no sense" // a message no client sends in any state
	NoAddress   Decision = "ignored: no address"     // none free, or the lease was not stored
	Waiting     Decision = "ignored: its address is being probed"

	Malformed Decision = "dropped: malformed"
	Forged    Decision = "dropped: sent by a node in another's name"
	TooOften  Decision = "dropped: client asks too often"
	QueueFull Decision = "dropped: queue full"
	Stale     Decision = "dropped: waited too long"
	Failed    Decision = "dropped: internal error"
)

// log writes the one line of an exchange.
func (x *Exchange) log(l *slog.Logger) {
	level := slog.LevelInfo
	switch x.Decision {
	case Malformed, Forged, TooOften, QueueFull, Stale: // anybody can send any number of these
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
	add("circuit", x.Circuit)
	add("remote", x.Remote)
	add("why", x.Why)
	add("warning", x.Warning)
	if x.Err != nil {
		add("error", x.Err.Error())
	}
	return append(a, slog.Duration("took", x.Took))
}
