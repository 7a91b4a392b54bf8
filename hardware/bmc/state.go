package bmc

import (
	"strings"

	"drover/pools"
)

// State is a power state.
type State string

// The power states. Any other word of a processor is [Unknown]. Waiting for off does not
// end with it.
const (
	On          State = "on"
	Off         State = "off"
	PoweringOn  State = "powering-on"
	PoweringOff State = "powering-off"
	Unavailable State = "unavailable" // seen while a cartridge starts
	Unknown     State = "unknown"
)

// ParseState reads a power state as a chassis or Redfish writes it. For other words it
// returns [Unknown] and false.
func ParseState(word string) (s State, ok bool) {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "on":
		return On, true
	case "off":
		return Off, true
	case "poweringon":
		return PoweringOn, true
	case "poweringoff":
		return PoweringOff, true
	case "unavailable":
		return Unavailable, true
	}
	return Unknown, false
}

// NoValue reports whether a field is empty or a placeholder such as N/A.
func NoValue(s string) bool {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "", "n/a", "na", "none", "unknown", "unavailable", "not available":
		return true
	}
	return strings.Trim(s, "-") == ""
}

// UnsetMAC reports whether a card's MAC was never written: it is all zero, or all ones
// as in empty flash memory.
func UnsetMAC(s string) bool {
	digits := strings.NewReplacer(":", "", "-", "", ".", "").Replace(strings.ToLower(strings.TrimSpace(s)))
	return digits == "000000000000" || digits == "ffffffffffff"
}

// CardMAC reads the MAC of a network card; ok is false for a card without one.
func CardMAC(s string) (mac pools.MAC, ok bool, err error) {
	if NoValue(s) || UnsetMAC(s) {
		return mac, false, nil
	}
	mac, err = pools.ParseMAC(s)
	return mac, err == nil, err
}
