package pools

import (
	"crypto/ecdh"
	"crypto/hpke"
	"errors"
	"time"
)

// Messages between server and node on the node-facing HTTP listener.
//
// A node proves that it is the boot that it claims to be with the nonce from
// its kernel command line (header [NonceHeader]) and by asking from the
// address that its MAC has leased. On its first config request it sends a
// public key that it made for this boot; the boot is bound to that key, and
// answers that carry secrets are sealed to it (HPKE, RFC 9180). So an
// attacker who reads the network or replays the nonce does not learn them.
const (
	NonceHeader = "Drover-Nonce"

	// WaitHeader is how many seconds the client of a root image waits at most
	// while others are before it. An answer of 503 has its place in the queue in
	// PlaceHeader, from 1. The place is kept for a client that asks again soon.
	WaitHeader  = "Drover-Wait"
	PlaceHeader = "Drover-Place"

	// MaxEventBody and MaxNodeRequest bound what a node may send, in bytes.
	MaxEventBody   = 8 << 10
	MaxNodeRequest = 8 << 10
)

// Paths of the node-facing listener; {mac} is [MAC.Dashed].
const (
	ScriptPath = "/boot/"    // + {mac}: GET, the boot script
	ImagePath  = "/images/"  // + {name}/{digest}/{file}: GET, HEAD
	LoaderPath = "/loaders/" // + {file}: GET, HEAD
	NodePath   = "/node/"    // + {mac}/config, {mac}/join, {mac}/events: POST
)

// KeyRequest is the body of a config or join request.
type KeyRequest struct {
	PublicKey []byte `json:"publicKey"` // X25519, 32 bytes

	// BootID is the kernel's /proc/sys/kernel/random/boot_id, which a kubelet
	// reports of its Node too: it distinguishes the boots of a node. A join
	// request has it.
	BootID string `json:"bootID,omitempty"`
}

// NodeConfig is the sealed answer to a config request: what the node needs to
// become itself.
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
	Files             map[string]File   `json:"files,omitempty"`
	Units             map[string]Unit   `json:"units,omitempty"`
	Scripts           []NamedScript     `json:"scripts,omitempty"` // by stage and name, templates already rendered
	Join              bool              `json:"join"`              // there is a cluster to join
	Time              time.Time         `json:"time,omitzero"`     // the server's clock when it answered
}

// NamedScript is a script ready to run.
type NamedScript struct {
	Name  string `json:"name"`
	Stage Stage  `json:"stage"`
	Run   string `json:"run"`
}

// JoinConfig is the sealed answer to a join request.
type JoinConfig struct {
	// Kubeadm is a kubeadm.k8s.io/v1beta4 JoinConfiguration. It holds the
	// bootstrap token: it goes into a file that only root reads, in RAM.
	Kubeadm string `json:"kubeadm"`
}

// JoinToken is the token that all nodes of a cluster share now, with what a node
// needs beside it. It is shown to operators, and is no part of a Plan.
type JoinToken struct {
	Cluster      string    `json:"cluster"`
	Token        string    `json:"token"` // secret
	Expires      time.Time `json:"expires"`
	Endpoint     string    `json:"endpoint"`     // host:port
	CACertHashes []string  `json:"caCertHashes"` // of the cluster, as kubeadm writes them
}

// Refusals of a shared token.
var (
	ErrNoCluster = errors.New("no such cluster")
	ErrNotShared = errors.New("its tokens are for one boot of one node each (token.mode is not shared)")
)

// sealInfo binds a sealed answer to what it was asked for.
func sealInfo(mac MAC, what string) []byte { return []byte("drover/1 " + what + " " + mac.String()) }

// Seal encrypts an answer ("config" or "join") for the boot that made
// publicKey. Nobody else can open it.
func Seal(publicKey []byte, mac MAC, what string, plaintext []byte) ([]byte, error) {
	pub, err := hpke.DHKEM(ecdh.X25519()).NewPublicKey(publicKey)
	if err != nil {
		return nil, errors.New("public key is not a valid X25519 key of 32 bytes")
	}
	return hpke.Seal(pub, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), sealInfo(mac, what), plaintext)
}

// Open decrypts what [Seal] made.
func Open(key hpke.PrivateKey, mac MAC, what string, sealed []byte) ([]byte, error) {
	return hpke.Open(key, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), sealInfo(mac, what), sealed)
}

// NewKey makes the key of one boot. Its public half goes into [KeyRequest].
func NewKey() (hpke.PrivateKey, error) { return hpke.DHKEM(ecdh.X25519()).GenerateKey() }

// LoadKey reads the bytes of a key, as its Bytes method gives them.
func LoadKey(b []byte) (hpke.PrivateKey, error) { return hpke.DHKEM(ecdh.X25519()).NewPrivateKey(b) }
