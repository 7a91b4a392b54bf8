package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// puller fetches one file repeatedly over several connections, on one thread. It discards
// the bytes without copying them (MSG_TRUNC), so that it does not limit the server.
type puller struct {
	server       netip.AddrPort
	path         string
	size         int64
	from         []netip.Addr // where the connections come from, one each
	warm, length time.Duration
	begin, end   func() // called when the measured time begins and ends

	bytes int64 // in that time
	poll  int
	pulls []*pull
	sink  []byte // never touched
}

// pull is a connection.
type pull struct {
	fd   int
	head []byte // the part of the head that has arrived; nil after the head
	left int64  // of the body
}

const (
	mostHead = 4096
	sinkSize = 4 << 20
	silence  = 5 * time.Second // the longest time without any data
)

func (p *puller) run() (err error) {
	p.sink = make([]byte, sinkSize)
	if p.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	defer unix.Close(p.poll)
	defer func() {
		for _, c := range p.pulls {
			unix.Close(c.fd)
		}
	}()
	for n := range p.from {
		if err := p.connect(n); err != nil {
			return err
		}
	}
	return p.loop()
}

func (p *puller) connect(n int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	c := &pull{fd: fd}
	p.pulls = append(p.pulls, c)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: p.from[n].As4()}); err != nil {
		return err
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: p.server.Addr().As4(), Port: int(p.server.Port())}); err != nil {
		return err
	}
	if err := unix.EpollCtl(p.poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(n)}); err != nil {
		return err
	}
	return p.ask(c)
}

// ask begins a transfer.
func (p *puller) ask(c *pull) error {
	c.head = []byte{}
	_, err := unix.Write(c.fd, []byte("GET "+p.path+" HTTP/1.1\r\nHost: "+p.server.String()+"\r\n\r\n"))
	return err
}

func (p *puller) loop() error {
	events := make([]unix.EpollEvent, len(p.from))
	start, measuring := time.Now(), false
	for heard := start; ; {
		n, err := unix.EpollWait(p.poll, events, 100)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		now := time.Now()
		switch {
		case !measuring && now.Sub(start) >= p.warm:
			measuring, start, p.bytes = true, now, 0
			p.begin()
		case measuring && now.Sub(start) >= p.length:
			p.end()
			return nil
		case n > 0:
			heard = now
		case now.Sub(heard) > silence:
			return fmt.Errorf("nothing came for %v", silence)
		}
		for _, e := range events[:max(n, 0)] {
			if err := p.receive(p.pulls[e.Fd]); err != nil {
				return err
			}
		}
	}
}

// receive receives the available bytes.
func (p *puller) receive(c *pull) error {
	if c.head != nil {
		return p.receiveHead(c)
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(c.fd), uintptr(unsafe.Pointer(&p.sink[0])),
		uintptr(min(c.left, sinkSize)), unix.MSG_TRUNC|unix.MSG_DONTWAIT, 0, 0)
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		return nil
	case errno != 0:
		return errno
	case n == 0:
		return fmt.Errorf("the connection ended %d bytes early", c.left)
	}
	return p.took(c, int64(n))
}

// took counts received bytes of the body.
func (p *puller) took(c *pull, n int64) error {
	p.bytes += n
	c.left -= n
	if c.left == 0 {
		return p.ask(c)
	}
	return nil
}

// receiveHead receives the head, and the first bytes of the body.
func (p *puller) receiveHead(c *pull) error {
	var b [mostHead]byte
	n, _, err := unix.Recvfrom(c.fd, b[:mostHead-len(c.head)], unix.MSG_DONTWAIT)
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return nil
	case err != nil:
		return err
	case n == 0:
		return fmt.Errorf("the connection ended after %q", c.head)
	}
	c.head = append(c.head, b[:n]...)
	head, body, ok := bytes.Cut(c.head, []byte("\r\n\r\n"))
	if !ok {
		if len(c.head) == mostHead {
			return fmt.Errorf("the head has more than %d bytes", mostHead)
		}
		return nil
	}
	if c.left, err = readHead(string(head)); err != nil {
		return err
	}
	if c.left != p.size {
		return fmt.Errorf("the server has %d bytes to send, want %d", c.left, p.size)
	}
	c.head = nil
	return p.took(c, int64(len(body)))
}

// readHead returns the length of the body.
func readHead(head string) (int64, error) {
	status, fields, _ := strings.Cut(head, "\r\n")
	if f := strings.Fields(status); len(f) < 2 || f[1] != "200" {
		return 0, fmt.Errorf("the server answers %q", status)
	}
	for line := range strings.SplitSeq(fields, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		if strings.EqualFold(name, "Content-Length") {
			return strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		}
	}
	return 0, fmt.Errorf("the answer has no Content-Length: %q", head)
}
