package tftp

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Sizes that RFC 1350, 2348 and 7440 name, and ours.
const (
	defaultBlock = 512   // bytes
	minBlock     = 8     // bytes
	maxBlock     = 65464 // bytes
	// maxWindow is as many blocks as one message to the kernel holds. UEFI
	// asks for 4.
	maxWindow = 64
	// maxWindowBytes bounds what a port keeps for sending.
	maxWindowBytes = 256 << 10
	// maxTimeout is the longest wait before sending again that a client gets.
	// RFC 2349 lets it ask for 255 s, which would keep a dead client's place
	// for half an hour.
	maxTimeout = 30 * time.Second
)

// terms are what client and server agreed on.
type terms struct {
	block   int           // bytes
	window  int           // blocks
	timeout time.Duration // 0: the server's choice
}

// agree answers the options of a request: RFC 2347. It returns what is in
// force, and what to acknowledge, spelled as the client spells it: there are
// clients that compare names by letter. Options nobody here knows are left
// out, as are waits that are too long; sizes that are too large are lowered,
// the block to one that fits into room bytes, a packet of the client's
// network.
func agree(asked []option, size int64, room int) (terms, []option, error) {
	t := terms{block: defaultBlock, window: 1}
	var acked []option
	seen := map[string]bool{}
	for _, o := range asked {
		name := strings.ToLower(o.name)
		if seen[name] {
			continue
		}
		seen[name] = true
		value, err := t.take(name, o.value, size, room)
		if err != nil {
			return t, nil, refuse(codeOption, "option %s: %w", name, err)
		}
		if value != "" {
			acked = append(acked, option{o.name, value})
		}
	}
	if most := max(1, maxWindowBytes/(t.block+headerSize)); t.window > most {
		t.window = most
		for i := range acked {
			if strings.EqualFold(acked[i].name, "windowsize") {
				acked[i].value = strconv.Itoa(most)
			}
		}
	}
	return t, acked, nil
}

// take puts one option in force and returns the value to acknowledge; "" when
// there is none.
func (t *terms) take(name, value string, size int64, room int) (string, error) {
	switch name {
	case "tsize": // RFC 2349; the value of a read request means nothing
		return strconv.FormatInt(size, 10), nil
	case "blksize": // RFC 2348
		n, err := number(value, minBlock)
		t.block = min(n, maxBlock, max(room, minBlock))
		return strconv.Itoa(t.block), err
	case "windowsize": // RFC 7440
		n, err := number(value, 1)
		t.window = min(n, maxWindow)
		return strconv.Itoa(t.window), err
	case "timeout": // RFC 2349
		n, err := number(value, 1)
		if wait := time.Duration(n) * time.Second; wait <= maxTimeout {
			t.timeout = wait
			return strconv.Itoa(n), err
		}
		return "", err
	}
	return "", nil
}

// number reads a decimal number of at least low. The RFCs end at 65464 and
// 65535; a client that asks for more is answered with what there is.
func number(s string, low int) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil || int(n) < low {
		return 0, fmt.Errorf("value %q is no number from %d", s, low)
	}
	return int(n), nil
}
