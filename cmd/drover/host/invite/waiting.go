package invite

import (
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
)

// waiting are the connections without a request yet, the oldest first. Of more than
// maxConnections it closes one of the address that has the most, and of these the oldest: idle
// connections do not keep the host out.
type waiting struct {
	mu    sync.Mutex
	conns []net.Conn
}

// observe is for [http.Server.ConnState].
func (w *waiting) observe(c net.Conn, state http.ConnState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if state != http.StateNew {
		w.conns = slices.DeleteFunc(w.conns, func(other net.Conn) bool { return other == c })
		return
	}
	if w.conns = append(w.conns, c); len(w.conns) <= maxConnections {
		return
	}
	of := map[string]int{}
	for _, c := range w.conns {
		of[host(c)]++
	}
	surplus := slices.MaxFunc(w.conns, func(a, b net.Conn) int { return of[host(a)] - of[host(b)] })
	w.conns = slices.DeleteFunc(w.conns, func(other net.Conn) bool { return other == surplus })
	if t, ok := surplus.(*tls.Conn); ok {
		surplus = t.NetConn() // TLS would wait for the client
	}
	_ = surplus.Close() // its reader has the error
}

func host(c net.Conn) string {
	h, _, _ := net.SplitHostPort(c.RemoteAddr().String())
	return h
}
