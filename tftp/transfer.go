package tftp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// Transfer is a file that was sent, or refused.
type Transfer struct {
	File   string // as cleaned, or as requested when the name was refused
	Client netip.Addr
	Opened File  // as [Server.Open] returned it; nil when it was refused
	Bytes  int64 // of the file that the client has acknowledged
	Took   time.Duration
	Err    error // why the file did not reach the client whole; nil when it did

	BlockSize int           // bytes
	Window    int           // blocks that are sent before the client answers
	Timeout   time.Duration // that the client asked for; 0: none
	Resent    int           // windows that were sent more than once
	Unsent    int           // packets, or windows, that the kernel refused to send
}

// Reasons why the server ends a transfer.
var (
	errTooSlow     = refuse(codeOther, "client takes too long")
	errStopped     = refuse(codeOther, "server stops")
	errRestarted   = errors.New("client began anew")
	errUnreachable = errors.New("client has closed its port")
	errDisplaced   = errors.New("client has not answered, and others need its place")
	errNotBooting  = refuse(codeAccess, "not booting")
	errNoAnswer    = errors.New("client does not answer the options")
	errNoBlock     = errors.New("client does not answer the first block")
	errHeld        = errors.New("a client without options that is not in the middle of a boot has not repeated its request often enough to get a block")
)

// proofTime is the time that a client has to answer the first packet, since its last
// request. Its own timeout counts only afterwards.
const proofTime = 15 * time.Second

// maxRefusals is the number of answers that the port is closed after which a transfer
// with a single port ends.
const maxRefusals = 3

// transfer is the state of a file on its way to one client. Packets, the clock
// and the content of the file are its input; the answers say what its port does
// next. It has no socket, reads no file and asks for no time.
type transfer struct {
	Transfer
	progress
	content
	credit  credit
	request string // as it came; a client whose answer was lost sends it again
	begun   time.Time
	asked   time.Time // when the request came last
	expires time.Time

	refusals int // how often the client's host has answered that the port is closed

	opened  bool   // the file is open and the options are negotiated
	stalled bool   // the window waits for the file to be read
	oack    []byte // nil when there is no option to acknowledge
	sized   bool   // the client asked for the size
	probed  bool   // and for nothing else
}

// open negotiates the options of a file of size bytes, up to most.
func (t *transfer) open(r request, size int64, most options) error {
	negotiated, acked, err := negotiate(r.options, size, most)
	if err != nil {
		return err
	}
	if len(acked) > 0 {
		t.oack = oack(acked)
		t.sized = r.has("tsize")
	}
	t.BlockSize, t.Window, t.Timeout = negotiated.block, negotiated.window, negotiated.timeout
	t.progress = newProgress(negotiated, size, t.oack != nil)
	t.content = content{size: size, length: int64(max(negotiated.window*negotiated.block, minPiece))}
	t.opened = true
	return nil
}

// packet handles a packet of the client. The error is the reason why the transfer failed.
func (t *transfer) packet(b []byte, now time.Time) (action, error) {
	if len(b) < 4 {
		return wait, nil
	}
	switch binary.BigEndian.Uint16(b) {
	case opError:
		return finish, parseError(b)
	case opAck:
		switch {
		case now.After(t.expires):
			return finish, errTooSlow
		case t.opened:
			return t.ack(binary.BigEndian.Uint16(b[2:]), now), nil
		}
	}
	return wait, nil
}

// tick handles timeouts. The error is the reason why the transfer failed.
func (t *transfer) tick(now time.Time) (action, error) {
	switch {
	case now.After(t.expires) && (t.stalled || !t.opened):
		return finish, &refusal{codeOther, "server cannot read the file", errors.New("reading the file takes too long")}
	case now.After(t.expires):
		return finish, errTooSlow
	case t.stalled || !t.opened:
		return wait, nil
	case !t.answered() && now.Sub(t.asked) > proofTime:
		return finish, t.silent()
	}
	a := t.late(now)
	switch {
	case a != wait && t.refusals > 0:
		return finish, errUnreachable
	case a != finish:
		return a, nil
	case t.acked < 0:
		return a, t.silent()
	}
	return a, fmt.Errorf("client does not answer since block %d of %d", t.acked, t.last)
}

// silent returns why a transfer has failed whose client has acknowledged nothing.
func (t *transfer) silent() error {
	switch {
	case t.oack != nil:
		return errNoAnswer
	case t.sentAt.IsZero():
		return errHeld
	}
	return errNoBlock
}

// repeated records that the request came again, because its answer was lost.
func (t *transfer) repeated(now time.Time) {
	t.credit.add(len(t.request))
	if now.Sub(t.sentAt) >= firstWait {
		t.credit.advance = t.credit.trusted
	}
	t.asked, t.tries = now, 0
}

// firstSize returns the size of the packet to a client that has not answered, for which
// the window is one packet.
func (t *transfer) firstSize() int {
	from, to := t.todo()
	if to == 0 {
		return len(t.oack)
	}
	return headerSize + int(t.offset(to+1)-t.offset(from))
}

// answered reports whether the client has acknowledged anything. An ACK proves that the
// client received a packet: only that shows the port of the transfer.
func (t *transfer) answered() bool { return t.acked > 0 || t.oack != nil && t.acked == 0 }

// offset returns the start of block n in the file, or the end of the file.
func (t *transfer) offset(n int64) int64 { return min((n-1)*int64(t.block), t.size) }

// ready reports whether the file's part of the window is in memory.
func (t *transfer) ready() bool {
	from, to := t.todo()
	return to == 0 || t.has(t.offset(from), t.offset(to+1))
}

// missing returns the next part of the file to read; see content.next. It is empty for a
// client that has not acknowledged its options: many request only the size.
func (t *transfer) missing() (room []byte, start int64) {
	if t.acked < 0 {
		return nil, 0
	}
	return t.next(t.offset(t.acked + 1))
}

// appendBlock appends the DATA packet of block n, or the OACK for block 0.
func (t *transfer) appendBlock(b []byte, n int64) []byte {
	if n == 0 {
		return append(b, t.oack...)
	}
	b = binary.BigEndian.AppendUint16(b, opData)
	b = binary.BigEndian.AppendUint16(b, uint16(n))
	return t.append(b, t.offset(n), t.offset(n+1))
}

// end records how the transfer ended.
func (t *transfer) end(err error, now time.Time) {
	t.Err, t.Took = err, now.Sub(t.begun)
	if t.opened {
		t.Bytes = t.offset(max(t.acked, 0) + 1)
	}
	if ce, ok := errors.AsType[*clientError](err); ok {
		// Firmware asks for a file, reads its size from our answer, and
		// stops; then it asks again. The code is 8 by RFC 2347, 0 from older
		// ROMs.
		t.probed = t.sized && t.acked < 0 && (ce.code == codeOption || ce.code == codeOther)
	}
}
