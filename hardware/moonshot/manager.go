package moonshot

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"drover/hardware/bmc"
	"drover/hardware/redfish"
	"drover/hardware/sshcli"
	"drover/pools"
)

// Manager is a client of the manager of a chassis, over SSH or REST. Over SSH it
// connects when the first command is sent, and again after a broken connection. A
// command that only reads is then repeated. A command that switches is not, because the
// manager may have executed it. A Manager is for one goroutine. Close it after use.
type Manager struct {
	login bmc.Login
	rest  *redfish.Client // nil: SSH

	console *sshcli.Console
	refused error     // of the login; no other login is sent after it
	down    error     // of the last attempt to connect; nil: it was successful
	tried   time.Time // of the last attempt
}

// downFor is the time after a failed attempt to connect during which no other is made:
// an attempt takes half a minute, and there may be forty nodes to read.
const downFor = 4 * time.Second

// Open returns a manager. It does not connect.
func Open(l bmc.Login, via pools.Via) (*Manager, error) {
	m := &Manager{login: l}
	if via == pools.ViaREST {
		var err error
		m.rest, err = redfish.Open(l)
		return m, err
	}
	if _, _, err := net.SplitHostPort(l.Address); err != nil {
		m.login.Address = net.JoinHostPort(strings.Trim(l.Address, "[]"), "22")
	}
	return m, nil
}

// Close ends the connection.
func (m *Manager) Close() {
	if m.rest != nil {
		m.rest.Close()
	}
	if m.console != nil {
		_ = m.console.Close() // it may be broken
		m.console = nil
	}
}

// Driver returns the power driver of a slot.
func (m *Manager) Driver(s pools.Slot) bmc.Driver {
	if m.rest != nil {
		return &redfish.System{Client: m.rest, Path: restSystems + "/" + strings.ToUpper(s.String())}
	}
	return slotDriver{m, s}
}

// Slots returns the slots that have a node.
func (m *Manager) Slots(ctx context.Context) ([]pools.Slot, error) {
	if m.rest != nil {
		return slotsREST(ctx, m.rest)
	}
	const command = "show node list"
	text, err := m.run(ctx, command)
	if err != nil {
		return nil, err
	}
	return parseSlots(command, text)
}

// Inventory reads the content of the chassis. Over SSH that is one connection, one login
// and two commands. After a broken connection it starts once more from the beginning, and
// uses nothing of the partial output. The transcript is the output of the commands, over
// SSH only. It is also returned when it is not readable.
func (m *Manager) Inventory(ctx context.Context) (inv *Inventory, transcript string, err error) {
	err = bmc.ReadInventory(ctx, m.login, func(ctx context.Context) (err error) {
		if m.rest != nil {
			inv, err = readREST(ctx, m.rest)
			return err
		}
		inv, transcript, err = m.readSSH(ctx)
		return err
	})
	return inv, transcript, err
}

func (m *Manager) readSSH(ctx context.Context) (inv *Inventory, transcript string, err error) {
	for again := true; ; again = false {
		transcript, err = m.transcript(ctx)
		if _, broken := errors.AsType[*sshcli.BrokenError](err); !again || !broken || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return nil, transcript, err
	}
	if inv, err = Parse(transcript); err != nil {
		return nil, transcript, fmt.Errorf("%s: %w", m.login.Address, err)
	}
	return inv, transcript, nil
}

func (m *Manager) transcript(ctx context.Context) (string, error) {
	console, err := sshcli.Dial(ctx, m.login)
	if err != nil {
		return "", err
	}
	defer console.Close()
	var b strings.Builder
	for _, command := range []string{"show node list", "show node macaddr all"} {
		text, err := console.Run(ctx, command)
		if err != nil {
			return b.String(), err
		}
		fmt.Fprintf(&b, "hpiLO-> %s\n%s\n", command, text)
	}
	return b.String(), nil
}

// run executes a command over SSH. After a refused login it does not log in again.
func (m *Manager) run(ctx context.Context, command string) (string, error) {
	for again := strings.HasPrefix(command, "show "); ; again = false {
		if err := m.connect(ctx); err != nil {
			return "", err
		}
		text, err := m.console.Run(ctx, command)
		if !errors.Is(err, bmc.ErrUnreachable) {
			return text, err
		}
		m.Close()
		if !again {
			return "", err
		}
	}
}

// connect connects and logs in, unless there is a connection.
func (m *Manager) connect(ctx context.Context) (err error) {
	switch {
	case m.refused != nil:
		return m.refused
	case m.down != nil && time.Since(m.tried) < downFor:
		return m.down
	case m.console != nil:
		return nil
	}
	m.console, err = sshcli.Dial(ctx, m.login)
	if errors.Is(err, bmc.ErrRefused) || errors.Is(err, bmc.ErrHostKey) {
		m.refused = err
	}
	m.down, m.tried = err, time.Now()
	return err
}
