package ilosim

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"time"
)

// HTTPSServer is a management processor that listens for HTTPS, with a
// certificate that it made itself, as real ones have.
type HTTPSServer struct {
	Addr string // 127.0.0.1:34567
	Pin  string // sha256:... of the certificate

	server *http.Server
	done   chan struct{}
}

// ServeHTTPS listens on addr until Close.
func ServeHTTPS(addr string, h http.Handler) (*HTTPSServer, error) {
	cert, err := newCertificate()
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(cert.Certificate[0])
	s := &HTTPSServer{
		Addr: l.Addr().String(), Pin: "sha256:" + hex.EncodeToString(sum[:]), done: make(chan struct{}),
		server: &http.Server{
			Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
			TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
		},
	}
	go func() {
		defer close(s.done)
		_ = s.server.ServeTLS(l, "", "")
	}()
	return s, nil
}

// Close ends the listener and all connections.
func (s *HTTPSServer) Close() error {
	err := s.server.Close()
	<-s.done
	return err
}

func newCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "ILOCZ3402"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// object is a JSON object.
type object map[string]any

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}

// fail answers as the older REST does.
func fail(w http.ResponseWriter, code int, id string) {
	writeJSON(w, code, object{"Messages": []object{{"MessageID": "Base.0.10." + id}}, "Type": "ExtendedError.1.0.0"})
}
