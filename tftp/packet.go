package tftp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// headerSize is what stands before the content of a DATA packet.
const headerSize = 4

// code is the number in an ERROR packet: RFC 1350 appendix, RFC 2347.
type code uint16

const (
	codeOther    code = 0 // the text says it
	codeNotFound code = 1
	codeAccess   code = 2
	codeIllegal  code = 4
	codeOption   code = 8
)

// refusal is an error that ends a transfer from our side. What is told goes to
// anybody, so it names no paths; Err is for the log.
type refusal struct {
	code code
	told string
	err  error
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// refuse makes a refusal whose log says what is told.
func refuse(c code, format string, args ...any) *refusal {
	err := fmt.Errorf(format, args...)
	return &refusal{c, err.Error(), err}
}

// packet is the ERROR packet that tells the client.
func (r *refusal) packet() []byte {
	b := binary.BigEndian.AppendUint16(nil, opError)
	b = binary.BigEndian.AppendUint16(b, uint16(r.code))
	return append(append(b, r.told...), 0)
}

// request is what a client asks for: RFC 1350 section 5, RFC 2347.
type request struct {
	write   bool
	file    string
	mode    string
	options []option
}

// option is a name with its value, both as the client spells them.
type option struct{ name, value string }

// asks tells whether the client asks for an option.
func (r *request) asks(name string) bool {
	return slices.ContainsFunc(r.options, func(o option) bool { return strings.EqualFold(o.name, name) })
}

// parseRequest reads an RRQ or WRQ. Zeros after the last field are padding of
// firmware that sends its whole buffer.
func parseRequest(b []byte) (request, error) {
	if len(b) < 2 || binary.BigEndian.Uint16(b) != opRead && binary.BigEndian.Uint16(b) != opWrite {
		return request{}, errors.New("no request")
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

// oack is the packet that tells which options are in force.
func oack(options []option) []byte {
	b := binary.BigEndian.AppendUint16(nil, opOack)
	for _, o := range options {
		b = append(append(b, o.name...), 0)
		b = append(append(b, o.value...), 0)
	}
	return b
}

// clientError is an ERROR packet that the client ended the transfer with.
type clientError struct {
	code code
	text string
}

func (e *clientError) Error() string {
	return fmt.Sprintf("client stopped with error %d %q", e.code, e.text)
}

// maxErrorText bounds what a client writes into our log.
const maxErrorText = 128

// parseError reads an ERROR packet, however short it is.
func parseError(b []byte) *clientError {
	e := &clientError{}
	if len(b) >= 4 {
		e.code = code(binary.BigEndian.Uint16(b[2:]))
		text, _, _ := bytes.Cut(b[4:], []byte{0})
		e.text = string(text[:min(len(text), maxErrorText)])
	}
	return e
}
