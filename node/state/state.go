// Package state has the data of a boot that drover-init leaves for its agent, in files in
// RAM that only root may read: [Boot].
package state

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
	"slices"

	"drover/node/client"
	"drover/node/nodeconfig"
	"drover/pools"
	"drover/pools/boots"
)

// The files that a boot leaves for the agent. They are in RAM, readable by root only.
const (
	Dir          = "/run/drover"
	File         = nodeconfig.StateFile
	agentProgram = nodeconfig.AgentProgram
)

// Boot is the data of the boot that the agent needs. It has secrets.
type Boot struct {
	URL     string              `json:"url"`
	Also    []string            `json:"also,omitempty"`   // URLs of other servers
	Secure  string              `json:"secure,omitempty"` // URL of the HTTPS listener; empty: none
	Pin     []byte              `json:"pin,omitempty"`
	MAC     pools.MAC           `json:"mac"`
	Nonce   string              `json:"nonce"`
	Key     []byte              `json:"key"`              // private key of the claim
	Events  []byte              `json:"events,omitempty"` // key that signs events
	Node    string              `json:"node"`
	Pool    string              `json:"pool"`
	Address netip.Addr          `json:"address"`
	Join    bool                `json:"join"`
	Scripts []pools.NamedScript `json:"scripts,omitempty"` // of the online stage, without those that have succeeded
	Env     []string            `json:"env,omitempty"`     // of scripts: NAME=value
	Mounts  []pools.Mount       `json:"mounts,omitempty"`
	Unsent  []boots.Event       `json:"unsent,omitempty"` // the server was away when they happened
}

// Save writes the state to a file in dir, readable by root only.
func (s Boot) Save(dir string) error {
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
	return nodeconfig.WriteFile(filepath.Join(dir, filepath.Base(File)), b, 0o600)
}

// Load reads the file of Save.
func Load(dir string) (Boot, error) {
	var s Boot
	file := filepath.Join(dir, filepath.Base(File))
	b, err := os.ReadFile(file)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("%s is damaged", file) // the cause may quote a secret
	}
	return s, nil
}

// Remove removes the file of Save.
func Remove(dir string) error { return os.Remove(filepath.Join(dir, filepath.Base(File))) }

// Server returns the client of the server, and the key of the boot.
func (s Boot) Server() (*client.Server, hpke.PrivateKey, error) {
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
	var also []*url.URL
	for _, text := range s.Also {
		u, err := url.Parse(text)
		if err != nil {
			return nil, nil, err
		}
		also = append(also, u)
	}
	key, err := pools.LoadKey(s.Key)
	if err != nil {
		return nil, nil, errors.New("the boot's key is damaged")
	}
	srv := &client.Server{Base: u, Secure: secure, Also: also, MAC: s.MAC, Nonce: s.Nonce, Client: client.NewHTTP(s.Pin)}
	srv.SignEvents(s.Events)
	return srv, key, nil
}

// ScriptEnv returns the environment variables of a script: those of the lease and of the
// operator, then its node and stage.
func (s Boot) ScriptEnv(stage pools.Stage) []string {
	return append(slices.Clone(s.Env),
		"DROVER_NODE="+s.Node,
		"DROVER_POOL="+s.Pool,
		"DROVER_MAC="+s.MAC.String(),
		"DROVER_ADDRESS="+s.Address.String(),
		"DROVER_URL="+s.URL,
		"DROVER_STAGE="+string(stage),
	)
}

// CopySelf copies this program to dir, where the agent's unit starts it: the initramfs is
// about to be removed.
func CopySelf(dir string) error {
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
