package tftp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The kinds of packets: RFC 1350 section 5, RFC 2347.
const (
	opRead  = 1
	opWrite = 2
	opData  = 3
	opAck   = 4
	opError = 5
	opOack  = 6
)

// headerSize is the length of a DATA packet without its content, in bytes.
const headerSize = 4

// code is the number in an ERROR packet: RFC 1350 appendix, RFC 2347.
type code uint16

const (
	codeOther    code = 0 // see the text
	codeNotFound code = 1
	codeAccess   code = 2
	codeIllegal  code = 4
	codeOption   code = 8
)

// refusal is an error with which the server ends a transfer. Its text is public, so it
// contains no paths; err is for the log.
type refusal struct {
	code code
	text string
	err  error
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// refuse returns a refusal with the same text for client and log.
func refuse(c code, format string, args ...any) *refusal {
	err := fmt.Errorf(format, args...)
	return &refusal{c, err.Error(), err}
}

// packet returns the ERROR packet for the client. A text that makes it longer than most
// bytes is cut off.
func (r *refusal) packet(most int) []byte {
	b := binary.BigEndian.AppendUint16(nil, opError)
	b = binary.BigEndian.AppendUint16(b, uint16(r.code))
	return append(append(b, r.text[:max(min(len(r.text), most-headerSize-1), 0)]...), 0)
}

// request is the content of an RRQ or WRQ: RFC 1350 section 5, RFC 2347.
type request struct {
	write   bool
	file    string
	mode    string
	options []option
}

// option is a name with its value, both as the client spells them.
type option struct{ name, value string }

// has reports whether the request has an option.
func (r *request) has(name string) bool {
	return slices.ContainsFunc(r.options, func(o option) bool { return strings.EqualFold(o.name, name) })
}

// isRequest reports whether a packet is an RRQ or WRQ.
func isRequest(b []byte) bool {
	return len(b) >= 2 && (binary.BigEndian.Uint16(b) == opRead || binary.BigEndian.Uint16(b) == opWrite)
}

// parseRequest reads an RRQ or WRQ. Zeros after the last field are padding of
// firmware that sends its whole buffer.
func parseRequest(b []byte) (request, error) {
	if !isRequest(b) {
		return request{}, errors.New("not a request")
	}
	r := request{write: b[1] == opWrite}
	fields := bytes.Split(b[2:], []byte{0})
	if len(fields) < 3 {
		return request{}, errors.New("request without file name and mode")
	}
	fields = fields[:len(fields)-1] // what follows the last zero
	r.file, r.mode = string(fields[0]), string(fields[1])
	for f := fields[2:]; len(f) >= 2 && len(f[0]) > 0; f = f[2:] {
		r.options = append(r.options, option{string(f[0]), string(f[1])})
	}
	return r, nil
}

// oack returns the packet that acknowledges options.
func oack(options []option) []byte {
	b := binary.BigEndian.AppendUint16(nil, opOack)
	for _, o := range options {
		b = append(append(b, o.name...), 0)
		b = append(append(b, o.value...), 0)
	}
	return b
}

// clientError is an ERROR packet with which the client ended the transfer.
type clientError struct {
	code code
	text string
}

func (e *clientError) Error() string {
	return fmt.Sprintf("client stopped with error %d %q", e.code, e.text)
}

// maxErrorText limits what a client can write into the log, in bytes.
const maxErrorText = 128

// parseError reads an ERROR packet, which may be cut off.
func parseError(b []byte) *clientError {
	e := &clientError{}
	if len(b) >= 4 {
		e.code = code(binary.BigEndian.Uint16(b[2:]))
		text, _, _ := bytes.Cut(b[4:], []byte{0})
		e.text = string(text[:min(len(text), maxErrorText)])
	}
	return e
}

// Sizes of RFC 1350, 2348 and 7440, and drover's own limits.
const (
	defaultBlock = 512   // bytes
	minBlock     = 8     // bytes
	maxBlock     = 65464 // bytes
	maxWindow    = 64    // blocks; UEFI asks for 4
	maxPacket    = 65507 // bytes of UDP payload in IPv4
	// maxWindowBytes limits the part of a file that a transfer holds in memory.
	maxWindowBytes = 256 << 10
	// maxTimeout is the longest wait before sending again that a client gets.
	// RFC 2349 lets it ask for 255 s, which would keep the transfer of a dead
	// client for half an hour.
	maxTimeout = 30 * time.Second
)

// options are the options that client and server have negotiated.
type options struct {
	block   int           // bytes
	window  int           // blocks
	timeout time.Duration // 0: the server's choice
}

// negotiate answers the options of a request (RFC 2347). It returns the options in force,
// and those to acknowledge in the client's spelling, since some clients compare names
// case-sensitively. Unknown options and timeouts that are too long are left out. Sizes
// that are larger than most are reduced.
func negotiate(asked []option, size int64, most options) (options, []option, error) {
	t := options{block: defaultBlock, window: 1}
	var acked []option
	seen := map[string]bool{}
	for _, o := range asked {
		name := strings.ToLower(o.name)
		if seen[name] {
			continue
		}
		seen[name] = true
		value, err := t.set(name, o.value, size, most)
		if err != nil {
			return t, nil, refuse(codeOption, "option %s: %w", name, err)
		}
		if value != "" {
			acked = append(acked, option{o.name, value})
		}
	}
	if most := max(1, maxWindowBytes/(t.block+headerSize)); t.window > most {
		t.window = most
		for i := range acked {
			if strings.EqualFold(acked[i].name, "windowsize") {
				acked[i].value = strconv.Itoa(most)
			}
		}
	}
	return t, acked, nil
}

// set sets one option and returns the value to acknowledge; "" if the option is left
// out.
func (t *options) set(name, value string, size int64, most options) (string, error) {
	switch name {
	case "tsize": // RFC 2349; the value of a read request means nothing
		return strconv.FormatInt(size, 10), nil
	case "blksize": // RFC 2348
		n, err := number(value, minBlock)
		t.block = min(n, maxBlock, max(most.block, minBlock))
		return strconv.Itoa(t.block), err
	case "windowsize": // RFC 7440
		n, err := number(value, 1)
		t.window = min(n, maxWindow, most.window)
		return strconv.Itoa(t.window), err
	case "timeout": // RFC 2349
		n, err := number(value, 1)
		if wait := time.Duration(n) * time.Second; wait <= maxTimeout {
			t.timeout = wait
			return strconv.Itoa(n), err
		}
		return "", err
	}
	return "", nil
}

// number reads a decimal number of at least low. The limits of the RFCs are 65464 and
// 65535; a client that requests more gets the server's maximum.
func number(s string, low int) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil || int(n) < low {
		return 0, fmt.Errorf("value %q is no number from %d", s, low)
	}
	return int(n), nil
}
