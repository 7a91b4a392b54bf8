package systemd

import (
	"fmt"
	"net"
	"os"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sys/unix"
)

// socketName is that of the sockets of this program in systemd's store of file descriptors.
const socketName = "drover"

// Store gives sockets to systemd, which keeps them, with the connections that wait, for the next
// process of a service that restarts (FileDescriptorStoreMax= of the unit).
func Store(files []*os.File) error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" || len(files) == 0 {
		return nil
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("give sockets to systemd: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	for _, f := range files {
		if err := unix.Sendmsg(fd, []byte("FDSTORE=1\nFDNAME="+socketName), unix.UnixRights(int(f.Fd())), &unix.SockaddrUnix{Name: path}, 0); err != nil {
			return fmt.Errorf("give sockets to systemd: %w", err)
		}
	}
	return nil
}

// Stored returns the listeners that the process before has given to systemd, once. systemd forgets
// them: should this process crash, no port has a socket that nobody reads.
func Stored() (all []net.Listener, err error) {
	for _, f := range activation.Files(true) {
		l, listenErr := net.FileListener(f)
		_ = f.Close() // l has a copy
		if listenErr != nil {
			err = fmt.Errorf("sockets from systemd: %w", listenErr)
			continue
		}
		all = append(all, l)
	}
	if len(all) > 0 {
		err = notify("FDSTOREREMOVE=1\nFDNAME=" + socketName)
	}
	return all, err
}
