package resolve

import (
	"net/netip"

	"drover/pools"
)

// Query identifies the machine that sent a request. The zero value of a field means
// that it is not known. HTTP and TFTP know only the MAC.
type Query struct {
	MAC      pools.MAC
	Firmware pools.Firmware // empty for a plain DHCP client
	IPXE     bool           // the client is already iPXE: it gets its script, not a loader
	NoHTTP   bool           // iPXE lists its features (175), and HTTP is not among them; only DHCPv4 says so
	Chained  bool           // another program of the same boot has asked before; only package machines knows
	IPv6     bool           // the client asks over IPv6: the Plan has its addresses, networks and URLs of IPv6

	// The fields from here on are known from DHCP only. Strings hold the bytes as received.
	Link         netip.Addr // an address of the client's network: the relay agent's, or the server's own there
	Relayed      bool       // Link is not the server's own: a relay agent or the client selected the network
	Archs        []uint16   // option 93
	Class        string     // option 60
	UserClass    string     // option 77: the first class of the list
	ClientID     string     // option 61
	UUID         string     // option 97: its 16 bytes behind the type; operating systems send none
	CircuitID    string     // option 82.1
	RemoteID     string     // option 82.2
	SubscriberID string     // option 82.6
	Renewing     bool       // the client renews its address, possibly without its relay agent, which would add option 82

	// Keeps is the address that the client has, or was offered: that of a REQUEST, RENEW or REBIND,
	// and of messages about it. A DISCOVER or SOLICIT has none.
	Keeps netip.Addr

	// Hardware is what the machine reported in an earlier boot; nil: nothing. Only package
	// machines knows it.
	Hardware *pools.Inventory
}

// Plan is the answer to a [Query]: all settings of one machine. It holds no secret;
// join tokens are not part of it.
//
// Callers share a Plan and must not change it.
type Plan struct {
	Node     string      `json:"node"` // host name and Kubernetes Node name
	MAC      pools.MAC   `json:"mac"`  // of the query
	MACs     []pools.MAC `json:"macs"` // all MACs of the node
	Pool     string      `json:"pool"`
	CatchAll bool        `json:"catchall,omitempty"` // an unknown machine: the name is made from the MAC
	Matched  string      `json:"matched,omitempty"`  // the options that identified the node; empty: its MAC; "clientID", "circuitID remoteID", ...
	Cluster  string      `json:"cluster,omitempty"`  // empty: the machine boots, but joins no cluster
	Gateway  string      `json:"gateway,omitempty"`  // cluster that the machine is a host of, without a kubelet; Cluster is empty then
	Image    string      `json:"image"`              // name, name:channel, or name@sha256:<manifest digest>

	// Generation is the digest of the image that a boot gets, once its script chose it.
	Generation string `json:"-"`

	// Retired reports that the config has lost the node: the machine keeps its address, and gets
	// nothing else.
	Retired bool `json:"retired,omitempty"`

	// NextBoot is in force for this boot only. Only a running server sets it.
	NextBoot pools.NextBoot `json:"nextBoot,omitempty"`

	// Address is the node's own address. It is the zero Addr for a machine of a
	// catch-all pool, which leases one from Range. It may be the zero Addr in proxy
	// mode, where another server gives addresses.
	Address netip.Addr  `json:"address,omitzero"`
	Range   pools.Range `json:"range,omitzero"`

	// Address6 and Range6 are those of IPv6, whatever the family of the query. The other
	// fields are of the family of the query.
	Address6 netip.Addr     `json:"address6,omitzero"`
	Range6   pools.Range    `json:"range6,omitzero"`
	Subnet   pools.Subnet   `json:"subnet"`
	Lease    pools.Duration `json:"lease"` // lease time of the address

	// Holder is the lease of another machine that is in force on Address. The machine
	// does not get its address before the lease ends. Only a running server sets it.
	Holder *pools.Lease `json:"holder,omitempty"`

	Broadcast bool `json:"broadcast,omitempty"` // DHCP answers are broadcast

	DiskChange pools.DiskChange `json:"diskChange,omitempty"` // see [pools.Pool.DiskChange]; empty: wipe

	// Yields reports that another server may know the machine: it gets silence in place
	// of a NAK, see [pools.Pool.Authoritative].
	Yields bool `json:"yields,omitempty"`

	Boot     BootTarget `json:"boot"`
	Options  []Option   `json:"dhcpOptions,omitempty"`  // by code; without those that the protocol needs
	Options6 []Option6  `json:"dhcp6Options,omitempty"` // the same of DHCPv6
	Settings `json:"settings"`

	// Advertised is what the machine is told about this server, by the network that it is
	// in. It is nil only for a Plan that no Farm has made.
	Advertised *Advertised `json:"-"`

	farm   *Farm // farm, entry and query are the sources of Why and SubnetOf
	entry  *entry
	query  Query
	loader int // index of the rule in Loaders that names Boot.File, or -1
}

// Query returns the query that the plan answers.
func (p *Plan) Query() Query { return p.query }

// BootTarget is the boot server and the file that DHCP sends to a machine.
type BootTarget struct {
	// Server goes into siaddr and option 66: the boot address of the machine's network,
	// unless a loader rule names another server. DHCPv6 sends it as part of File.
	Server netip.Addr `json:"server"`
	// File goes into the BOOTP file field and option 67: the name of a loader
	// for TFTP, or a URL for UEFI HTTP Boot, for iPXE, and for all clients of
	// DHCPv6. It is empty for a plain DHCP client.
	File string `json:"file,omitempty"`
}

// Option is a DHCP option ready for the wire.
type Option struct {
	Code uint8  `json:"code"`
	Name string `json:"name,omitempty"` // "ntp-server"; empty when set by number and without a known name
	Text string `json:"value"`          // as the operator wrote it
	Data []byte `json:"-"`              // RFC 2132 encoding

	Class  string `json:"class,omitempty"`  // the vendor class that it is for, with *; it then replaces the option without one
	Forced bool   `json:"forced,omitempty"` // sent unasked
}

// Option6 is an option of DHCPv6 ready for the wire.
type Option6 struct {
	Code uint16 `json:"code"`
	Name string `json:"name,omitempty"`
	Text string `json:"value"` // as the operator wrote it
	Data []byte `json:"-"`

	Forced bool `json:"forced,omitempty"` // sent unasked
}

// Settings are the tags of a node, merged.
type Settings struct {
	KernelArgs        []string                `json:"kernelArgs,omitempty"`
	Timezone          string                  `json:"timezone,omitempty"`
	SSHAuthorizedKeys []string                `json:"sshAuthorizedKeys,omitempty"`
	Modules           []string                `json:"modules,omitempty"`
	Sysctls           map[string]string       `json:"sysctls,omitempty"`
	Mounts            []pools.Mount           `json:"mounts,omitempty"`
	Disks             []pools.Disk            `json:"disks,omitempty"`
	Zram              pools.Size              `json:"zram,omitempty"`
	Files             map[string]pools.File   `json:"files,omitempty"`
	Units             map[string]pools.Unit   `json:"units,omitempty"`
	Scripts           map[string]pools.Script `json:"scripts,omitempty"`
	Loaders           []pools.LoaderRule      `json:"loaders,omitempty"`
	MenuTimeout       pools.Seconds           `json:"menuTimeout,omitempty"`
	UBoot             pools.UBoot             `json:"uboot,omitzero"`
	Labels            map[string]string       `json:"labels,omitempty"`
	Taints            []pools.Taint           `json:"taints,omitempty"`
	KubeletArgs       map[string]string       `json:"kubeletArgs,omitempty"`

	Hosts            map[string]pools.Strings `json:"hosts,omitempty"`
	Env              map[string]string        `json:"env,omitempty"`
	DNS              []netip.Addr             `json:"dns,omitempty"`
	Search           []string                 `json:"search,omitempty"`
	Network          pools.Tree               `json:"network,omitempty"`
	Cron             []string                 `json:"cron,omitempty"`
	MaskUnits        []string                 `json:"maskUnits,omitempty"`
	RootPasswordHash pools.Secret             `json:"-"`
	DebugShell       pools.DebugShell         `json:"debugShell,omitempty"`
}

// Why maps each value of a [Plan] to its origin, see [Plan.Why]. The keys are
// paths into the Plan: "image", "labels.label1", "files./etc/motd",
// "kernelArgs[0]", "dhcpOptions.42".
type Why map[string]pools.Origin

// Explained is a plan with the origins of its values, in an answer of the REST API.
type Explained struct {
	Plan
	Origins Why `json:"why"`
	// Hidden marks a plan without the contents of files, units and scripts, and without
	// other settings that may be secret.
	Hidden bool `json:"hidden,omitempty"`
}

// MachineID returns the machine-id(5) of the node, see [pools.MachineID].
func (p *Plan) MachineID() string {
	if len(p.MACs) == 0 {
		return pools.MachineID(p.MAC)
	}
	return pools.MachineID(p.MACs[0])
}
