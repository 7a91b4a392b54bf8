package tftp

// minPiece is the least part of a file that is read at a time, in bytes. A block is
// small, and each read is a system call.
const minPiece = 64 << 10

// content is the part of a file that a transfer holds in memory: two pieces in
// a row, so that the second is read while the first is sent. It does not read the file
// itself: next returns the piece to read, and the caller reports it with loaded.
type content struct {
	size   int64     // of the file, in bytes
	length int64     // of a piece, in bytes; at least a window
	slots  [2][]byte // piece n is in slot n%2, counted from 1
	number [2]int64  // the piece that is loaded in each slot; 0: none
}

// has reports whether the bytes from start to end are in memory.
func (c *content) has(start, end int64) bool {
	return start >= end || c.loadedAt(start) && c.loadedAt(end-1)
}

func (c *content) loadedAt(offset int64) bool {
	n := offset/c.length + 1
	return c.number[n%2] == n
}

// next returns the first piece to read for a client that has all bytes before offset: a
// buffer for it, and its start in the file. The buffer is nil if there is nothing to
// read.
func (c *content) next(offset int64) (room []byte, start int64) {
	for start = offset - offset%c.length; start < min(c.size, offset+c.length); start += c.length {
		if c.loadedAt(start) {
			continue
		}
		i := (start/c.length + 1) % 2
		if c.slots[i] == nil {
			c.slots[i] = make([]byte, min(c.length, c.size-start))
		}
		c.number[i] = 0
		return c.slots[i][:min(c.length, c.size-start)], start
	}
	return nil, 0
}

// loaded records that the piece at start has been read.
func (c *content) loaded(start int64) {
	n := start/c.length + 1
	c.number[n%2] = n
}

// append appends the bytes from start to end to b. They must be in memory; see has.
func (c *content) append(b []byte, start, end int64) []byte {
	for start < end {
		n := start/c.length + 1
		stop := min(end, n*c.length)
		first := (n - 1) * c.length
		b = append(b, c.slots[n%2][start-first:stop-first]...)
		start = stop
	}
	return b
}
