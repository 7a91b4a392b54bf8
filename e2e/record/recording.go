package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/e2e/lab/pcap"
)

// recording has the messages of a client.
type recording struct {
	client, version, how string
	messages             [][]byte // DISCOVER, and REQUEST: the payloads of the UDP datagrams
}

// text returns the recording as a file: comments and hex dumps.
func (r recording) text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n# %s\n# %s\n", r.client, r.version, r.how)
	for i, m := range r.messages {
		fmt.Fprintf(&b, "\n# %s\n%s", [...]string{"DISCOVER", "REQUEST"}[i], hex.Dump(m))
	}
	return b.Bytes()
}

// await reads the capture, while it grows, until it holds a DISCOVER that is
// wanted and the REQUEST that follows it.
func await(ctx context.Context, file string, wanted func(*dhcpv4.DHCPv4) bool) ([][]byte, error) {
	for {
		messages, err := search(file, wanted)
		if err != nil || len(messages) == 2 {
			return messages, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("got %d of the 2 messages: %w", len(messages), ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// search returns the wanted DISCOVER and its REQUEST, as far as they are in the
// capture.
func search(file string, wanted func(*dhcpv4.DHCPv4) bool) ([][]byte, error) {
	var messages [][]byte
	for frame, err := range pcap.Frames(file) {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return messages, nil // so far
		} else if err != nil {
			return nil, err
		}
		p, ok := pcap.Parse(frame)
		if !ok || p.TCP || p.Dst.Port() != 67 {
			continue
		}
		d, err := dhcpv4.FromBytes(p.Payload)
		if err != nil || d.OpCode != dhcpv4.OpcodeBootRequest || !wanted(d) {
			continue
		}
		want := [...]dhcpv4.MessageType{dhcpv4.MessageTypeDiscover, dhcpv4.MessageTypeRequest}
		if len(messages) < len(want) && d.MessageType() == want[len(messages)] {
			messages = append(messages, bytes.Clone(p.Payload))
		}
	}
	return messages, nil
}
