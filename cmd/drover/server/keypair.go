package server

import (
	"crypto/tls"
	"log/slog"
	"sync"
	"time"

	"drover/pools/atomicfile"
)

// keyPair is a certificate with its key, in files that something renews.
type keyPair struct {
	cert, key string
	log       *slog.Logger

	mu      sync.Mutex
	pair    *tls.Certificate
	files   [2]string // the versions of pair, or of files that are refused
	checked time.Time
}

func (k *keyPair) versions() [2]string {
	return [2]string{atomicfile.Version(k.cert), atomicfile.Version(k.key)}
}

// load reads the files.
func (k *keyPair) load() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.read(k.versions())
}

func (k *keyPair) read(files [2]string) error {
	k.files = files
	pair, err := tls.LoadX509KeyPair(k.cert, k.key)
	if err == nil {
		k.pair = &pair
	}
	return err
}

// checkEvery is how often the files are compared with those in use.
const checkEvery = time.Second

// current returns the certificate. It reads the files again if they have changed; if they
// cannot be used, it goes on with those before.
func (k *keyPair) current() *tls.Certificate {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.checked) < checkEvery {
		return k.pair
	}
	k.checked = time.Now()
	files := k.versions()
	if files == k.files {
		return k.pair
	}
	if err := k.read(files); err != nil {
		k.log.Error("server.apiTLS: the new files are refused, and the certificate before stays in use", "err", err)
		return k.pair
	}
	k.log.Info("server.apiTLS: the certificate was renewed", "until", k.pair.Leaf.NotAfter)
	return k.pair
}
