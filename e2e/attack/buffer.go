package attack

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// smallBuffer limits how much of an answer the kernel takes for a slow reader.
func smallBuffer(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 16<<10) })
	return errors.Join(err, failed)
}
