package state

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"time"

	"drover/pools"
	"drover/pools/state/wal"
)

// The stored value of a lease: flags (1 byte), the MAC (6), the end in Unix seconds
// (8) and nanoseconds (4), little endian; then the texts node, pool and declined,
// each after its length as a uvarint; then the term in seconds, a uvarint, which earlier
// versions did not write. The key is the address.
const (
	leaseReleased = 1 << iota // flag
	leaseFixed    = 19        // bytes before the texts
)

var errLease = errors.New("not the value of a lease")

// putLease returns the change that stores a lease in a table.
func putLease(table wal.TableID, l *pools.Lease, term time.Duration) wal.Change {
	return wal.Change{Table: table, Key: l.Address.AsSlice(), Value: appendLease(make([]byte, 0, 64), l, term)}
}

func appendLease(b []byte, l *pools.Lease, term time.Duration) []byte {
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
	return binary.AppendUvarint(b, uint64((term+time.Second-1)/time.Second))
}

// parseLease returns a stored lease. term is 0 if it is not stored.
func parseLease(key, b []byte) (l pools.Lease, term time.Duration, err error) {
	addr, ok := netip.AddrFromSlice(key)
	if !ok || len(b) < leaseFixed {
		return l, 0, errLease
	}
	l.Address, l.Released, l.MAC = addr, b[0]&leaseReleased != 0, pools.MAC(b[1:7])
	l.Expires = time.Unix(int64(binary.LittleEndian.Uint64(b[7:])), int64(binary.LittleEndian.Uint32(b[15:]))).UTC()
	b = b[leaseFixed:]
	for _, text := range []*string{&l.Node, &l.Pool, &l.Declined} {
		n, size := binary.Uvarint(b)
		if size <= 0 || uint64(len(b)-size) < n {
			return l, 0, errLease
		}
		*text, b = string(b[size:size+int(n)]), b[size+int(n):]
	}
	seconds, _ := binary.Uvarint(b)
	return l, time.Duration(min(seconds, uint64(maxTerm/time.Second))) * time.Second, nil
}
