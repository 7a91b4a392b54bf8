package dhcp

import (
	"slices"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp/wire"
)

const (
	// maxSname is the size in bytes of the BOOTP sname field, without its final
	// NUL.
	maxSname = 63

	// minMessage is the size that every client must accept (RFC 2131, section
	// 2). All sizes are in bytes. They exclude the 28 bytes of IP and UDP
	// headers that option 57 includes.
	udpOverhead = 28
	minMessage  = 576 - udpOverhead
	minBOOTP    = 300
	maxMessage  = 1500 - udpOverhead
)

// fit makes a reply fit into limit bytes. Options that exceed the options field
// go into the file field, unless it holds the boot file, and then into the
// sname field (RFC 2131, section 4.1, "option overload"). The options field
// takes the options that a boot depends on first, then those of the client's
// list in its order, then those of low codes. Options that fit nowhere are omitted;
// fit returns their codes.
//
// Options stay whole, because some clients join the pieces of an option in
// another order than RFC 3396 prescribes.
func fit(m *Message, limit int, list []byte) (omitted []uint8) {
	room := limit - wire.OptionsAt - 1 // the END option
	codes := m.options.Codes()
	if codes.Has(wire.OptBootFile) {
		limit -= nameEnd
		room -= nameEnd
	}
	for code := range codes.All() {
		room -= wire.OptionSize(m.options.Get(code))
	}
	if room >= 0 {
		return nil
	}
	const overload = 3 // option 52 itself
	room = limit - wire.OptionsAt - 1 - overload
	file, sname := field{text: &m.file, room: maxBootFile}, field{text: &m.sname, room: maxSname}
	for _, code := range m.byRank(list) {
		data := m.options.Get(code)
		if size := wire.OptionSize(data); size <= room || rank(code, data) == 0 {
			room -= size
			continue
		}
		m.options.Remove(code)
		bootp := m.messageType() == dhcpv4.MessageTypeNone // has no option overload
		if bootp || !file.add(code, data) && !sname.add(code, data) {
			omitted = append(omitted, code)
		}
	}
	if flags := file.end(wire.OverloadFile) | sname.end(wire.OverloadSname); flags != 0 {
		m.options.Put(wire.OptOverload, flags)
	}
	slices.Sort(omitted)
	return omitted
}

// rank returns the order in which options go into the options field. Options of
// rank 0 are never omitted. Rank 1 is for long values that an operator sets for
// options that a boot depends on. Rank 2 is for all other options. The server's
// own values are short.
func rank(code uint8, data []byte) int {
	const short = 64
	switch {
	case !essential(code):
		return 2
	case reserved(code) || code == wire.OptBootFile || len(data) <= short:
		return 0
	}
	return 1
}

// byRank returns the codes of the options in the order of their rank, then in the
// order in which they are sent.
func (m *Message) byRank(list []byte) []uint8 {
	m.arrange(list)
	codes := slices.Clone(m.order)
	slices.SortStableFunc(codes, func(a, b uint8) int { return rank(a, m.options.Get(a)) - rank(b, m.options.Get(b)) })
	return codes
}

// field is the sname or file field of a reply while options are added to it.
type field struct {
	text    *string
	room    int // in bytes, without the final NUL
	options []byte
}

// add adds an option to the field. It returns false when the field holds a
// text, or has no room for the option and END.
func (f *field) add(code uint8, data []byte) bool {
	if *f.text != "" || len(f.options)+wire.OptionSize(data)+1 > f.room || len(data) > 255 {
		return false
	}
	f.options = append(append(f.options, code, byte(len(data))), data...)
	return true
}

// end writes the options to the field. It returns flag, or 0 for a field
// without options.
func (f *field) end(flag uint8) uint8 {
	if len(f.options) == 0 {
		return 0
	}
	*f.text = string(append(f.options, wire.OptEnd))
	return flag
}
