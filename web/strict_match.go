package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"drover/pools"
)

// parseMatch reads what a node is known by beside its MACs.
func parseMatch(v any) (m pools.Match, err error) {
	object, ok := v.(map[string]any)
	if !ok {
		return m, fmt.Errorf(`want an object such as {"circuitID": "eth7"}, not %s`, kind(v))
	}
	texts := map[string]*string{
		"clientID": &m.ClientID, "circuitID": &m.CircuitID, "remoteID": &m.RemoteID,
		"subscriberID": &m.SubscriberID, "class": &m.Class, "userClass": &m.UserClass,
	}
	var errs []error
	for _, key := range sortedKeys(object) {
		v := object[key]
		switch into := texts[key]; {
		case v == nil: // null is as good as absent
			continue
		case into != nil:
			*into, err = text(v)
		case key == "firmware":
			var s string
			if s, err = text(v); err == nil {
				m.Firmware, err = pools.ParseFirmware(s)
			}
		case key == "arch":
			err = parseArch(v, &m.Arch)
		default:
			names := append(sortedKeys(texts), "firmware", "arch")
			err = fmt.Errorf("there is no such field (there are %s)", strings.Join(names, ", "))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%q: %w", key, err))
		}
	}
	return m, errors.Join(errs...)
}

// parseArch reads an architecture type, as a number or as text.
func parseArch(v any, a *pools.Arch) error {
	if n, ok := v.(json.Number); ok {
		v = n.String()
	}
	s, err := text(v)
	if err != nil {
		return fmt.Errorf("want a number, not %s", kind(v))
	}
	return a.UnmarshalText([]byte(s))
}

// parseOptions reads DHCP options: to each a string, or a list of them.
func parseOptions(v any) (map[string]pools.Strings, error) {
	object, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf(`want an object such as {"ntp-server": ["10.28.0.1"]}, not %s`, kind(v))
	}
	options := make(map[string]pools.Strings, len(object))
	var errs []error
	for _, key := range sortedKeys(object) {
		v := object[key]
		if v == nil {
			continue
		}
		if s, err := text(v); err == nil {
			v = []any{s}
		}
		if err := each(v, func(s string) error { options[key] = append(options[key], s); return nil }); err != nil {
			errs = append(errs, fmt.Errorf("%q: %w", key, err))
		}
	}
	return options, errors.Join(errs...)
}
