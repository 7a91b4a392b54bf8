package state

import (
	"encoding/json"
	"time"

	"drover/pools"
)

// putLease is the write of a lease.
func putLease(l pools.Lease) op {
	return op{bucketLeases, l.Address.AsSlice(), appendLease(make([]byte, 0, 256), l)}
}

// appendLease appends the JSON of a lease as [json.Marshal] writes it, for a
// fraction of the time: there is one at each lease and renewal.
func appendLease(b []byte, l pools.Lease) []byte {
	b = append(b, `{"address":"`...)
	b = l.Address.AppendTo(b)
	b = append(b, `","mac":"`...)
	b = append(b, l.MAC.String()...)
	b = append(b, `","node":`...)
	b = appendString(b, l.Node)
	b = append(b, `,"pool":`...)
	b = appendString(b, l.Pool)
	b = append(b, `,"expires":"`...)
	b = l.Expires.AppendFormat(b, time.RFC3339Nano)
	b = append(b, '"')
	if l.Released {
		b = append(b, `,"released":true`...)
	}
	if l.Declined != "" {
		b = append(b, `,"declined":`...)
		b = appendString(b, l.Declined)
	}
	return append(b, '}')
}

// appendString appends s quoted.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(s) // a string cannot fail
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
