package web

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"drover/pools"
	"drover/web/auth"
)

// socketMode lets the owner and the group of a socket connect.
const socketMode = 0o660

// Socket is a unix socket for people of this host, beside the listener.
type Socket struct {
	Path  string
	Group string     // that may connect, by name or number
	Role  pools.Role // of everyone who connects without a token
}

// ListenSocket makes the socket. Pass it to [Server.Serve]. The socket of a server that has
// ended is replaced.
func (s *Server) ListenSocket() (net.Listener, error) {
	k := s.Socket
	gid, err := groupID(k.Group)
	if err != nil {
		return nil, err
	}
	if err := k.free(); err != nil {
		return nil, err
	}
	// Nobody connects before it has its group and mode.
	hidden, err := os.MkdirTemp(filepath.Dir(k.Path), ".")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(hidden)
	path := filepath.Join(hidden, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err = giveTo(path, gid); err == nil {
		if err = os.Chmod(path, socketMode); err == nil {
			err = os.Rename(path, k.Path)
		}
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &socketListener{l, k.Path}, nil
}

// free removes the socket of a server that has ended.
func (k *Socket) free() error {
	info, err := os.Lstat(k.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s: not a socket (mode %s)", k.Path, info.Mode())
	}
	c, err := net.DialTimeout("unix", k.Path, time.Second)
	if err == nil {
		_ = c.Close()
		return fmt.Errorf("%s: another process listens there", k.Path)
	}
	return os.Remove(k.Path)
}

// giveTo gives a file to a group, unless it is that group's.
func giveTo(path string, gid int) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Gid) == gid {
		return nil
	}
	err = os.Chown(path, -1, gid)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("this user may not give files to group %d: make it a member of the group (SupplementaryGroups= and SystemCallFilter=@chown in the unit)", gid)
	}
	return err
}

func groupID(name string) (int, error) {
	if id, err := strconv.ParseUint(name, 10, 31); err == nil {
		return int(id), nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return 0, fmt.Errorf("there is no group %q on this host (groupadd --system %s)", name, name)
	}
	return strconv.Atoi(g.Gid)
}

// socketListener removes its socket when it is closed.
type socketListener struct {
	*net.UnixListener
	path string
}

func (l *socketListener) Close() error {
	return errors.Join(os.Remove(l.path), l.UnixListener.Close())
}

// peerOf returns the process at the other end of a connection by the socket.
func (k *Socket) peerOf(c *net.UnixConn) auth.Peer {
	p := auth.Peer{Role: k.Role, Name: "of an unknown user"}
	raw, err := c.SyscallConn()
	if err != nil {
		return p
	}
	_ = raw.Control(func(fd uintptr) {
		if cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			p.Name = userName(cred.Uid)
		}
	})
	return p
}

func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return "uid " + id
}
