package main

import (
	"crypto/hpke"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"

	"drover/cmd/drover-init/nodeconfig"
	"drover/pools"
)

// What a boot leaves behind for the agent. All of it is in RAM, for root only.
const (
	stateDir     = "/run/drover"
	stateFile    = nodeconfig.StateFile
	agentProgram = nodeconfig.AgentProgram
)

// bootState is what the agent must know of the boot. It holds secrets.
type bootState struct {
	URL     string              `json:"url"`
	Secure  string              `json:"secure,omitempty"` // of what goes by TLS; empty: nothing
	Pin     []byte              `json:"pin,omitempty"`
	MAC     pools.MAC           `json:"mac"`
	Nonce   string              `json:"nonce"`
	Key     []byte              `json:"key"` // private: what the boot is bound to
	Node    string              `json:"node"`
	Pool    string              `json:"pool"`
	Address netip.Addr          `json:"address"`
	Join    bool                `json:"join"`
	Scripts []pools.NamedScript `json:"scripts,omitempty"` // of the online stage
}

// save writes the state into dir, readable by root only.
func (s bootState) save(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return err
	}
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return nodeconfig.WriteFile(filepath.Join(dir, filepath.Base(stateFile)), b, 0o600)
}

// loadState reads what save wrote.
func loadState(dir string) (bootState, error) {
	var s bootState
	file := filepath.Join(dir, filepath.Base(stateFile))
	b, err := os.ReadFile(file)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("%s is damaged", file) // the cause may quote a secret
	}
	return s, nil
}

// server returns the server that the state names, and the key of the boot.
func (s bootState) server() (*server, hpke.PrivateKey, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, nil, err
	}
	var secure *url.URL
	if s.Secure != "" {
		if secure, err = url.Parse(s.Secure); err != nil {
			return nil, nil, err
		}
	}
	key, err := pools.LoadKey(s.Key)
	if err != nil {
		return nil, nil, errors.New("the boot's key is damaged")
	}
	return &server{Base: u, Secure: secure, MAC: s.MAC, Nonce: s.Nonce, Client: newHTTPClient(s.Pin)}, key, nil
}

// copySelf puts this program where the agent's unit runs it from: the initramfs
// that it came in is about to vanish.
func copySelf(dir string) error {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	to, err := os.OpenFile(filepath.Join(dir, filepath.Base(agentProgram)), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, self)
	return errors.Join(err, to.Close())
}
