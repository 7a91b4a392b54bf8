package pools

import (
	"crypto/ecdh"
	"crypto/hmac"
	"crypto/hpke"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"
)

// The messages between server and node on the node-facing HTTP listener.
//
// A node proves its identity in two ways. It sends the nonce from its kernel command
// line (header [NonceHeader]), and its requests come from the address that its MAC has
// leased. With its first config request it sends a public key that it made for this
// boot. The boot is bound to that key, and answers with secrets are encrypted to it
// (HPKE, RFC 9180). An attacker that reads the network or replays the nonce cannot
// decrypt them. One of the answers has the key with which the node signs its events from
// then on, since pods can read the nonce in /proc/cmdline.
const (
	NonceHeader = "Drover-Nonce"

	// SignatureHeader is the signature of an event, see [SignEvent].
	SignatureHeader = "Drover-Signature"

	// WaitHeader is the longest time, in seconds, that the client of a root image
	// waits in the queue. PlaceHeader of a 503 answer is its position in the queue,
	// from 1. A client that repeats its request soon keeps its position.
	WaitHeader  = "Drover-Wait"
	PlaceHeader = "Drover-Place"

	// MaxEventBody, MaxInventory and MaxNodeRequest bound what a node may send, in bytes:
	// an event, an inventory, anything else. [Inventory.Clean] keeps to the bound.
	MaxEventBody   = 8 << 10
	MaxInventory   = 32 << 10
	MaxNodeRequest = 8 << 10

	// MaxPeerBody bounds what a server of the farm sends another one, in bytes.
	MaxPeerBody = 96 << 10
)

// Paths of the node-facing listener; {mac} is [MAC.Dashed].
const (
	ScriptPath = "/boot/"    // + {mac}: GET, the boot script
	ImagePath  = "/images/"  // + {name}/{digest}/{file}: GET, HEAD
	LoaderPath = "/loaders/" // + {file...}: GET, HEAD
	PeersPath  = "/peers"    // POST, by another server of the farm
	NodePath   = "/node/"    // + {mac}/config, {mac}/join, {mac}/events: POST
)

// KeyRequest is the body of a config or join request.
type KeyRequest struct {
	PublicKey []byte `json:"publicKey"` // X25519, 32 bytes

	// BootID is the kernel's /proc/sys/kernel/random/boot_id. It distinguishes the
	// boots of a node, and its kubelet reports the same value in the Node. Join
	// requests have it.
	BootID string `json:"bootID,omitempty"`
}

// NodeConfig is the sealed answer to a config request: the identity and the settings
// of the node.
type NodeConfig struct {
	Hostname          string            `json:"hostname"`
	Domain            string            `json:"domain,omitempty"`
	Pool              string            `json:"pool"`
	MachineID         string            `json:"machineID"` // see [MachineID]
	Timezone          string            `json:"timezone,omitempty"`
	SSHAuthorizedKeys []string          `json:"sshAuthorizedKeys,omitempty"`
	Modules           []string          `json:"modules,omitempty"`
	Sysctls           map[string]string `json:"sysctls,omitempty"`
	Mounts            []Mount           `json:"mounts,omitempty"`
	Disks             []Disk            `json:"disks,omitempty"`
	Zram              Size              `json:"zram,omitempty"`
	Tenant            DiskTenant        `json:"tenant,omitzero"`
	Files             map[string]File   `json:"files,omitempty"` // without references; templates are rendered
	Units             map[string]Unit   `json:"units,omitempty"`
	Scripts           []NamedScript     `json:"scripts,omitempty"`  // sorted by stage and name; templates are rendered
	Join              bool              `json:"join"`               // there is a cluster to join
	Time              time.Time         `json:"time,omitzero"`      // the server's clock when it answered
	EventKey          []byte            `json:"eventKey,omitempty"` // secret: for [SignEvent]; empty: the server has none

	Hosts            map[string]Strings `json:"hosts,omitempty"` // host name → addresses
	MaskUnits        []string           `json:"maskUnits,omitempty"`
	RootPasswordHash string             `json:"rootPasswordHash,omitempty"` // secret: crypt(5)
	Env              map[string]string  `json:"env,omitempty"`              // variables of the scripts
}

// DiskTenant is whom a node boots for, as far as its disks are concerned.
type DiskTenant struct {
	Name   string     `json:"name"`             // see [TenantName]
	Former string     `json:"former,omitempty"` // tenant of the node's boot before; empty: the server does not know it
	Key    []byte     `json:"key,omitempty"`    // secret of the tenant's nodes: proves the marks of its disks
	Change DiskChange `json:"change"`           // what becomes of the data of another tenant
}

// NamedScript is a script ready to run.
type NamedScript struct {
	Name   string `json:"name"`
	Stage  Stage  `json:"stage"`
	Run    string `json:"run"`
	Source bool   `json:"source,omitempty"` // see [Script]
}

// JoinConfig is the sealed answer to a join request.
type JoinConfig struct {
	// Kubeadm is a kubeadm.k8s.io/v1beta4 JoinConfiguration. It holds the bootstrap
	// token, so the node writes it to a file in RAM that only root can read.
	Kubeadm string `json:"kubeadm"`
}

// JoinToken is the current shared token of a cluster, with the other values that a join
// needs. It is for operators, and is not part of a Plan.
type JoinToken struct {
	Cluster      string    `json:"cluster"`
	Token        string    `json:"token"` // secret
	Expires      time.Time `json:"expires"`
	Endpoint     string    `json:"endpoint"`     // host:port
	CACertHashes []string  `json:"caCertHashes"` // of the cluster, as kubeadm writes them
}

// The errors of a request for a shared token.
var (
	ErrNoCluster = errors.New("no such cluster")
	ErrNotShared = errors.New("its tokens are for one boot of one node each (token.mode is not shared)")
)

// SignEvent returns the signature of the body of an event with the event key of a boot:
// the HMAC-SHA256 in hex.
func SignEvent(key, body []byte) string {
	h := hmac.New(sha256.New, key)
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}

// IsSigned reports whether a signature is that of [SignEvent].
func IsSigned(key, body []byte, signature string) bool {
	return hmac.Equal([]byte(SignEvent(key, body)), []byte(signature))
}

// sealInfo returns the HPKE info, which binds a sealed answer to its request.
func sealInfo(mac MAC, what string) []byte { return []byte("drover/1 " + what + " " + mac.String()) }

// Seal encrypts an answer for the holder of the private key of publicKey. what is the
// kind of the answer, "config" or "join".
func Seal(publicKey []byte, mac MAC, what string, plaintext []byte) ([]byte, error) {
	pub, err := hpke.DHKEM(ecdh.X25519()).NewPublicKey(publicKey)
	if err != nil {
		return nil, errors.New("public key is not a valid X25519 key of 32 bytes")
	}
	return hpke.Seal(pub, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), sealInfo(mac, what), plaintext)
}

// Open decrypts an answer of [Seal]. It fails for another MAC or another kind.
func Open(key hpke.PrivateKey, mac MAC, what string, sealed []byte) ([]byte, error) {
	return hpke.Open(key, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), sealInfo(mac, what), sealed)
}

// NewKey makes the key of one boot. Its public half goes into [KeyRequest].
func NewKey() (hpke.PrivateKey, error) { return hpke.DHKEM(ecdh.X25519()).GenerateKey() }

// LoadKey returns the key with the bytes that its Bytes method returned.
func LoadKey(b []byte) (hpke.PrivateKey, error) { return hpke.DHKEM(ecdh.X25519()).NewPrivateKey(b) }
