package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"sync"
	"time"

	"drover/internal/atomicfile"
)

// Files is a certificate with its key, in files that something renews.
type Files struct {
	Cert, Key string
	Log       *slog.Logger

	mu      sync.Mutex
	pair    *tls.Certificate
	files   [2]string // the versions of pair, or of files that are refused
	checked time.Time
}

func (f *Files) versions() [2]string {
	return [2]string{atomicfile.Version(f.Cert), atomicfile.Version(f.Key)}
}

// Load reads the files.
func (f *Files) Load() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.read(f.versions())
}

func (f *Files) read(files [2]string) error {
	f.files = files
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err == nil {
		f.pair = &pair
	}
	return err
}

// checkEvery is how often what a certificate is made of is compared with what is in use.
const checkEvery = time.Second

// Current returns the certificate. It reads the files again if they have changed; if they
// cannot be used, it goes on with those before.
func (f *Files) Current() *tls.Certificate {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.checked) < checkEvery {
		return f.pair
	}
	f.checked = time.Now()
	files := f.versions()
	if files == f.files {
		return f.pair
	}
	if err := f.read(files); err != nil {
		f.Log.Error("server.apiTLS: the new files are refused, and the certificate before stays in use", "err", err)
		return f.pair
	}
	f.Log.Info("server.apiTLS: the certificate was renewed", "until", f.pair.Leaf.NotAfter, "pin", Pin(f.pair.Leaf))
	return f.pair
}

// File implements [Source].
func (f *Files) File() string { return f.Cert }

// Pinned implements [Source]: clients know the server by the key of its certificate.
func (f *Files) Pinned() *x509.Certificate { return f.Current().Leaf }
