package watch

import (
	"fmt"
	"time"

	"drover/e2e/lab"
	"drover/pools/boots"
	"drover/pools/resolve"
)

// Machine is a machine with its plan and its progress. Only its MACs connect it to the farm.
type Machine struct {
	lab.Machine
	What string        // description for the output
	Plan *resolve.Plan // what the farm says

	guest *lab.Guest
	boot  boots.Record // its timeline, as drover tells it
	shown int          // how many of its steps were printed
	state string       // why it is not done
	done  bool         // Ready in its own cluster, and its pod runs
}

// MAC is the address that the machine boots with.
func (m *Machine) MAC() string {
	for _, nic := range m.NICs {
		if nic.Boot {
			return nic.MAC
		}
	}
	return ""
}

// Console is the file of the machine's serial console, once it was powered on.
func (m *Machine) Console() string { return m.guest.Console }

// joined reports whether the machine says that it has joined its cluster. Before
// that there is nothing to see there, and each look takes a guest's time.
func (m *Machine) joined() bool {
	_, ok := m.boot.Reached(boots.StepJoined)
	return ok
}

// at returns when the machine's boot came to a step.
func (m *Machine) at(step boots.Step) string {
	s, ok := m.boot.Reached(step)
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.1f", s.Time.Sub(m.boot.Started).Seconds())
}

// PowerOn powers on a machine whose plan is known, and follows it from now on.
func (w *Watch) PowerOn(m *Machine) error {
	switch {
	case m.Plan == nil:
		return fmt.Errorf("the farm has no place for %s: no node has this MAC, and there is no catch-all pool", m.MAC())
	case m.Plan.Cluster == "":
		return fmt.Errorf("the farm lets %s join no cluster", m.MAC())
	}
	if err := w.start(m); err != nil {
		return err
	}
	w.Machines = append(w.Machines, m)
	w.Log.Say("power on %s (%s): %s is to become %s in %s", m.Name, m.What, m.MAC(), m.Plan.Node, m.Plan.Cluster)
	return nil
}

func (w *Watch) start(m *Machine) (err error) {
	m.done, m.boot.Started = false, time.Now()
	m.guest, err = w.Rack.PowerOn(m.Machine)
	return err
}
