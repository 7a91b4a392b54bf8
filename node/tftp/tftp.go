// Package tftp reads a file by TFTP, for a node whose way to the server is closed to HTTP.
//
// [Open] requests the file and returns a [Reader], which knows its size and reads it from
// begin to end. It asks for large blocks, windows and the size (RFC 2347, 2348, 2349 and
// 7440): with a block at a time, a round trip of 1 ms would mean 1.5 MB/s. TFTP cannot
// begin in the middle of a file: after an error everything comes anew.
//
// Nothing here is secret or checked: the caller compares the digest.
package tftp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"drover/internal/printable"
)

// The kinds of packets: RFC 1350 section 5, RFC 2347.
const (
	opRead  = 1
	opData  = 3
	opAck   = 4
	opError = 5
	opOack  = 6
)

const (
	headerSize = 4    // of a DATA packet, in bytes
	blockSize  = 1468 // bytes: a packet fills an Ethernet frame
	// windowSize is the number of blocks to an ACK. They fit in the receive buffer
	// that Linux gives a socket (net.core.rmem_default).
	windowSize  = 32
	defaultSize = 512 // of a block, from a server that knows no options

	firstWait = time.Second // before a packet is sent again; it doubles
	mostWait  = 5 * time.Second
	mostOpen  = 5 * time.Second // for the first answer
)

// Reader reads one file.
type Reader struct {
	Size int64 // of the file, in bytes

	conn   *net.UDPConn
	server netip.AddrPort // of the transfer; the port of the request before the first answer
	first  bool           // no answer has come
	stall  time.Duration
	stop   func() bool // ends the watch on the context

	block  int
	window int

	last    []byte // the packet that the server lacks if nothing comes
	wanted  uint16 // number of the next block; rolls over to 0
	inOrder int    // blocks since the last ACK
	behind  bool   // a block was lost, and the ACK that says so is sent
	ended   bool   // the last block came
	got     int64  // bytes
	packet  []byte
	rest    []byte // of the packet, not read yet
	err     error  // for the next Read
}

// Open requests a file of the server at addr, a host or an address with its port. stall is
// the time without a packet after which the transfer has failed, 5 s at most for the first
// one. When ctx ends, so does
// the transfer, with its cause.
func Open(ctx context.Context, addr, name string, stall time.Duration) (*Reader, error) {
	return OpenFrom(ctx, nil, addr, name, stall)
}

// OpenFrom is [Open] from an address of this host; nil: the one that the kernel chooses.
func OpenFrom(ctx context.Context, local *net.UDPAddr, addr, name string, stall time.Duration) (*Reader, error) {
	resolved, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return nil, err
	}
	conn, err := net.ListenUDP("udp", local)
	if err != nil {
		return nil, err
	}
	server := resolved.AddrPort()
	r := &Reader{
		Size: -1, conn: conn, server: netip.AddrPortFrom(server.Addr().Unmap(), server.Port()), first: true, stall: stall,
		block: defaultSize, window: 1, wanted: 1, packet: make([]byte, headerSize+blockSize),
	}
	r.stop = context.AfterFunc(ctx, func() { conn.Close() })
	r.last = request(name)
	err = r.send()
	if err == nil {
		err = r.open()
	}
	if err != nil {
		r.Close()
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	return r, nil
}

// request returns an RRQ.
func request(name string) []byte {
	b := []byte{0, opRead}
	for _, field := range []string{
		name, "octet", "tsize", "0", "blksize", strconv.Itoa(blockSize), "windowsize", strconv.Itoa(windowSize),
	} {
		b = append(append(b, field...), 0)
	}
	return b
}

// open waits for the OACK, and acknowledges it.
func (r *Reader) open() error {
	kind, body, err := r.receive(min(r.stall, mostOpen))
	if err != nil {
		return err
	}
	if kind != opOack {
		return errors.New("server knows no options, so the size of the file is unknown")
	}
	if err := r.options(body); err != nil {
		return err
	}
	return r.ack()
}

// options reads the content of an OACK: the server may reduce what was asked for.
func (r *Reader) options(body []byte) error {
	fields := strings.Split(strings.TrimSuffix(string(body), "\x00"), "\x00")
	for ; len(fields) >= 2; fields = fields[2:] {
		most := int64(0)
		switch name := strings.ToLower(fields[0]); name {
		case "tsize":
			most = 1 << 40
		case "blksize":
			most = blockSize
		case "windowsize":
			most = windowSize
		default:
			return fmt.Errorf("server answers an option that was not asked for: %q", printable.Text(name))
		}
		n, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil || n < 0 || n > most {
			return fmt.Errorf("server answers %s=%q, want a number up to %d", fields[0], printable.Text(fields[1]), most)
		}
		r.set(strings.ToLower(fields[0]), n)
	}
	switch {
	case r.Size < 0:
		return errors.New("server does not say how long the file is")
	case r.block < 8 || r.window < 1: // RFC 2348, RFC 7440
		return fmt.Errorf("server answers a block of %d bytes and a window of %d", r.block, r.window)
	}
	return nil
}

func (r *Reader) set(option string, n int64) {
	switch option {
	case "tsize":
		r.Size = n
	case "blksize":
		r.block = int(n)
	case "windowsize":
		r.window = int(n)
	}
}

// Read reads at most a window, so that a caller sees the progress of a slow transfer.
func (r *Reader) Read(b []byte) (n int, err error) {
	for n < len(b) && r.err == nil {
		if len(r.rest) == 0 {
			if n > 0 && r.inOrder == 0 {
				break
			}
			r.err = r.next()
		}
		m := copy(b[n:], r.rest)
		n, r.rest = n+m, r.rest[m:]
	}
	if n > 0 || len(b) == 0 {
		return n, nil
	}
	return 0, r.err
}

// next waits for the next block. The error is io.EOF after the last one.
func (r *Reader) next() error {
	if r.ended {
		if r.got != r.Size {
			return fmt.Errorf("the file ended after %d bytes, its size was to be %d", r.got, r.Size)
		}
		return io.EOF
	}
	for {
		kind, body, err := r.receive(r.stall)
		if err != nil {
			return err
		}
		if kind != opData || len(body) < 2 {
			continue // the OACK again
		}
		number, content := binary.BigEndian.Uint16(body), body[2:]
		switch {
		case number == r.wanted:
			return r.accept(content)
		case number-r.wanted < 1<<15 && !r.behind:
			// A block was lost: the ACK of the one before moves the window there
			// (RFC 7440, section 4). The rest of this window is of no use.
			r.behind = true
			if err := r.ack(); err != nil {
				return err
			}
		}
	}
}

// accept takes the content of the next block.
func (r *Reader) accept(content []byte) error {
	r.rest, r.behind = content, false
	r.got += int64(len(content))
	r.wanted++
	r.inOrder++
	r.ended = len(content) < r.block
	if r.inOrder >= r.window || r.ended {
		return r.ack()
	}
	return nil
}

// ack acknowledges the block before the next one.
func (r *Reader) ack() error {
	r.inOrder = 0
	r.last = binary.BigEndian.AppendUint16([]byte{0, opAck}, r.wanted-1)
	return r.send()
}

func (r *Reader) send() error {
	_, err := r.conn.WriteToUDPAddrPort(r.last, r.server)
	return err
}

// receive waits for a packet of the server, and returns its kind and its content, which is
// valid until the next call. If none comes, it sends the last packet again, until a limit.
func (r *Reader) receive(limit time.Duration) (kind uint16, body []byte, err error) {
	wait, failed := firstWait, time.Now().Add(limit)
	for {
		now := time.Now()
		if !now.Before(failed) {
			return 0, nil, fmt.Errorf("nothing came for %v", limit)
		}
		if err := r.conn.SetReadDeadline(now.Add(min(wait, failed.Sub(now)))); err != nil {
			return 0, nil, err
		}
		n, from, err := r.conn.ReadFromUDPAddrPort(r.packet)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			wait, r.behind = min(2*wait, mostWait), false
			if r.inOrder > 0 {
				err = r.ack() // the rest of the window is lost
			} else {
				err = r.send()
			}
			if err != nil {
				return 0, nil, err
			}
			continue
		case err != nil:
			return 0, nil, err
		case n < headerSize || !r.isServer(from):
			continue
		}
		kind, body = binary.BigEndian.Uint16(r.packet), r.packet[2:n]
		if kind == opError {
			return 0, nil, errorOf(body)
		}
		return kind, body, nil
	}
}

// isServer reports whether a packet comes from the server. The first one comes from the
// port of the transfer, which the server chooses (RFC 1350, section 4).
func (r *Reader) isServer(from netip.AddrPort) bool {
	from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	if r.first && from.Addr() == r.server.Addr() {
		r.first, r.server = false, from
	}
	return from == r.server
}

// errorOf returns the error in the content of an ERROR packet.
func errorOf(body []byte) error {
	text, _, _ := bytes.Cut(body[2:], []byte{0})
	return fmt.Errorf("server answers error %d: %s", binary.BigEndian.Uint16(body), printable.Text(string(text)))
}

// Close ends the transfer. A server that sends a file of which not all has been read gets
// an ERROR packet, so that it stops.
func (r *Reader) Close() error {
	r.stop()
	if !r.first && !r.ended {
		r.last = append([]byte{0, opError, 0, 0}, "stopped\x00"...)
		_ = r.send() // without it the server waits for a while
	}
	return r.conn.Close()
}
