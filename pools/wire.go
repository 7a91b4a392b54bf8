package pools

import (
	"crypto/ecdh"
	"crypto/hpke"
	"errors"
	"time"
)

// What server and node say to each other over the node-facing HTTP listener.
//
// A node proves that it is the boot that it claims to be with the nonce from
// its kernel command line (header [NonceHeader]) and by asking from the
// address that its MAC has leased. On its first config request it sends a
// public key that it made for this boot; the boot is bound to that key, and
// answers that carry secrets are sealed to it (HPKE, RFC 9180). So neither
// someone who reads the wire nor someone who replays the nonce learns them.
const (
	NonceHeader = "Drover-Nonce"

	// WaitHeader is for how many seconds the client of a root image likes to be
	// kept waiting when others are before it. An answer of 503 then has its
	// place in PlaceHeader, from 1. The place is kept for who asks again soon.
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
	// reports of its Node too: it tells one boot of a node from another. A join
	// request has it.
	BootID string `json:"bootID,omitempty"`
}

// NodeConfig is the sealed answer to a config request: what the node needs to
// become itself.
type NodeConfig struct {
	Hostname          string            `json:"hostname"`
	Domain            string            `json:"domain,omitempty"`
	Pool              string            `json:"pool"`
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

// Event is a step that a node reports.
type Event struct {
	Step   Step    `json:"step"`
	Uptime float64 `json:"uptime"`           // seconds since the kernel started
	Detail string  `json:"detail,omitempty"` // "260 MB in 2.4 s"
	Error  string  `json:"error,omitempty"`  // what went wrong; the node goes on trying
}

// Step is a milestone of a boot, in the order in which [Steps] lists them.
type Step string

// The steps, with who sees each: the server's DHCP, TFTP or HTTP, the node
// itself, or the tenant's cluster.
const (
	StepDiscover Step = "discover"    // dhcp: first DISCOVER of the firmware
	StepOffer    Step = "offer"       // dhcp: it was offered an address
	StepLoader   Step = "loader"      // tftp, http: loader fetched
	StepScript   Step = "script"      // http: boot script fetched
	StepKernel   Step = "kernel"      // http: kernel fetched
	StepInitrd   Step = "initrd"      // http: initrd fetched
	StepInit     Step = "init"        // node: drover-init runs
	StepNetwork  Step = "network"     // node: address configured
	StepQueued   Step = "queued"      // node: waits for its turn to fetch the squashfs; not in every boot
	StepImage    Step = "image"       // node: squashfs in RAM, digest right
	StepConfig   Step = "config"      // node: config applied
	StepSwitch   Step = "switch-root" // node: about to start the real init
	StepOnline   Step = "online"      // node: join agent runs in the real root
	StepToken    Step = "token"       // server: join token minted and signed
	StepCSR      Step = "csr"         // cluster: its kubelet's certificate request was approved
	StepJoined   Step = "joined"      // node: kubeadm join succeeded
	StepReady    Step = "ready"       // cluster: Node is Ready
)

// Steps lists the steps of a boot in order.
var Steps = []Step{StepDiscover, StepOffer, StepLoader, StepScript, StepKernel, StepInitrd, StepInit, StepNetwork, StepQueued,
	StepImage, StepConfig, StepSwitch, StepOnline, StepToken, StepCSR, StepJoined, StepReady}

// BootRecord is the timeline of one boot of one machine.
type BootRecord struct {
	ID      string     `json:"id"` // unique, sorts by time
	MAC     MAC        `json:"mac"`
	Node    string     `json:"node"`
	Pool    string     `json:"pool"`
	Cluster string     `json:"cluster,omitempty"`
	Image   string     `json:"image"`
	Started time.Time  `json:"started"`
	Steps   []BootStep `json:"steps"`
	Error   string     `json:"error,omitempty"` // the last error reported; empty again once a later step is reached

	// Stuck says that it makes no progress. It is not kept, but found out when
	// somebody asks, see [MarkStuck].
	Stuck *Stuck `json:"stuck,omitempty"`
}

// BootStep is one entry of a timeline.
type BootStep struct {
	Step   Step      `json:"step"`
	Time   time.Time `json:"time"` // the server's clock
	Detail string    `json:"detail,omitempty"`
	Error  string    `json:"error,omitempty"`
}

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

// Refusals that a node's request can meet. The node-facing listener answers
// both with 403.
var (
	ErrNonce   = errors.New("nonce is not the one of this machine's current boot")
	ErrClaimed = errors.New("this boot already belongs to another key")
)

// ErrNotBooting refuses a boot script to a machine whose firmware did not ask
// for an address since its last boot: what asks is not a boot program, but runs
// on the machine, or behind its address.
var ErrNotBooting = errors.New("the firmware of this machine has sent no DISCOVER since its last boot")
