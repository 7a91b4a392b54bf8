package httpboot

import (
	"cmp"
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ReadFrom writes a part of a file with sendfile(2), and anything else as package net does.
//
// Package net calls sendfile(2) again at once when the socket took a part. By then the client
// has read a little, and the next part is small: more system calls, more segments. Here the
// next part waits until the kernel reports that a third of the socket's buffer is free.
func (c *conn) ReadFrom(src io.Reader) (int64, error) {
	limited, _ := src.(*io.LimitedReader)
	if limited == nil {
		return c.tcpConn.ReadFrom(src)
	}
	f, _ := limited.R.(*os.File)
	raw, err := c.SyscallConn()
	if f == nil || err != nil {
		return c.tcpConn.ReadFrom(src)
	}
	n, err := sendFile(raw, f, limited.N)
	limited.N -= n
	return n, err
}

// sendFile writes up to size bytes from the file's position on.
func sendFile(to syscall.RawConn, f *os.File, size int64) (written int64, err error) {
	from, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	part := func(toFD, fromFD uintptr) (done bool) {
		for written < size {
			asked := int(min(size-written, maxSend))
			n, err := unix.Sendfile(int(toFD), int(fromFD), nil, asked)
			written += int64(max(n, 0))
			switch {
			case errors.Is(err, unix.EINTR):
			case errors.Is(err, unix.EAGAIN):
				return false
			case err != nil:
				failed = os.NewSyscallError("sendfile", err)
				return true
			case n == 0: // the end of the file
				return true
			case n < asked && !writable(toFD):
				return false
			}
		}
		return true
	}
	cerr := from.Control(func(fromFD uintptr) {
		err = to.Write(func(toFD uintptr) bool { return part(toFD, fromFD) })
	})
	return written, cmp.Or(failed, err, cerr)
}

// maxSend is the most that one sendfile(2) is asked for, in bytes.
const maxSend = 4 << 20

// writable reports whether a third of the socket's buffer is free. If not, poll(2) has told
// the kernel to report when it is, also where sendfile(2) wrote less for another reason:
// without that, waiting could have no end.
func writable(fd uintptr) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}} // poll(2) takes descriptors as 32 bits
	n, err := unix.Poll(fds, 0)
	return n > 0 || err != nil
}
