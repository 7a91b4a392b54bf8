package tftp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"time"
)

// Transfer is a file that was sent, or refused.
type Transfer struct {
	File   string // as cleaned, or as asked for when it was refused
	Client netip.Addr
	Bytes  int64 // of the file, that the client has
	Took   time.Duration
	Err    error // why it did not reach the client whole; nil when it did

	BlockSize int           // bytes
	Window    int           // blocks that are sent before the client answers
	Timeout   time.Duration // that the client asked for; 0: none
	Resent    int           // windows that were sent more than once
}

// Why a transfer was ended from this side.
var (
	errTooSlow = refuse(codeOther, "client takes too long")
	errStopped = refuse(codeOther, "server stops")
	errAnew    = errors.New("client began anew")
)

// transfer is a file on its way to one client.
type transfer struct {
	Transfer
	progress
	peer    netip.AddrPort
	at      place
	request string // as it came; a client whose answer was lost sends it again
	begun   time.Time
	expires time.Time

	file   File   // nil until it is open
	page   *page  // nil: nothing is read ahead
	oack   []byte // nil when there is nothing to acknowledge
	sized  bool   // the client asked for the size
	probed bool   // and that was all
}

// accept puts an open file with the terms of its transfer in place.
func (t *transfer) accept(f File, asked request, room int) error {
	t.file = f
	terms, acked, err := agree(asked.options, f.Size(), room)
	if err != nil {
		return err
	}
	if len(acked) > 0 {
		t.oack = oack(acked)
		t.sized = asked.asks("tsize")
	}
	t.BlockSize, t.Window, t.Timeout = terms.block, terms.window, terms.timeout
	t.progress = newProgress(terms, f.Size(), t.oack != nil)
	return nil
}

// fresh tells whether the client has not answered anything yet.
func (t *transfer) fresh() bool { return t.acked <= 0 && (t.oack == nil || t.acked < 0) }

// appendBlocks appends what there is to do to b, as packets one after the
// other. All have the size each but the last, which may be shorter.
func (t *transfer) appendBlocks(b []byte) (out []byte, each int, err error) {
	from, to := t.todo()
	if to == 0 {
		return append(b, t.oack...), 0, nil
	}
	n, block := int(to-from)+1, int64(t.block)
	size := min(block*int64(n), t.file.Size()-(from-1)*block)
	start := len(b)
	b = b[:start+n*headerSize+int(size)]
	// One read gets all blocks, at the end; then each moves forward to behind
	// its header.
	content := b[start+n*headerSize:]
	if err := t.read(content, (from-1)*block); err != nil {
		return b[:start], 0, err
	}
	at := b[start:]
	for i := from; i <= to; i++ {
		part := content[:min(block, int64(len(content)))]
		copy(at[headerSize:], part)
		binary.BigEndian.PutUint16(at, opData)
		binary.BigEndian.PutUint16(at[2:], uint16(i))
		at, content = at[headerSize+len(part):], content[len(part):]
	}
	return b, t.block + headerSize, nil
}

// page is a part of a file that was read ahead: blocks are small, and each
// read of one is a call to the kernel.
type page struct {
	data  [16 << 10]byte
	start int64
	n     int
}

// read reads b from the file, which may have become shorter meanwhile.
func (t *transfer) read(b []byte, at int64) error {
	if t.page == nil || len(b) > len(t.page.data) {
		return readFull(t.file, b, at)
	}
	if from := at - t.page.start; from < 0 || from+int64(len(b)) > int64(t.page.n) {
		n := min(int64(len(t.page.data)), t.file.Size()-at)
		t.page.n = 0
		if err := readFull(t.file, t.page.data[:n], at); err != nil {
			return err
		}
		t.page.start, t.page.n = at, int(n)
	}
	copy(b, t.page.data[at-t.page.start:])
	return nil
}

func readFull(f io.ReaderAt, b []byte, at int64) error {
	if len(b) == 0 {
		return nil
	}
	n, err := f.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("file became shorter")
	}
	return &refusal{codeOther, "server cannot read the file", fmt.Errorf("byte %d: %w", at+int64(n), err)}
}

// has tells how much of the file the client has.
func (t *transfer) has() int64 {
	if t.file == nil {
		return 0
	}
	return max(0, min(t.acked*int64(t.block), t.file.Size()))
}

// end notes how the transfer ended.
func (t *transfer) end(err error, now time.Time) {
	t.Err, t.Bytes, t.Took = err, t.has(), now.Sub(t.begun)
	if ce, ok := errors.AsType[*clientError](err); ok {
		// Firmware asks for a file, reads its size from our answer, and
		// stops; then it asks again. The code is 8 by RFC 2347, 0 from older
		// ROMs.
		t.probed = t.sized && t.acked < 0 && (ce.code == codeOption || ce.code == codeOther)
	}
}

// unanswered says what the client did not answer.
func (t *transfer) unanswered() error {
	if t.acked < 0 {
		return errors.New("client does not answer the options")
	}
	return fmt.Errorf("client does not answer since block %d of %d", t.acked, t.last)
}

// done makes room after a transfer that ended, and tells of it.
func (s *Server) done(t *transfer) {
	defer s.limits.leave(t.Client)
	if t.file != nil {
		t.file.Close()
	}
	if t.page != nil {
		s.pages.Put(t.page)
	}
	s.tell(t)
}

// tell tells of a transfer that ended, or never began.
func (s *Server) tell(t *transfer) {
	defer func() { _ = s.caught(recover()) }()
	log := s.log().With("file", t.File, "client", t.Client, "bytes", t.Bytes, "took", t.Took)
	if s.Who != nil {
		for _, a := range s.Who(t.Client) {
			log = log.With(a)
		}
	}
	if t.Window > 1 {
		log = log.With("window", t.Window)
	}
	if t.Resent > 0 {
		log = log.With("resent", t.Resent)
	}
	switch {
	case t.probed:
		log.Debug("tftp: size asked")
		return
	case t.Err == nil:
		log.Info("tftp")
	case isOptional(t.Err):
		log.Debug("tftp: file not found", "error", t.Err)
	case errors.Is(t.Err, fs.ErrNotExist) && s.Open == nil:
		log.Warn("tftp: no such loader: see drover loaders", "dir", s.Dir)
	default:
		log.Warn("tftp", "error", t.Err)
	}
	if s.OnTransfer != nil {
		s.OnTransfer(t.Transfer)
	}
}
