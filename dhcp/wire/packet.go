// Package wire is the format of DHCPv4 packets (RFC 2131, RFC 2132): their fields, their
// [Options], and packets as text ([Describe]). It decides nothing.
package wire

// Offsets into a packet (RFC 2131, section 2).
const (
	HopsAt    = 3
	XidAt     = 4
	FlagsAt   = 10
	CiaddrAt  = 12
	GiaddrAt  = 24
	ChaddrAt  = 28
	SnameAt   = 44
	FileAt    = 108
	CookieAt  = 236
	OptionsAt = 240
)

// MagicCookie is the beginning of the options: a packet without it is BOOTP.
func MagicCookie() [4]byte { return [4]byte{99, 130, 83, 99} }

// Values of option 52, which names the fields that hold options.
const (
	OverloadFile  = 1
	OverloadSname = 2
)
