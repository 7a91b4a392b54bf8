package dhcp6_test

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"drover/dhcp"
	"drover/dhcp/dhcp6"
	"drover/pools"
	"drover/pools/config"
)

// TestFourMessages: a declared node, from SOLICIT to RELEASE (RFC 8415, section 18.3).
func TestFourMessages(t *testing.T) {
	w := newWorld(t)
	adv, x := w.send(m1, message(dhcpv6.MessageTypeSolicit, m1, ia(7)))
	if a, valid, _ := given(t, adv); a != addr("fd00:28::10") || valid != time.Hour || adv.MessageType != dhcpv6.MessageTypeAdvertise {
		t.Errorf("got %s for %s in %s, want the node's address for 1h", a, valid, adv.MessageType)
	}
	if adv.Options.Preference() != 255 {
		t.Errorf("got preference %d, want 255: UEFI waits for others", adv.Options.Preference())
	}
	if !bytes.Equal(adv.GetOneOption(dhcpv6.OptionServerID).ToBytes(), serverDUID) || adv.TransactionID != (dhcpv6.TransactionID{1, 2, 3}) {
		t.Errorf("got %s", adv.Summary())
	}
	na := adv.Options.OneIANA()
	if na.IaId != [4]byte{3: 7} || na.T1 != 30*time.Minute || na.T2 != 48*time.Minute {
		t.Errorf("got IA_NA %v", na)
	}
	if x.Decision != dhcp.Offered || x.Type != "SOLICIT" || x.Reply != "ADVERTISE" || x.MAC != m1 || x.Plan.Node != "m1" || x.Netboot {
		t.Errorf("got exchange %+v", x)
	}
	for _, kind := range []dhcpv6.MessageType{dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeRenew} {
		reply, x := w.send(m1, message(kind, m1, toUs, ia(7, "fd00:28::10")))
		if a, _, _ := given(t, reply); a != addr("fd00:28::10") || reply.MessageType != dhcpv6.MessageTypeReply || x.Decision != dhcp.Acknowledged {
			t.Errorf("%s: got %s, %s", kind, a, x.Decision)
		}
	}
	reply, _ := w.send(m1, message(dhcpv6.MessageTypeRebind, m1, ia(7, "fd00:28::10")))
	if a, _, _ := given(t, reply); a != addr("fd00:28::10") {
		t.Errorf("REBIND: got %s", a)
	}
	reply, x = w.send(m1, message(dhcpv6.MessageTypeRelease, m1, toUs, ia(7, "fd00:28::10")))
	if reply.Options.Status() == nil || reply.Options.Status().StatusCode != iana.StatusSuccess || x.Decision != dhcp.Released {
		t.Errorf("RELEASE: got %s, %s", reply.Summary(), x.Decision)
	}
}

// TestInfiniteLease: a lease without an end has no times of its renewal either (RFC 8415,
// section 7.7).
func TestInfiniteLease(t *testing.T) {
	w := newWorld(t)
	farm, err := config.Parse("drover.yaml", []byte(strings.Replace(farmConfig, `ip6: "fd00:28::10"`, `lease: infinite, ip6: "fd00:28::10"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	w.server.Farm = farm
	adv, _ := w.send(m1, message(dhcpv6.MessageTypeSolicit, m1, ia(7)))
	const infinite = (1<<32 - 1) * time.Second
	if a, valid, _ := given(t, adv); a != addr("fd00:28::10") || valid != infinite {
		t.Errorf("got %s for %s, want it for ever", a, valid)
	}
	if na := adv.Options.OneIANA(); na.T1 != infinite || na.T2 != infinite {
		t.Errorf("got T1 %s and T2 %s", na.T1, na.T2)
	}
}

// TestOneMachine: firmware, iPXE and system have three DUIDs, and the machine two cards. It
// is one machine with one address (facts: "no MAC in any of them").
func TestOneMachine(t *testing.T) {
	w := newWorld(t)
	for name, msg := range map[string]*dhcpv6.Message{
		"firmware": message(dhcpv6.MessageTypeSolicit, m1, duidUUID(1), pxe(7, "PXEClient:Arch:00007:UNDI:003000"), ia(1)),
		"iPXE":     message(dhcpv6.MessageTypeSolicit, m1, duidUUID(2), pxe(7, "PXEClient:Arch:00007:UNDI:003010"), ipxe, ia(2)),
		"system":   message(dhcpv6.MessageTypeSolicit, stray, ia(3)),
	} {
		for _, card := range []pools.MAC{m1, m1b} {
			adv, x := w.send(card, msg)
			if a, _, _ := given(t, adv); a != addr("fd00:28::10") || x.Plan.Node != "m1" {
				t.Errorf("%s by %s: got %s for %s", name, card, a, x.Plan.Node)
			}
		}
	}
	rest, _ := w.send(stray, message(dhcpv6.MessageTypeSolicit, stray, duidUUID(1), ia(1)))
	again, _ := w.send(stray, message(dhcpv6.MessageTypeRequest, stray, toUs, duidUUID(1), ia(1)))
	other, _ := w.send(stray, message(dhcpv6.MessageTypeSolicit, stray, duidUUID(2), ia(9)))
	first, _, _ := given(t, rest)
	for _, m := range []*dhcpv6.Message{again, other} {
		if a, _, _ := given(t, m); a != first || a != addr("fd00:28::100") {
			t.Errorf("got %s after %s", a, first)
		}
	}
}

// TestBootFile: options 59 and 16 (RFC 5970; OVMF refuses HTTP Boot without 16).
func TestBootFile(t *testing.T) {
	base := "[fd00:28::2]"
	tests := []struct {
		name  string
		mods  []dhcpv6.Modifier
		file  string
		class string
	}{
		{"PXE", []dhcpv6.Modifier{pxe(7, "PXEClient:Arch:00007:UNDI:003000")}, "tftp://" + base + "/snponly.efi", ""},
		{"PXE arm64", []dhcpv6.Modifier{pxe(11, "PXEClient:Arch:00011:UNDI:003000")}, "tftp://" + base + "/snponly-arm64.efi", ""},
		{"HTTP", []dhcpv6.Modifier{pxe(16, "HTTPClient:Arch:00016:UNDI:003000")}, "http://" + base + "/loaders/snponly.efi", "HTTPClient"},
		{"iPXE", []dhcpv6.Modifier{pxe(7, "PXEClient:Arch:00007:UNDI:003010"), ipxe}, "http://" + base + "/boot/52-54-00-99-00-01", ""},
		{"loader rule", []dhcpv6.Modifier{pxe(7, "PXEClient:Arch:00007:UNDI:009999")}, "http://boot.example.org/own.efi", ""},
		{"architecture without a loader", []dhcpv6.Modifier{pxe(0x29, "PXEClient:Arch:00041:UNDI:003000")}, "", ""},
		{"system", []dhcpv6.Modifier{with(dhcpv6.OptRequestedOption(59, 23, 24))}, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			adv, x := w.send(m1, message(dhcpv6.MessageTypeSolicit, m1, append(tt.mods, ia(1))...))
			if adv == nil {
				t.Fatalf("got silence: %+v", x)
			}
			if got := adv.Options.BootFileURL(); got != tt.file {
				t.Errorf("got file %q, want %q", got, tt.file)
			}
			class := ""
			if c := adv.Options.VendorClass(343); len(c) > 0 {
				class = string(c[0])
			}
			if class != tt.class {
				t.Errorf("got vendor class %q, want %q", class, tt.class)
			}
			if dns := adv.Options.DNS(); len(dns) != 1 || dns[0].String() != "fd00:28::53" {
				t.Errorf("got DNS %v", dns)
			}
			if l := adv.Options.DomainSearchList(); l == nil || len(l.Labels) != 1 || l.Labels[0] != "example.org" {
				t.Errorf("got domains %v", l)
			}
		})
	}
}

// TestStatus has the status codes of RFC 8415 where there is no address to give.
func TestStatus(t *testing.T) {
	solicit, request, renew, rebind := dhcpv6.MessageTypeSolicit, dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeRenew, dhcpv6.MessageTypeRebind
	tests := []struct {
		name   string
		mac    pools.MAC
		msg    *dhcpv6.Message
		answer dhcpv6.MessageType // 0: silence
		addr   string
		status iana.StatusCode
	}{
		{"a node without ip6", m2, message(solicit, m2, ia(1)), dhcpv6.MessageTypeAdvertise, "", iana.StatusNoAddrsAvail},
		{"it renews one all the same", m2, message(renew, m2, toUs, ia(1, "fd00:28::99")), dhcpv6.MessageTypeReply, "", iana.StatusNoBinding},
		{"it rebinds", m2, message(rebind, m2, ia(1, "fd00:28::99")), 0, "", 0},
		{"an address of another network", m1, message(request, m1, toUs, ia(1, "fd00:99::1")), dhcpv6.MessageTypeReply, "", iana.StatusNotOnLink},
		{"another address of the network", m1, message(request, m1, toUs, ia(1, "fd00:28::77")), dhcpv6.MessageTypeReply, "fd00:28::10", 0},
		{"a node of another network", m3, message(solicit, m3, ia(1)), 0, "", 0},
		{"no IA at all", m1, message(solicit, m1), 0, "", 0},
		{"two IAs: one address", m1, message(solicit, m1, ia(1), ia(2)), dhcpv6.MessageTypeAdvertise, "fd00:28::10", 0},
		{"rapid commit that the subnet does not have", m1, message(solicit, m1, ia(1), dhcpv6.WithRapidCommit), dhcpv6.MessageTypeAdvertise, "fd00:28::10", 0},
		{"a SOLICIT for one server", m1, message(solicit, m1, toUs, ia(1)), 0, "", 0},
		{"a REQUEST for another server", m1, message(request, m1, with(dhcpv6.OptServerID(&dhcpv6.DUIDLL{LinkLayerAddr: m1[:]})), ia(1)), 0, "", 0},
		{"a REQUEST for no server", m1, message(request, m1, ia(1)), 0, "", 0},
		{"an answer", m1, message(dhcpv6.MessageTypeReply, m1, ia(1)), 0, "", 0},
		{"no client identifier", m1, func() *dhcpv6.Message {
			m := message(solicit, m1, ia(1))
			m.Options.Del(dhcpv6.OptionClientID)
			return m
		}(), 0, "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			reply, x := newWorld(t).send(tt.mac, tt.msg)
			if tt.answer == 0 {
				if reply != nil {
					t.Errorf("got %s, want silence", reply.Summary())
				}
				return
			}
			a, _, status := given(t, reply)
			if want, _ := netip.ParseAddr(tt.addr); reply.MessageType != tt.answer || a != want || status != tt.status {
				t.Errorf("got %s %s %d, want %s %s %d (%+v)", reply.MessageType, a, status, tt.answer, tt.addr, tt.status, x)
			}
		})
	}
	two, _ := newWorld(t).send(m1, message(solicit, m1, ia(1), ia(2)))
	if all := two.Options.IANA(); len(all) != 2 || all[1].Options.Status().StatusCode != iana.StatusNoAddrsAvail {
		t.Errorf("two IAs: got %v", all)
	}
	pd := with(&dhcpv6.OptIAPD{IaId: [4]byte{1}})
	prefix, _ := newWorld(t).send(m1, message(solicit, m1, ia(1), pd))
	if o := prefix.Options.OneIAPD(); o == nil || o.Options.Status().StatusCode != iana.StatusNoPrefixAvail {
		t.Errorf("a prefix: got %v", prefix.Summary())
	}
}

// TestRenewMoved: a renewed address that is not the machine's any more gets lifetimes of
// zero, beside the one that is (RFC 8415, section 18.3.4).
func TestRenewMoved(t *testing.T) {
	reply, _ := newWorld(t).send(m1, message(dhcpv6.MessageTypeRenew, m1, toUs, ia(1, "fd00:28::77")))
	all := reply.Options.OneIANA().Options.Addresses()
	if len(all) != 2 || all[0].IPv6Addr.String() != "fd00:28::10" || all[0].ValidLifetime != time.Hour ||
		all[1].IPv6Addr.String() != "fd00:28::77" || all[1].ValidLifetime != 0 || all[1].PreferredLifetime != 0 {
		t.Errorf("got %v", all)
	}
}

// TestRapidCommit: two messages where the subnet has it (RFC 8415, section 18.3.1).
func TestRapidCommit(t *testing.T) {
	w := newWorld(t)
	var r dhcp6.Request
	r.Parse(message(dhcpv6.MessageTypeSolicit, m3, ia(1), dhcpv6.WithRapidCommit).ToBytes(), dhcp6.Sender{MAC: m3, Addr: linkLocal(m3)})
	m, x := w.server.Reply(&r, addr("fd00:29::2"), noon)
	if m == nil {
		t.Fatalf("got silence: %+v", x)
	}
	reply, err := dhcpv6.MessageFromBytes(m.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if a, _, _ := given(t, reply); a != addr("fd00:29::10") || reply.MessageType != dhcpv6.MessageTypeReply || reply.GetOneOption(dhcpv6.OptionRapidCommit) == nil {
		t.Errorf("got %s", reply.Summary())
	}
}

// TestConfirm: RFC 8415, section 18.3.3.
func TestConfirm(t *testing.T) {
	for address, want := range map[string]iana.StatusCode{"fd00:28::10": iana.StatusSuccess, "fd00:28::77": iana.StatusSuccess, "fd00:99::1": iana.StatusNotOnLink} {
		reply, _ := newWorld(t).send(m1, message(dhcpv6.MessageTypeConfirm, m1, ia(1, address)))
		if reply == nil || reply.Options.Status() == nil || reply.Options.Status().StatusCode != want {
			t.Errorf("%s: got %v, want status %d", address, reply, want)
		}
	}
	if reply, _ := newWorld(t).send(m1, message(dhcpv6.MessageTypeConfirm, m1, ia(1))); reply != nil {
		t.Errorf("no address: got %s, want silence", reply.Summary())
	}
}

// TestInformationRequest: options without an address, also in proxy mode (section 18.3.6).
func TestInformationRequest(t *testing.T) {
	w := newWorld(t)
	for _, mode := range []pools.DHCPMode{pools.DHCPFull, pools.DHCPProxy} {
		w.server.Mode = mode
		reply, x := w.send(m2, message(dhcpv6.MessageTypeInformationRequest, m2, with(dhcpv6.OptRequestedOption(23, 32))))
		if reply == nil || len(reply.Options.DNS()) != 1 || reply.Options.InformationRefreshTime(0) != time.Hour || x.Decision != dhcp.Informed {
			t.Errorf("%s: got %v, %+v", mode, reply, x)
		}
	}
	bare := message(dhcpv6.MessageTypeInformationRequest, m1)
	bare.Options.Del(dhcpv6.OptionClientID)
	if reply, x := w.send(m1, bare); reply == nil {
		t.Errorf("without client identifier: got silence, %+v", x)
	}
	if reply, _ := w.send(m1, message(dhcpv6.MessageTypeSolicit, m1, ia(1))); reply != nil {
		t.Errorf("proxy mode: got %s for a SOLICIT, want silence", reply.Summary())
	}
}

// TestUseMulticast: section 18.4. The server sends no option that allows unicast.
func TestUseMulticast(t *testing.T) {
	from := dhcp6.Sender{MAC: m1, Addr: linkLocal(m1), Unicast: true}
	for kind, answered := range map[dhcpv6.MessageType]bool{
		dhcpv6.MessageTypeRequest: true, dhcpv6.MessageTypeRenew: true, dhcpv6.MessageTypeRelease: true, dhcpv6.MessageTypeDecline: true,
		dhcpv6.MessageTypeSolicit: false, dhcpv6.MessageTypeRebind: false, dhcpv6.MessageTypeConfirm: false, dhcpv6.MessageTypeInformationRequest: false,
	} {
		msg := message(kind, m1)
		if answered {
			toUs(msg)
		}
		if kind != dhcpv6.MessageTypeInformationRequest {
			ia(1, "fd00:28::10")(msg)
		}
		reply, x := newWorld(t).receive(msg.ToBytes(), from)
		switch {
		case (reply != nil) != answered:
			t.Errorf("%s: got %v, %+v", kind, reply, x)
		case answered && (reply.Options.Status() == nil || reply.Options.Status().StatusCode != iana.StatusUseMulticast || reply.Options.OneIANA() != nil):
			t.Errorf("%s: got %s", kind, reply.Summary())
		}
	}
}

// TestDecline: an address of the range is not leased for a while; that of a node stays its
// own. What the machine was not given is NoBinding.
func TestDecline(t *testing.T) {
	w := newWorld(t)
	w.send(stray, message(dhcpv6.MessageTypeRequest, stray, toUs, ia(1)))
	reply, x := w.send(stray, message(dhcpv6.MessageTypeDecline, stray, toUs, ia(1, "fd00:28::100")))
	if reply == nil || x.Decision != dhcp.Declined || len(w.leases.declined) != 1 {
		t.Errorf("got %v, %+v, declined %v", reply, x, w.leases.declined)
	}
	again, _ := w.send(stray, message(dhcpv6.MessageTypeSolicit, stray, ia(1)))
	if a, _, _ := given(t, again); a != addr("fd00:28::101") {
		t.Errorf("got %s after the DECLINE", a)
	}
	if _, x = w.send(m1, message(dhcpv6.MessageTypeDecline, m1, toUs, ia(1, "fd00:28::10"))); x.Warning == "" {
		t.Errorf("the address of a node: got %+v, want a warning", x)
	}
	for _, kind := range []dhcpv6.MessageType{dhcpv6.MessageTypeDecline, dhcpv6.MessageTypeRelease} {
		reply, _ = w.send(stray, message(kind, stray, toUs, ia(1, "fd00:28::1ff")))
		if _, _, status := given(t, reply); status != iana.StatusNoBinding {
			t.Errorf("%s of a foreign address: got status %d", kind, status)
		}
	}
}

// TestReleaseOfAnotherClient: a RELEASE with another DUID than the lease's is NoBinding.
func TestReleaseOfAnotherClient(t *testing.T) {
	w := newWorld(t)
	w.send(stray, message(dhcpv6.MessageTypeRequest, stray, toUs, ia(1)))
	other := message(dhcpv6.MessageTypeRelease, m1, toUs, ia(1, "fd00:28::100"))
	for _, tt := range []struct {
		message *dhcpv6.Message
		status  iana.StatusCode
	}{
		{other, iana.StatusNoBinding},
		{message(dhcpv6.MessageTypeRelease, stray, toUs, ia(1, "fd00:28::100")), iana.StatusSuccess},
	} {
		reply, x := w.send(stray, tt.message)
		status := iana.StatusSuccess
		if reply.Options.OneIANA() != nil {
			_, _, status = given(t, reply)
		}
		if status != tt.status {
			t.Errorf("got status %d, want %d (%+v)", status, tt.status, x)
		}
	}
	if _, held := w.leases.byMAC[stray]; held {
		t.Error("its own RELEASE has no effect")
	}
}

// TestDisk: no answer when the lease cannot be stored; the client asks again.
func TestDisk(t *testing.T) {
	w := newWorld(t)
	w.leases.err = errors.New("disk full")
	reply, x := w.send(stray, message(dhcpv6.MessageTypeRequest, stray, toUs, ia(1)))
	if reply != nil || x.Decision != dhcp.NoAddress {
		t.Errorf("got %v, %+v, want silence", reply, x)
	}
	w.leases.err = pools.ErrRefused
	reply, _ = w.send(stray, message(dhcpv6.MessageTypeRequest, stray, toUs, ia(1)))
	if _, _, status := given(t, reply); status != iana.StatusNoAddrsAvail {
		t.Errorf("refused: got status %d", status)
	}
}
