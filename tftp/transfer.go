package tftp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/pin/tftp/v3"
)

// What a client is told. The log says more; what is told goes to anybody.
var (
	errNoFile   = errors.New("file not found")
	errBusy     = errors.New("server is busy, try again")
	errReadOnly = errors.New("server is read-only")
	errFailed   = errors.New("server cannot read the file")
)

// readBuffer spares a system call for each block.
const readBuffer = 32 << 10

// reader returns the handler of read requests. When ctx ends, so do the
// transfers.
func (s *Server) reader(ctx context.Context) func(string, io.ReaderFrom) error {
	return func(name string, rf io.ReaderFrom) error {
		start := time.Now()
		t := Transfer{File: name, Client: client(rf)}
		told := s.serve(ctx, &t, rf)
		t.Took = time.Since(start)
		s.done(&t)
		return told
	}
}

// serve sends one file. It fills the transfer and returns what the client is
// to be told, if it has not been told yet.
func (s *Server) serve(ctx context.Context, t *Transfer, rf io.ReaderFrom) (told error) {
	defer func() {
		// The library's answer to options is written into a buffer of 516
		// bytes, which a request can be made to overflow.
		if err := s.caught(recover()); err != nil {
			t.Err, told = err, errFailed
		}
	}()
	if err := s.limits.enter(t.Client); err != nil {
		t.Err = err
		return errBusy
	}
	defer s.limits.leave(t.Client)

	name, err := clean(t.File)
	if err != nil {
		t.Err = err
		return errNoFile
	}
	t.File = name
	f, size, err := open(s.Dir, name)
	if err != nil {
		t.Err = err
		if errors.Is(err, fs.ErrNotExist) {
			return errNoFile
		}
		return errFailed
	}
	defer f.Close()
	if out, ok := rf.(tftp.OutgoingTransfer); ok {
		out.SetSize(size)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, orDefault(s.MaxTime, 15*time.Minute), errTooSlow)
	defer cancel()
	t.Bytes, t.Err = rf.ReadFrom(bufio.NewReaderSize(whileReader{ctx, io.LimitReader(f, size)}, readBuffer))
	return nil
}

// Why a transfer was ended from this side.
var (
	errTooSlow = errors.New("client takes too long")
	errStopped = errors.New("server stops")
)

// whileReader reads until its context ends. The library asks for the next
// block only when the last one was acknowledged, or gives up: a transfer ends
// within some seconds of its context.
type whileReader struct {
	ctx context.Context
	r   io.Reader
}

func (r whileReader) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(b)
}

// open opens a regular file below dir. What is no regular file is answered as
// one that is not there; opening a pipe must not wait for its writer.
func open(dir, name string) (*os.File, int64, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, 0, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("%w: it is no regular file", fs.ErrNotExist)}
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// refuseWrite is the handler of write requests.
func (s *Server) refuseWrite(name string, wt io.WriterTo) error {
	s.done(&Transfer{File: name, Client: client(wt), Err: errReadOnly})
	return errReadOnly
}

// caught logs what recover returned.
func (s *Server) caught(v any) error {
	if v == nil {
		return nil
	}
	s.log().Error("tftp: panic", "value", fmt.Sprint(v), "stack", string(debug.Stack()))
	return fmt.Errorf("panic: %v", v)
}

// done tells of a transfer.
func (s *Server) done(t *Transfer) {
	defer func() { _ = s.caught(recover()) }()
	if isProbe(t.Err) {
		// Firmware asks for a file, reads its size from our answer, and
		// stops; then it asks again.
		s.log().Debug("tftp: size asked", "file", t.File, "client", t.Client)
		return
	}
	log := s.log().With("file", t.File, "client", t.Client, "bytes", t.Bytes, "took", t.Took)
	switch {
	case t.Err == nil:
		log.Info("tftp")
	case errors.Is(t.Err, fs.ErrNotExist):
		log.Warn("tftp: no such loader: copy it there", "dir", s.Dir)
	default:
		log.Warn("tftp", "error", t.Err)
	}
	if s.OnTransfer != nil {
		s.OnTransfer(*t)
	}
}

// isProbe tells whether the client ended the transfer before the first block.
// The library has no error value for that. The code is 8 by RFC 2347, and 0
// from older ROMs.
func isProbe(err error) bool {
	if err == nil {
		return false
	}
	return strings.HasPrefix(err.Error(), "sending block 0: code=")
}

// client is the address of the other end of a transfer.
func client(transfer any) netip.Addr {
	t, ok := transfer.(interface{ RemoteAddr() net.UDPAddr })
	if !ok {
		return netip.Addr{}
	}
	remote := t.RemoteAddr()
	return remote.AddrPort().Addr().Unmap()
}
