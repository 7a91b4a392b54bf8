package dhcptest

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"
)

// Recorded returns the messages of a recording of a real client, as e2e/record writes it: a
// DISCOVER and a REQUEST.
func Recorded(file string) (messages [][]byte, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq(string(text), "\n\n# ") {
		message, err := undump(part)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(message) > 0 {
			messages = append(messages, message)
		}
	}
	if len(messages) != 2 {
		return nil, fmt.Errorf("%s has %d messages, want a DISCOVER and a REQUEST", file, len(messages))
	}
	return messages, nil
}

// undump returns the bytes of a dump by hex.Dump. Other lines are left out.
func undump(text string) (b []byte, err error) {
	for line := range strings.Lines(text) {
		octets, _, ok := strings.Cut(line, "|")
		fields := strings.Fields(octets)
		if !ok || len(fields) < 2 {
			continue
		}
		row, err := hex.DecodeString(strings.Join(fields[1:], ""))
		if err != nil {
			return nil, err
		}
		b = append(b, row...)
	}
	return b, nil
}
