package httpboot

import (
	"bytes"
	"strconv"
	"strings"
)

// emptyLines removes the empty lines before requests from the bytes of a connection.
// Some clients send one after a body, or at the begin, and a server should ignore it (RFC
// 9112, section 2.2); net/http refuses it. The zero value is at the begin of a
// connection.
//
// It follows the requests by their lines and by Content-Length. It stops at a request that
// it cannot follow, from which on net/http gets all bytes as they came.
type emptyLines struct {
	at      place
	line    []byte // the begin of a line whose rest has not come yet
	skipped int    // bytes before this request
	body    int64  // of this request, without those that came
}

// place is a place in the bytes of a connection.
type place uint8

const (
	beforeRequest place = iota
	inHeader
	inBody
	lost // a request that cannot be followed
)

const (
	maxEmptyLines = 8  // bytes before a request
	maxKeptLine   = 64 // of a line that came in pieces, in bytes: enough for Content-Length
)

// remove removes empty lines from the next bytes of the connection, in place. It returns
// the number of the remaining ones.
func (e *emptyLines) remove(b []byte) int {
	kept := 0
	for i := 0; i < len(b); {
		n := len(b) - i
		switch e.at {
		case beforeRequest:
			if c := b[i]; (c == '\r' || c == '\n') && e.skipped < maxEmptyLines {
				e.skipped++
				i++
				continue
			}
			e.at, e.skipped, e.body = inHeader, 0, 0
			continue
		case inHeader:
			n = e.header(b[i:])
		case inBody:
			n = int(min(int64(n), e.body))
			if e.body -= int64(n); e.body == 0 {
				e.at = beforeRequest
			}
		}
		if kept < i {
			copy(b[kept:], b[i:i+n])
		}
		kept, i = kept+n, i+n
	}
	return kept
}

// header reads a line of a header, or the part of it that came, and returns its length.
func (e *emptyLines) header(b []byte) int {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		e.line = append(e.line, b[:min(len(b), maxKeptLine-len(e.line))]...)
		return len(b)
	}
	line := b[:end]
	if len(e.line) > 0 {
		line = append(e.line, line[:min(len(line), maxKeptLine-len(e.line))]...)
		e.line = e.line[:0]
	}
	e.read(bytes.TrimSuffix(line, []byte{'\r'}))
	return end + 1
}

// read reads a line of a header.
func (e *emptyLines) read(line []byte) {
	if len(line) == 0 { // the end of the header
		switch {
		case e.body < 0:
			e.at = lost
		case e.body > 0:
			e.at = inBody
		default:
			e.at = beforeRequest
		}
		return
	}
	name, value, _ := bytes.Cut(line, []byte{':'})
	switch {
	case bytes.EqualFold(name, []byte("Content-Length")):
		n, err := strconv.ParseUint(strings.TrimSpace(string(value)), 10, 62)
		if err != nil || len(line) >= maxKeptLine || e.body != 0 {
			e.body = -1
			return
		}
		e.body = int64(n)
	case bytes.EqualFold(name, []byte("Transfer-Encoding")), bytes.EqualFold(name, []byte("Upgrade")):
		e.body = -1
	}
}
