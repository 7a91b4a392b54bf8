package tftp

// credit bounds the packets to a client that has not proved yet that it receives them.
// Anyone who can forge addresses can send a request in the name of another host. Until an
// ACK shows that this host knows the port of the transfer, it gets at most three packets
// for each request, with at most three times the bytes of the request.
//
// A request without options is answered with 512 bytes of the file, which is more. A
// client that is not trusted gets them once it has repeated its request often enough.
type credit struct {
	bytes   int
	packets int
	trusted bool // the client is booting, and few transfers to it are unproved
	advance bool // one block may exceed the bytes; only for a trusted client
}

// perRequest is the number of packets for each request, and of bytes for each of its
// bytes.
const perRequest = 3

// add adds the credit for a request of size bytes.
func (c *credit) add(size int) {
	c.bytes += perRequest * size
	c.packets += perRequest
}

// allows reports whether a packet of size bytes may be sent.
func (c *credit) allows(size int) bool { return c.packets > 0 && (size <= c.bytes || c.advance) }

// spend takes off a packet of size bytes, which is allowed.
func (c *credit) spend(size int) {
	if size > c.bytes {
		c.advance = false
	}
	c.bytes = max(c.bytes-size, 0)
	c.packets--
}
