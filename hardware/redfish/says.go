package redfish

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"drover/hardware/bmc"
	"drover/internal/printable"
)

// Bounds of the messages of a processor in an error.
const (
	maxMessages = 3
	maxSaid     = 240 // bytes of all
)

// said is a message in an answer.
type said struct{ id, text, severity string }

// good reports whether the message reports success.
func (m said) good() bool {
	return strings.EqualFold(m.severity, "OK") || strings.HasSuffix(strings.ToLower(m.id), ".success")
}

// messages returns the messages of an answer: in the error object, or beside the properties that they
// are about, as a service adds them to an answer of success; and in the form before Redfish.
func messages(t Tree) (out []said) {
	add := func(list Tree) {
		all := list.List()
		if len(all) == 0 {
			all = []Tree{list} // one message instead of a list
		}
		for _, m := range all {
			one := said{
				id: cmp.Or(m.Get("MessageId").Text(), m.Get("MessageID").Text()), text: m.Get("Message").Text(),
				severity: cmp.Or(m.Get("MessageSeverity").Text(), m.Get("Severity").Text()),
			}
			if one.id != "" || one.text != "" {
				out = append(out, one)
			}
		}
	}
	add(t.Get("Messages"))
	for _, part := range []Tree{t.Get("error"), t, t.Get("Boot")} {
		fields, _ := part.v.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if strings.HasSuffix(name, "@Message.ExtendedInfo") {
				add(Tree{fields[name]})
			}
		}
	}
	if e := t.Get("error"); len(out) == 0 && (e.Get("code").Text() != "" || e.Get("message").Text() != "") {
		out = append(out, said{id: e.Get("code").Text(), text: e.Get("message").Text()})
	}
	return out
}

// says returns the messages of an answer for an error, without those of success.
func (s *Client) says(data []byte) string {
	var t Tree
	if decode(data, &t) != nil {
		return ""
	}
	var out []string
	for _, m := range messages(t) {
		text := m.id
		if m.text != "" && m.text != m.id {
			text = strings.TrimPrefix(m.id+": "+m.text, ": ")
		}
		if m.good() || slices.Contains(out, text) || len(out) == maxMessages {
			continue
		}
		out = append(out, text)
	}
	all := strings.Join(out, "; ")
	if s.Password != "" { // a processor may repeat the request
		all = strings.ReplaceAll(all, string(s.Password), s.Password.String())
	}
	return printable.Line(all, maxSaid)
}

// failed reports whether an answer of success contains an error: some services answer so
// to a command that they do not execute. Warnings, such as that a reset is needed, are none.
func failed(data []byte) bool {
	var t Tree
	return decode(data, &t) == nil && slices.ContainsFunc(messages(t), func(m said) bool { return strings.EqualFold(m.severity, "Critical") })
}

// status returns the error for an answer with an error status.
func (s *Client) status(a answer, method, path string) error {
	what := fmt.Sprintf("%s: %s %s: %s", s.Address, method, path, a.status)
	if m := s.says(a.body); m != "" {
		what += " (" + m + ")"
	}
	command := method != http.MethodGet
	switch {
	case a.code == http.StatusUnauthorized || a.code == http.StatusForbidden:
		return fmt.Errorf("%w: %s", bmc.ErrRefused, what)
	case a.code == http.StatusNotFound || a.code == http.StatusMethodNotAllowed:
		if command {
			return fmt.Errorf("%w: %w: %s", bmc.ErrRejected, errMissing, what)
		}
		return fmt.Errorf("%w: %w: %s", bmc.ErrUnreadable, errMissing, what)
	case command && a.code == http.StatusInternalServerError:
		return fmt.Errorf("%w: %w: %s", bmc.ErrRejected, errUncertain, what)
	case a.code >= 400 && a.code < 500 && a.code != http.StatusTooManyRequests || command && a.code == http.StatusNotImplemented:
		return fmt.Errorf("%w: %s", bmc.ErrRejected, what)
	}
	return fmt.Errorf("%w: %s", bmc.ErrUnreachable, what)
}
