package state

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"net/netip"
	"time"

	"drover/pools"
	"drover/state/wal"
)

// The stored value of a lease: flags (1 byte), the MAC (6), the end in Unix seconds
// (8) and nanoseconds (4), little endian; then the texts node, pool and declined,
// each after its length as a uvarint; then the term in seconds, a uvarint, and the client, 8 bytes
// little endian. The key is the address.
const (
	leaseReleased = 1 << iota // flag
	leaseFixed    = 19        // bytes before the texts
)

var errLease = errors.New("not the value of a lease")

// putLease returns the change that stores a lease in a table.
func putLease(table wal.TableID, l *keptLease) wal.Change {
	return wal.Change{Table: table, Key: l.Address.AsSlice(), Value: appendLease(make([]byte, 0, 64), l)}
}

func appendLease(b []byte, l *keptLease) []byte {
	flags := byte(0)
	if l.Released {
		flags |= leaseReleased
	}
	b = append(append(b, flags), l.MAC[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(l.Expires.Unix()))
	b = binary.LittleEndian.AppendUint32(b, uint32(l.Expires.Nanosecond()))
	for _, text := range []string{l.Node, l.Pool, l.Declined} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	b = binary.AppendUvarint(b, uint64((l.term+time.Second-1)/time.Second))
	return binary.LittleEndian.AppendUint64(b, uint64(l.client))
}

// clientHash stands for a client identifier (option 61, or the DUID), of which a lease keeps no more.
// 0 is none.
type clientHash uint64

func hashClient(id string) clientHash {
	if id == "" {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return clientHash(max(h.Sum64(), 1))
}

// other reports whether a message of this client is another client's than c.
func (c clientHash) other(of clientHash) bool { return c != 0 && of != 0 && c != of }

// parseLease returns a stored lease, with its end in Expires alone.
func parseLease(key, b []byte) (l keptLease, err error) {
	addr, ok := netip.AddrFromSlice(key)
	if !ok || len(b) < leaseFixed {
		return l, errLease
	}
	l.Address, l.Released, l.MAC = addr, b[0]&leaseReleased != 0, pools.MAC(b[1:7])
	l.Expires = time.Unix(int64(binary.LittleEndian.Uint64(b[7:])), int64(binary.LittleEndian.Uint32(b[15:]))).UTC()
	b = b[leaseFixed:]
	for _, text := range []*string{&l.Node, &l.Pool, &l.Declined} {
		n, size := binary.Uvarint(b)
		if size <= 0 || uint64(len(b)-size) < n {
			return l, errLease
		}
		*text, b = string(b[size:size+int(n)]), b[size+int(n):]
	}
	seconds, n := binary.Uvarint(b)
	if n <= 0 || len(b) < n+8 {
		return l, errLease
	}
	l.term = time.Duration(min(seconds, uint64(maxTerm/time.Second))) * time.Second
	l.client = clientHash(binary.LittleEndian.Uint64(b[n:]))
	return l, nil
}
