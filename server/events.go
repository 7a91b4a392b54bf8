package server

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"time"

	"drover/dhcp"
	"drover/httpboot/script"
	"drover/internal/printable"
	"drover/kube/approve"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/machines"
	"drover/pools/resolve"
	"drover/state"
	"drover/tftp"
)

// certificate handles the result of a certificate request. The request for a
// kubelet's first certificate is a step of its boot. One that was denied or left alone
// is no step: any host could have made it.
func (s *Server) certificate(r approve.Request) {
	s.metrics.Certificate(r)
	if r.Serving || r.Node == "" {
		return
	}
	e := boots.Event{Step: boots.StepCSR}
	switch r.Result {
	case "approved":
		e.Detail = r.Name
	case "error":
		e.Error = r.Why
	default:
		return
	}
	if b, ok := s.Machines.LastBoot(r.Node); ok {
		s.step(b.MAC, e)
	}
}

// reached handles a new step of a boot. A machine that has fetched its boot script will
// join: the time until then counts for the question whether its previous kubelet is dead.
func (s *Server) reached(b boots.Record, step boots.StepTime) {
	s.metrics.Step(b, step)
	s.booted(b, step)
	s.passed(b)
	s.logStep(b, step)
	if s.traces != nil {
		s.traces.Step(b, step)
	}
	if step.Step != boots.StepScript || step.Error != "" {
		return
	}
	if p := s.Machines.Of(b.MAC).Plan; p != nil && p.Cluster != "" {
		s.clusters.Expect(p)
	}
}

// logStep writes a line for a step of a boot. It takes the ID of the record: the machine may
// have begun another boot meanwhile.
func (s *Server) logStep(b boots.Record, step boots.StepTime) {
	if !s.log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	attrs := []any{"boot", b.ID, "node", b.Node, "pool", b.Pool, "step", step.Step, "detail", printable.Line(step.Detail, maxDetail)}
	if step.Error != "" {
		attrs = append(attrs, "err", printable.Line(step.Error, maxDetail))
	}
	s.part("boot").Debug("step", attrs...)
}

// maxDetail bounds what a machine says of a step in the log, in bytes.
const maxDetail = 300

// exchange handles the result of a DHCP packet: it counts the packet, and notes the
// boot or the unknown machine that begins with a DISCOVER or a BOOTP request.
func (s *Server) exchange(e dhcp.Exchange) {
	s.metrics.Exchange(e)
	if (e.Type == "REQUEST" && e.Reply == "ACK" || e.Type != "INFORMATION-REQUEST" && e.Reply == "REPLY" && e.Decision == dhcp.Acknowledged) &&
		e.Plan != nil && e.Plan.CatchAll {
		s.Store.Boots.Lease(e.MAC)
	}
	if e.Type == "REQUEST" && e.Decision == dhcp.OtherServer && e.Plan != nil {
		s.Store.Boots.Left(e.MAC)
	}
	if !e.Begins() {
		return
	}
	if e.Netboot && e.Plan != nil {
		s.discovered(e)
	}
	// A packet that was dropped unread has no Plan, even that of a declared node.
	if e.Unknown() && (e.Plan != nil || e.Decision == dhcp.NotOurs) {
		s.Store.Unknowns.Seen(unknown(&e))
	}
}

// discovered begins the timeline of a boot at the DISCOVER of a machine's firmware. It
// does so also when a node gets no address, so that the operator sees the error. A
// machine that no node declares begins none then: any host can invent such machines, and
// the list of unknown machines has it.
func (s *Server) discovered(e dhcp.Exchange) {
	offer := boots.Event{Step: boots.StepOffer}
	switch {
	case e.Reply != "":
		if e.Address.IsValid() {
			offer.Detail = e.Address.String()
		}
	case e.Decision == dhcp.NoAddress && !e.Plan.CatchAll:
		offer.Error = "no address for it is free, or its lease could not be stored"
	default: // dropped, or for another server to answer
		return
	}
	s.Store.Boots.Discover(e.Plan, e.Time)
	s.step(e.MAC, offer)
	if e.Reply != "" {
		s.Store.NextBoots.Discover(e.Plan.Node)
		s.scripts.Forget(e.MAC)
	}
}

// unknown returns the record of a machine that no node declares, from its DISCOVER.
func unknown(e *dhcp.Exchange) pools.Unknown {
	u := pools.Unknown{
		MAC: e.MAC, First: e.Time, Last: e.Time, Count: 1, Firmware: e.Firmware, Class: e.Class,
		Relay: e.Giaddr, Circuit: e.Circuit, Remote: e.Remote,
	}
	if e.Plan != nil {
		u.Pool, u.Address = e.Plan.Pool, e.Address
	}
	return u
}

// inventory notes the hardware of an unknown machine.
func (s *Server) inventory(mac pools.MAC, v pools.Inventory) {
	if s.Store.Unknowns.Describe(mac, v) {
		s.log.Info("inventory of an unknown machine", "mac", mac, "hardware", v.String())
	}
}

// nodeReady notes that the Node of a machine that joined is Ready.
func (s *Server) nodeReady(p *resolve.Plan, _ time.Time) {
	s.step(p.MAC, boots.Event{Step: boots.StepReady})
}

// step adds a step that the server observed to the current boot of a machine.
func (s *Server) step(mac pools.MAC, e boots.Event) {
	if err := s.Store.Boots.Step(mac, "", e); err != nil {
		s.log.Debug("step without a boot", "mac", mac, "step", e.Step, "err", err)
	}
}

// unknowns lists and forgets the machines that no node declares, for the REST API.
type unknowns struct {
	directory *machines.Directory
	unknowns  *state.Unknowns
}

// List implements [api.Unknowns].
func (u unknowns) List() []pools.Unknown { return u.directory.Unknown() }

// Forget implements [api.Unknowns].
func (u unknowns) Forget(mac pools.MAC) bool { return u.unknowns.Forget(mac) }

// transfer handles the result of a TFTP transfer: it counts the transfer, and adds
// the step of the boot that the file stands for.
func (s *Server) transfer(t tftp.Transfer) {
	s.metrics.Transfer(t)
	s.prove(t)
	mac, step := clientOf(t), script.StepOf(t.File)
	if t.Err != nil || mac.IsZero() || step == "" {
		return
	}
	detail := t.File
	if step != boots.StepLoader {
		detail = fmt.Sprintf("%s, %.1f MB in %.2f s by TFTP", path.Base(t.File), float64(t.Bytes)/1e6, t.Took.Seconds())
	}
	s.step(mac, boots.Event{Step: step, Detail: detail})
}

// prove records that a machine has got the nonce of its boot by TFTP. With a single port anyone
// can send the ACKs in its name.
func (s *Server) prove(t tftp.Transfer) {
	f, ok := t.Opened.(*script.File)
	if ok && t.Err == nil && f.Begins.Nonce != "" && !s.tftp.SinglePort {
		s.Store.Boots.Prove(f.Begins.MAC, f.Begins.Nonce)
	}
}
