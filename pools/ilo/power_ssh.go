package ilo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Manager is a [Runner] that connects when it is first needed, and anew when the
// connection has broken: to wait for nodes takes minutes. A command that only
// asks is then repeated; one that switches is not, since nobody knows whether it
// was heard. Close it.
type Manager struct {
	Login Login

	console *Console
	refused error
	down    error     // why it could not be reached
	tried   time.Time // when that was
}

// downFor is how long a manager that could not be reached is not tried again: to
// find that out takes half a minute, and there may be forty nodes to ask for.
const downFor = 4 * time.Second

// Run does a command. After a refused login none is tried again.
func (m *Manager) Run(ctx context.Context, command string) (string, error) {
	for again := strings.HasPrefix(command, "show "); ; again = false {
		if m.refused != nil {
			return "", m.refused
		}
		if m.down != nil && time.Since(m.tried) < downFor {
			return "", m.down
		}
		if m.console == nil {
			console, err := Dial(ctx, m.Login)
			if err != nil {
				if errors.Is(err, ErrRefused) || errors.Is(err, ErrHostKey) {
					m.refused = err
				}
				m.down, m.tried = err, time.Now()
				return "", err
			}
			m.console, m.down = console, nil
		}
		text, err := m.console.Run(ctx, command)
		if !errors.Is(err, ErrUnreachable) {
			return text, err
		}
		m.Close()
		if !again {
			return "", err
		}
	}
}

// Close ends the connection.
func (m *Manager) Close() error {
	if m.console == nil {
		return nil
	}
	err := m.console.Close()
	m.console = nil
	return err
}

// SlotPower is the power of a node over the command line of its chassis.
type SlotPower struct {
	Runner Runner
	Slot   Slot
}

// State asks "show node power".
func (p SlotPower) State(ctx context.Context) (State, error) {
	text, err := p.Runner.Run(ctx, "show node power "+p.Slot.String())
	if err != nil {
		return Unknown, err
	}
	return parsePower(text, p.Slot)
}

// parsePower reads the answer to "show node power" for one node.
func parsePower(text string, slot Slot) (State, error) {
	if len(text) > maxText {
		return Unknown, fmt.Errorf("%w: %d bytes for a power state", ErrUnreadable, len(text))
	}
	lines := clean(text)
	q := parser{nodes: map[Slot]*found{}}
	f := q.at(slot)
	q.blocks(lines)
	if f.node.Power == Unknown {
		if err := refusal(lines); err != nil {
			return Unknown, err
		}
	}
	return f.node.Power, nil
}

// On is "set node power on".
func (p SlotPower) On(ctx context.Context) error { return p.set(ctx, "power on") }

// Off is "set node power off force": without force the manager asks the
// operating system, which may not listen.
func (p SlotPower) Off(ctx context.Context) error { return p.set(ctx, "power off force") }

// PXEOnce is "set node bootonce pxe", which says what it has set.
func (p SlotPower) PXEOnce(ctx context.Context) error {
	text, err := p.Runner.Run(ctx, "set node bootonce pxe "+p.Slot.String())
	if err != nil {
		return err
	}
	lines := clean(text)
	if err := refusal(lines); err != nil {
		return err
	}
	for _, l := range lines {
		if strings.Contains(lower(l.String()), "bootonce: pxe") {
			return nil
		}
	}
	return fmt.Errorf("%w: %s: the chassis does not say that it boots from the network once", ErrUnreadable, p.Slot)
}

func (p SlotPower) set(ctx context.Context, what string) error {
	text, err := p.Runner.Run(ctx, "set node "+what+" "+p.Slot.String())
	if err != nil {
		return err
	}
	return refusal(clean(text))
}
