package dhcp

import (
	"slices"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

const (
	// maxSname is the room of the BOOTP sname field less its final NUL.
	maxSname = 63

	// headerSize is the fixed part of a message with the magic cookie, and
	// minMessage what every client must accept (RFC 2131, section 2), both
	// without the 28 bytes of IP and UDP headers that option 57 counts.
	headerSize  = 240
	udpOverhead = 28
	minMessage  = 576 - udpOverhead
	minBOOTP    = 300
	maxMessage  = 1500 - udpOverhead
)

// Values of option 52: which fields hold options.
const (
	overloadFile  = 1
	overloadSname = 2
)

// fit makes a reply fit into limit bytes. What the options field has no room for
// goes into the sname field, and into the file field when that does not hold the
// boot file (RFC 2131, section 4.1, "option overload"); first come those that a
// boot hangs on, then those of low codes. The client does without what is still
// too much; fit returns the codes.
//
// Options stay whole: a client that puts split ones together in another order
// than RFC 3396 has it would read rubbish.
func fit(m *message, limit int) (left []uint8) {
	room := limit - headerSize - 1 // the END option
	for _, data := range m.all() {
		room -= optionSize(data)
	}
	if room >= 0 {
		return nil
	}
	const overload = 3 // option 52 itself
	room = limit - headerSize - 1 - overload
	file, sname := field{text: &m.file, room: maxBootFile}, field{text: &m.sname, room: maxSname}
	for _, code := range m.byWeight() {
		data := m.get(code)
		if size := optionSize(data); size <= room || weight(code, data) == 0 {
			room -= size
			continue
		}
		m.codes.remove(code)
		if !file.add(code, data) && !sname.add(code, data) {
			left = append(left, code)
		}
	}
	if flags := file.end(overloadFile) | sname.end(overloadSname); flags != 0 {
		m.put(optOverload, flags)
	}
	slices.Sort(left)
	return left
}

// weight tells what goes first into the options field: 0 is never left out, 1
// is what an operator made of options that a boot hangs on, 2 all others. What
// we put there ourselves is short.
func weight(code uint8, data []byte) int {
	const short = 64
	switch {
	case !needed(code):
		return 2
	case reserved(code) || code == optBootFile || len(data) <= short:
		return 0
	}
	return 1
}

// byWeight lists the codes of options, by weight and then by code.
func (o *options) byWeight() (codes []uint8) {
	for code := range o.all() {
		codes = append(codes, code)
	}
	slices.SortStableFunc(codes, func(a, b uint8) int { return weight(a, o.get(a)) - weight(b, o.get(b)) })
	return codes
}

// field is the sname or file field of a reply, being filled with options. It
// has room for so many bytes and a final NUL.
type field struct {
	text    *string
	room    int
	options []byte
}

// add puts an option into the field. It returns false when that holds something
// else, or has no room for it and the END option.
func (f *field) add(code uint8, data []byte) bool {
	if *f.text != "" || len(f.options)+optionSize(data)+1 > f.room || len(data) > 255 {
		return false
	}
	f.options = append(append(f.options, code, byte(len(data))), data...)
	return true
}

// end writes the field. It returns flag when there is anything in it.
func (f *field) end(flag uint8) uint8 {
	if len(f.options) == 0 {
		return 0
	}
	*f.text = string(append(f.options, optEnd))
	return flag
}

// optionSize is the room that an option takes; what is longer than 255 bytes
// is sent in pieces (RFC 3396).
func optionSize(data []byte) int {
	return len(data) + 2*max(1, (len(data)+254)/255)
}

// sizeLimit is the largest message that the client takes (option 57), within
// what fits an Ethernet frame.
func sizeLimit(req *dhcpv4.DHCPv4) int {
	n, err := req.MaxMessageSize()
	if err != nil {
		return minMessage
	}
	return min(max(int(n)-udpOverhead, minMessage), maxMessage)
}
