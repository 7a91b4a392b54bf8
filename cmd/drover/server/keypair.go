package server

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"
)

// keyPair is a certificate with its key, in files that something renews.
type keyPair struct {
	cert, key string
	log       *slog.Logger

	mu      sync.Mutex
	pair    *tls.Certificate
	files   [2]stamp // of pair, or of files that are refused
	checked time.Time
}

// stamp identifies a version of a file; zero if there is none.
type stamp struct {
	size     int64
	modified time.Time
}

func stampOf(file string) stamp {
	info, err := os.Stat(file)
	if err != nil {
		return stamp{}
	}
	return stamp{info.Size(), info.ModTime()}
}

// load reads the files.
func (k *keyPair) load() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.read([2]stamp{stampOf(k.cert), stampOf(k.key)})
}

func (k *keyPair) read(files [2]stamp) error {
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
	files := [2]stamp{stampOf(k.cert), stampOf(k.key)}
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
