package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// generator simulates the clients, all on one thread.
type generator struct {
	wire    *wire
	server  unix.SockaddrInet4
	row     row
	content []byte
	length  time.Duration

	poll    int
	clients []*client
	held    []held // ACKs that wait for their time, in order

	bytes, total int64 // after the warm-up, and in all
	took         time.Duration
	window       int
	resent       int
}

// held is an ACK that is delayed.
type held struct {
	due time.Time
	c   *client
	ack uint16
}

const (
	warmUp = 30 * time.Millisecond
	// patience is the time after which a client repeats its last ACK.
	patience = 300 * time.Millisecond
)

func (g *generator) run() error { return g.wire.atClient(g.fetch) }

func (g *generator) fetch() (err error) {
	if g.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	defer unix.Close(g.poll)
	defer func() {
		for _, c := range g.clients {
			c.close()
		}
	}()
	for n := range g.row.clients {
		c, err := newClient(g, n)
		if err != nil {
			return err
		}
		g.clients = append(g.clients, c)
	}
	start := time.Now()
	from, warm := start, false
	for events := make([]unix.EpollEvent, g.row.clients); ; {
		now := time.Now()
		if !warm && now.Sub(start) >= warmUp {
			warm, from, g.bytes = true, now, 0
		}
		if g.took = now.Sub(from); warm && g.took >= g.length {
			break
		}
		if err := g.turn(events, now); err != nil {
			return err
		}
	}
	return nil
}

// turn sends the ACKs that are due and handles the packets that have arrived.
func (g *generator) turn(events []unix.EpollEvent, now time.Time) error {
	for len(g.held) > 0 && !g.held[0].due.After(now) {
		g.held[0].c.sendAck(g.held[0].ack)
		g.held = g.held[1:]
	}
	wait := 50 * time.Millisecond
	if g.row.delay > 0 {
		// Waking up takes about 20 µs, which would be part of the delay.
		wait = 0
	}
	n, err := unix.EpollWait(g.poll, events, int(wait.Milliseconds()))
	if errors.Is(err, unix.EINTR) {
		return nil
	} else if err != nil {
		return err
	}
	now = time.Now()
	for _, e := range events[:n] {
		if err := g.clients[e.Fd].receive(now); err != nil {
			return err
		}
	}
	if n == 0 {
		for _, c := range g.clients {
			c.late(now)
		}
	}
	return nil
}

// client fetches the file again and again.
type client struct {
	g     *generator
	index int
	fd    int

	connected     bool
	block, window int
	have          int64 // blocks
	since         int   // blocks since the last ACK
	heard         time.Time
	in            []unix.Mmsghdr
	buffers       [][]byte
	out           [4]byte
}

func newClient(g *generator, index int) (*client, error) {
	c := &client{g: g, index: index, fd: -1, in: make([]unix.Mmsghdr, g.row.window)}
	vectors := make([]unix.Iovec, len(c.in))
	for i := range c.in {
		c.buffers = append(c.buffers, make([]byte, 2048))
		vectors[i].Base = &c.buffers[i][0]
		vectors[i].SetLen(2048)
		c.in[i].Hdr.Iov = &vectors[i]
		c.in[i].Hdr.SetIovlen(1)
	}
	return c, c.ask()
}

// ask begins a transfer, on a port of its own.
func (c *client) ask() (err error) {
	c.close()
	if c.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
		return err
	}
	if err := unix.EpollCtl(c.g.poll, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.index)}); err != nil {
		return err
	}
	c.connected, c.block, c.window, c.have, c.since, c.heard = false, 512, 1, 0, 0, time.Now()
	return c.request()
}

func (c *client) request() error {
	fields := []string{"\x00\x01" + fileName, "octet", "tsize", "0", "blksize", strconv.Itoa(c.g.row.block)}
	if c.g.row.window > 1 {
		fields = append(fields, "windowsize", strconv.Itoa(c.g.row.window))
	}
	return unix.Sendto(c.fd, []byte(strings.Join(append(fields, ""), "\x00")), 0, &c.g.server)
}

// close ends the transfer, so that the server stops sending.
func (c *client) close() {
	if c.fd < 0 {
		return
	}
	if c.connected {
		_, _ = unix.Write(c.fd, []byte("\x00\x05\x00\x00the time is over\x00"))
	}
	unix.Close(c.fd)
	c.fd = -1
}

// receive handles the packets that have arrived.
func (c *client) receive(now time.Time) error {
	if !c.connected {
		return c.first(now)
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(c.fd), uintptr(unsafe.Pointer(&c.in[0])), uintptr(c.window-c.since), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		if errno == unix.EAGAIN || errno == unix.EINTR {
			return nil
		}
		return errno
	}
	c.heard = now
	for i := range int(n) {
		if done, err := c.take(c.buffers[i][:c.in[i].Len], now); done || err != nil {
			return err
		}
	}
	return nil
}

// first handles the OACK, and records the port that it came from.
func (c *client) first(now time.Time) error {
	n, from, err := unix.Recvfrom(c.fd, c.buffers[0], 0)
	if err != nil {
		return nil
	}
	b := c.buffers[0][:n]
	switch {
	case n < 4 || b[1] == 3: // of a transfer that had this port before
		return nil
	case b[1] != 6:
		return fmt.Errorf("instead of an OACK the server sends %q", b)
	}
	if err := unix.Connect(c.fd, from); err != nil {
		return err
	}
	c.connected, c.heard = true, now
	fields := strings.Split(string(b[2:]), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		value, _ := strconv.Atoi(fields[i+1])
		switch strings.ToLower(fields[i]) {
		case "blksize":
			c.block = value
		case "windowsize":
			c.window = value
		}
	}
	c.g.window = c.window
	c.ack(now)
	return nil
}

// take handles a DATA packet. It returns true at the end of the file.
func (c *client) take(b []byte, now time.Time) (done bool, err error) {
	if len(b) < 4 || b[1] != 3 {
		return false, fmt.Errorf("instead of block %d the server sends %q", c.have+1, b[:min(len(b), 100)])
	}
	if binary.BigEndian.Uint16(b[2:]) != uint16(c.have+1) {
		// A block is missing, or came twice.
		c.g.resent++
		if ahead := binary.BigEndian.Uint16(b[2:]) - uint16(c.have+1); ahead < 1000 {
			c.ack(now)
		}
		return false, nil
	}
	at := c.have * int64(c.block)
	if want := c.g.content[at:min(at+int64(c.block), fileSize)]; !bytes.Equal(b[4:], want) {
		return false, fmt.Errorf("block %d is damaged", c.have+1)
	}
	c.have++
	c.since++
	c.g.bytes += int64(len(b) - 4)
	c.g.total += int64(len(b) - 4)
	if len(b)-4 < c.block {
		c.sendAck(uint16(c.have))
		return true, c.ask()
	}
	if c.since == c.window {
		c.ack(now)
	}
	return false, nil
}

// ack acknowledges the received blocks after the delay.
func (c *client) ack(now time.Time) {
	c.since = 0
	if c.g.row.delay == 0 {
		c.sendAck(uint16(c.have))
		return
	}
	c.g.held = append(c.g.held, held{now.Add(c.g.row.delay), c, uint16(c.have)})
}

func (c *client) sendAck(block uint16) {
	c.out = [4]byte{0, 4}
	binary.BigEndian.PutUint16(c.out[2:], block)
	_, _, _ = unix.RawSyscall6(unix.SYS_SENDTO, uintptr(c.fd), uintptr(unsafe.Pointer(&c.out[0])), 4, 0, 0, 0)
}

// late repeats the last message.
func (c *client) late(now time.Time) {
	if now.Sub(c.heard) < patience {
		return
	}
	c.g.resent++
	c.heard = now
	if !c.connected {
		_ = c.request()
		return
	}
	c.since = 0
	c.sendAck(uint16(c.have))
}
