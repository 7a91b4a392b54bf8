package pools

import (
	"net/netip"
	"time"
)

// Config is the operator's file as it was written. The JSON of the REST API
// has the same fields. See docs/config.md for each field with examples.
type Config struct {
	// Include names files with further subnets, clusters, tags, pools and chassis. Their
	// paths are relative to the config file. The last part may be a pattern: conf.d/*.yaml.
	Include Strings `json:"include,omitempty"`

	Server   Server         `json:"server"`
	Subnets  []Subnet       `json:"subnets"`
	Clusters []Cluster      `json:"clusters,omitempty"`
	Tags     map[string]Tag `json:"tags,omitempty"`
	Pools    []Pool         `json:"pools"`
	Chassis  []Chassis      `json:"chassis,omitempty"`
}

// Server is where drover listens.
type Server struct {
	Interfaces []string   `json:"interfaces"`           // DHCP is served on these
	Address    netip.Addr `json:"address,omitzero"`     // sent to nodes of subnets of its family without an address of the server as their boot server; default: the first interface's first address of the family
	DHCP       DHCPMode   `json:"dhcp,omitempty"`       // default full
	HTTP       string     `json:"http,omitempty"`       // node-facing listener, default ":80"
	HTTPS      string     `json:"https,omitempty"`      // node-facing listener for config, join and events by TLS; default none
	NodeTLS    *TLS       `json:"nodeTLS,omitempty"`    // key pair of HTTPS; default: a key that drover makes
	TFTP       string     `json:"tftp,omitempty"`       // default ":69"
	Netconsole string     `json:"netconsole,omitempty"` // UDP listener for what kernels print; default none
	ARPProbe   *bool      `json:"arpProbe,omitempty"`   // probe for an address before its first lease; default true

	// RouterAdvertisements is how the router solicitations (RFC 4861) of the interfaces
	// are answered. Default empty.
	RouterAdvertisements RAMode `json:"routerAdvertisements,omitempty"`

	API    string  `json:"api,omitempty"`    // listener for operators, default "127.0.0.1:8443"
	APITLS *APITLS `json:"apiTLS,omitempty"` // needed when API is not a loopback address

	// Traces is the URL of a collector of OpenTelemetry, to which each boot is sent as a trace;
	// default none.
	Traces string `json:"traces,omitempty"`

	// Socket is a unix socket for people of this host, who need no token there.
	Socket *Socket `json:"socket,omitempty"`
	// ClientCertificates are a way to use the REST API without a token. It needs APITLS.
	ClientCertificates *ClientCertificates `json:"clientCertificates,omitempty"`
	// OIDC is a login of the page at a provider of OpenID Connect.
	OIDC *OIDC `json:"oidc,omitempty"`

	// Templates is a directory with boot scripts that replace those of drover, see
	// docs/scripts.md. The path is relative to the config file.
	Templates string `json:"templates,omitempty"`
	// Clients are networks beside the subnets whose hosts TFTP and the node-facing
	// HTTP listeners answer. They take effect without a restart.
	Clients []netip.Prefix `json:"clients,omitempty"`
	// TFTPSinglePort makes drover answer TFTP from the port of its listener instead
	// of a new port for each transfer.
	TFTPSinglePort bool `json:"tftpSinglePort,omitempty"`
	// Also has the node-facing URLs of other servers of the farm, such as http://192.0.2.3: a boot
	// goes on there when this server does not answer. One of this server's own is left out.
	Also []string `json:"also,omitempty"`

	MaxConcurrentImages int      `json:"maxConcurrentImages,omitempty"` // nodes that fetch their root image at a time, default 64
	Grace               Duration `json:"grace,omitempty"`               // for running transfers to end when drover stops, default 30s
	// Retire is how long a node that the config has lost keeps its name, its boots and its
	// addresses; 0: not at all. Default 24h. It takes effect without a restart.
	Retire *Retention `json:"retire,omitempty"`
	// Brake holds a change of the config file that removes, moves or re-addresses many nodes, until
	// an operator has said yes. It takes effect without a restart.
	Brake Brake `json:"brake,omitzero"`
	// AdminKubeconfig is the kubeconfig of the cluster that has the Secrets of
	// secretRef. The path is relative to the config file. Default: the cluster that
	// drover runs in.
	AdminKubeconfig string `json:"adminKubeconfig,omitempty"`
	// Objects are a further source of the farm, in the same cluster.
	Objects Objects `json:"objects,omitzero"`
}

// Objects are where drover finds the objects (Tenant, Pool, Machine, Tag, Subnet, Chassis,
// ExternalHost) of the admin cluster, and keeps the control planes of tenants.
type Objects struct {
	Namespace string `json:"namespace,omitempty"` // empty: objects are not read
}

// TLS names the files with the key pair of a listener. The paths are relative to the
// config file.
type TLS struct {
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

// APITLS is the certificate of the listener for operators: files of a key pair, or one that
// drover issues. The paths are relative to the config file.
type APITLS struct {
	Cert string `json:"cert,omitempty"`
	Key  string `json:"key,omitempty"`
	// SelfSigned makes drover issue the certificate, and an authority for it.
	SelfSigned bool `json:"selfSigned,omitempty"`
	// Names are further DNS names and addresses of that certificate: those of a reverse proxy,
	// or of the network outside.
	Names []string `json:"names,omitempty"`
}

// DHCPMode is the part of DHCP that drover does.
type DHCPMode string

// The DHCP modes.
const (
	DHCPFull  DHCPMode = "full"  // addresses and boot
	DHCPProxy DHCPMode = "proxy" // boot only; another server gives addresses (PXE 2.1, proxyDHCP)
	DHCPOff   DHCPMode = "off"   // none: another server gives addresses and the URLs of drover
)

// RAMode is the answer to IPv6 router solicitations.
type RAMode string

// The answers to router solicitations.
const (
	RAEmpty RAMode = "empty" // an advertisement that configures nothing, where no other router is
	RAOff   RAMode = "off"   // none

	// RAManaged sends hosts to DHCPv6 (M and O), and names the declared IPv6 networks of the
	// interface, without addresses of their own making and without a default route.
	RAManaged RAMode = "managed"
)

// Subnet is a network that nodes live in.
type Subnet struct {
	CIDR   netip.Prefix `json:"cidr"`             // its addresses: 10.28.0.0/16
	Router netip.Addr   `json:"router,omitzero"`  // default gateway of the nodes
	DNS    []netip.Addr `json:"dns,omitempty"`    // DNS servers of the nodes
	Domain string       `json:"domain,omitempty"` // DNS domain of the nodes
	Lease  Duration     `json:"lease,omitempty"`  // lease time of addresses; default 12h

	// Network names the network segment that the subnet is on. Subnets of one
	// network share it: a machine in one may have an address of another.
	// Default: a network of its own.
	Network string `json:"network,omitempty"`

	// Address is sent to the nodes of the subnet as their boot server. Default: the address
	// of one of the server's interfaces in the subnet, else that of the server.
	Address netip.Addr `json:"address,omitzero"`

	// Relays are addresses of relay agents for this subnet that no subnet holds.
	Relays []netip.Addr `json:"relays,omitempty"`

	// RapidCommit gives an IPv6 address in two messages instead of four (RFC 8415,
	// section 18.3.1). Of several DHCPv6 servers on a network, only one may do so.
	RapidCommit bool `json:"rapidCommit,omitempty"`

	// SLAAC makes the IPv6 address of a node without ip6 from the subnet's prefix, which has
	// 64 bits, and the node's MAC (EUI-64, RFC 4291, appendix A): the address that it makes
	// itself from a router's advertisement (RFC 4862). The node's IPv4 address is then in the
	// same network, or the subnet is the only one with slaac.
	SLAAC bool `json:"slaac,omitempty"`
}

// Cluster is a tenant: a Kubernetes cluster that nodes join.
type Cluster struct {
	Name       string      `json:"name"`
	Kubeconfig string      `json:"kubeconfig,omitempty"` // relative to the config file
	SecretRef  SecretRef   `json:"secretRef,omitzero"`   // the Secret with the kubeconfig, instead of a file
	Endpoint   string      `json:"endpoint,omitempty"`   // host:port that nodes dial, when it differs from the kubeconfig
	Token      TokenPolicy `json:"token,omitzero"`
	Approver   Approver    `json:"approver,omitempty"` // default drover
	Serving    bool        `json:"serving,omitempty"`  // drover also approves the serving certificates of kubelets
	Drain      Drain       `json:"drain,omitzero"`

	// ControlPlane makes drover run the control plane, in place of Kubeconfig and SecretRef:
	// the Secret is then NAME-kubeconfig in the namespace of server.objects.
	ControlPlane   *ControlPlane  `json:"controlPlane,omitempty"`
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"` // default Retain; with a ControlPlane only

	// IPFamilies are the families of the addresses that Nodes register with. Default: those
	// of the Services of a ControlPlane, else that of the boot alone.
	IPFamilies IPFamilies `json:"ipFamilies,omitempty"`

	// Hosts are hosts outside the cluster that share its pod network, as HostNetwork
	// describes it.
	Hosts       []ExternalHost `json:"hosts,omitempty"`
	HostNetwork *HostNetwork   `json:"hostNetwork,omitempty"`
}

// SecretRef names a Secret of the admin cluster. The Secret holds the kubeconfig of a
// tenant.
type SecretRef struct {
	Namespace string `json:"namespace"`      // of the Secret
	Name      string `json:"name,omitempty"` // default: the name of the cluster and "-kubeconfig"
	Key       string `json:"key,omitempty"`  // default: the first existing key of value, admin.conf and kubeconfig
}

// Drain describes how a node leaves its cluster after the config has moved it to
// another.
type Drain struct {
	Timeout Duration `json:"timeout,omitempty"` // longest time to evict its pods; default 5m
}

// Approver is the party that approves the client certificates of nodes that join.
type Approver string

// The approvers. Their tokens are of different groups, to which clusters give
// different rights.
const (
	ByDrover  Approver = "drover"  // drover approves only the node that it made the token for
	ByCluster Approver = "cluster" // the cluster's own approver approves any node that the holder of a token names
)

// TokenPolicy describes how the join tokens of a cluster are made.
type TokenPolicy struct {
	Mode   TokenMode `json:"mode,omitempty"`   // default per-boot
	TTL    Duration  `json:"ttl,omitempty"`    // default 10m; 24h if shared
	Rotate Duration  `json:"rotate,omitempty"` // shared only: time between two new tokens; default half of TTL
}

// TokenMode names a way to make join tokens.
type TokenMode string

// The modes of [TokenPolicy].
const (
	PerBoot TokenMode = "per-boot" // one token for one boot of one node
	Shared  TokenMode = "shared"   // one token for all nodes of the cluster, for machines that cannot request their own
)

// Pool is a group of nodes that boot one image and join one cluster.
type Pool struct {
	Name          string    `json:"name"`
	Cluster       string    `json:"cluster,omitempty"`       // cluster that its nodes join; default: none
	Role          PoolRole  `json:"role,omitempty"`          // what its nodes are in the cluster; default node
	Image         string    `json:"image"`                   // image that its nodes boot: debian-12, debian-12:canary (a channel), or debian-12@sha256:...
	Tags          []string  `json:"tags,omitempty"`          // after the tag all, in order
	Delegates     []string  `json:"delegates,omitempty"`     // tags that clients limited to the pool may give its nodes, besides the pool's own
	DelegateNames Strings   `json:"delegateNames,omitempty"` // names that clients limited to the pool may give its nodes, such as team-a-*; default: all
	Nodes         []Node    `json:"nodes,omitempty"`
	CatchAll      bool      `json:"catchall,omitempty"`  // takes unknown machines; the first pool of the file whose Match and Range fit gets a machine
	Match         Match     `json:"match,omitzero"`      // catch-all only: which unknown machines; default: all
	Range         Range     `json:"range,omitzero"`      // catch-all only: the addresses to lease
	Range6        Range     `json:"range6,omitzero"`     // catch-all only: the IPv6 addresses to lease
	Lease         Duration  `json:"lease,omitempty"`     // default: the subnet's
	Broadcast     Broadcast `json:"broadcast,omitempty"` // default auto
	Ignore        bool      `json:"ignore,omitempty"`    // its machines get no answer

	// DiskChange is what becomes of the data on the disks of a machine that boots for another
	// cluster, or without one for another pool, than before: it is erased, the boot ends with an
	// error, or it is mounted. Default wipe.
	DiskChange DiskChange `json:"diskChange,omitempty"`

	// Authoritative is for catch-all pools. False: another server may know the unknown
	// hardware, which then gets silence in place of a NAK. Default true.
	Authoritative *bool `json:"authoritative,omitempty"`

	// SecretsForUnknown is for catch-all pools. True: unknown hardware, which is any machine
	// that asks, gets the passwords and secret files of the pool's tags.
	SecretsForUnknown bool `json:"secretsForUnknown,omitempty"`
}

// PoolRole is what the nodes of a pool are in its cluster.
type PoolRole string

// The roles.
const (
	RoleNode    PoolRole = "node"    // kubelets join it
	RoleGateway PoolRole = "gateway" // they are hosts outside it, with flannel and kube-proxy and without a kubelet
)

// Broadcast is how DHCP answers reach a machine that has no address yet.
type Broadcast string

// The values of [Broadcast].
const (
	BroadcastAuto   Broadcast = "auto"   // as the client's broadcast flag asks for
	BroadcastAlways Broadcast = "always" // by broadcast, for clients that do not receive unicasts before they have an address
)

// Node is one machine.
type Node struct {
	Name        string             `json:"name"`
	MACs        []MAC              `json:"macs,omitempty"`        // of its network cards
	Match       Match              `json:"match,omitzero"`        // identifies a node without MACs; with MACs, a further condition
	IP          netip.Addr         `json:"ip,omitzero"`           // its IPv4 address
	IP6         netip.Addr         `json:"ip6,omitzero"`          // its IPv6 address, by DHCPv6
	Tags        []string           `json:"tags,omitempty"`        // after the pool's
	DHCPOptions map[string]Strings `json:"dhcpOptions,omitempty"` // after those of the tags
	Lease       Duration           `json:"lease,omitempty"`       // default: the pool's
	Ignore      bool               `json:"ignore,omitempty"`      // it gets no answer
	ChassisSlot ChassisSlot        `json:"place,omitzero"`        // the slot of a chassis that it is in
	Power       *NodePower         `json:"power,omitempty"`       // how it is switched; nil: by its chassis, if it is in one
}

// Match describes machines by their DHCP options and relay agent, and by the hardware that
// they have reported. Every field that is set must match. Values are text, in which * stands
// for any run of characters, or bytes written as hex:0a0b.
type Match struct {
	MAC          string   `json:"mac,omitempty"`          // the MAC, such as 94:57:a5:*; for a node a further condition
	ClientID     string   `json:"clientID,omitempty"`     // option 61
	CircuitID    string   `json:"circuitID,omitempty"`    // option 82.1 (RFC 3046): the port of the switch
	RemoteID     string   `json:"remoteID,omitempty"`     // option 82.2 (RFC 3046): the switch
	SubscriberID string   `json:"subscriberID,omitempty"` // option 82.6 (RFC 3993)
	Class        string   `json:"class,omitempty"`        // option 60
	UserClass    string   `json:"userClass,omitempty"`    // option 77
	UUID         string   `json:"uuid,omitempty"`         // option 97 (RFC 4578): the UUID of the machine, which only boot programs send
	Serial       string   `json:"serial,omitempty"`       // serial number: of option 97 of a Raspberry Pi; in pools also the one that the machine reported
	DMI          string   `json:"dmi,omitempty"`          // pools only: vendor and product that the machine reported: HPE ProLiant m710x*
	LLDP         string   `json:"lldp,omitempty"`         // pools only: switch and port of a card, as the machine reported them: leaf-7 ge-0/0/*
	Firmware     Firmware `json:"firmware,omitempty"`
	Arch         Arch     `json:"arch,omitzero"` // option 93 (RFC 4578)
}

// Arch is a processor architecture type of option 93, see the registry
// "Processor Architecture Types" of IANA. It is written as a number, 7 or 0x07.
// The zero Arch is none.
type Arch struct {
	code uint16
	set  bool
}

// Tag is a bundle of settings with a name. Package resolve merges those of a node.
//
// When several tags apply, the later one wins key by key in maps. Lists and kernel
// arguments append, unless they are written with replace.
type Tag struct {
	KernelArgs        KernelArgs         `json:"kernelArgs,omitzero"`
	DHCPOptions       map[string]Strings `json:"dhcpOptions,omitempty"` // by name or number
	Loaders           List[LoaderRule]   `json:"loaders,omitzero"`      // the last rule that matches wins
	MenuTimeout       *Seconds           `json:"menuTimeout,omitempty"` // of the boot menu; default 0: no menu
	UBoot             UBoot              `json:"uboot,omitzero"`
	Timezone          string             `json:"timezone,omitempty"`         // IANA name
	SSHAuthorizedKeys List[string]       `json:"sshAuthorizedKeys,omitzero"` // of root
	Modules           List[string]       `json:"modules,omitzero"`           // loaded at boot
	Sysctls           map[string]string  `json:"sysctls,omitempty"`          // kernel parameter → value
	Mounts            List[Mount]        `json:"mounts,omitzero"`            // file systems; a later one replaces that of its path
	Disks             List[Disk]         `json:"disks,omitzero"`             // disks that the node formats; a later one replaces that of its name
	Zram              Size               `json:"zram,omitempty"`             // compressed swap in RAM: its size before compression; default: none
	Files             map[string]File    `json:"files,omitempty"`            // by absolute path
	Units             map[string]Unit    `json:"units,omitempty"`            // by systemd unit name
	Scripts           map[string]Script  `json:"scripts,omitempty"`          // by name, in whose order they run
	Labels            map[string]string  `json:"labels,omitempty"`           // of the Node
	Taints            List[Taint]        `json:"taints,omitzero"`            // of the Node; a later one replaces that of its key and effect
	KubeletArgs       map[string]string  `json:"kubeletArgs,omitempty"`      // flag name without dashes → value
	Hosts             map[string]Strings `json:"hosts,omitempty"`            // host name → addresses
	Env               map[string]string  `json:"env,omitempty"`              // variables of scripts and templates
	DNS               List[netip.Addr]   `json:"dns,omitzero"`               // name servers in place of those of DHCP
	Search            List[string]       `json:"search,omitzero"`            // domains in place of those of DHCP
	Network           Tree               `json:"network,omitempty"`          // the mapping network: of netplan; its values are templates
	Cron              List[string]       `json:"cron,omitzero"`              // lines of crontab(5) with a user
	MaskUnits         List[string]       `json:"maskUnits,omitzero"`         // systemd units that never start
	RootPasswordHash  Secret             `json:"rootPasswordHash,omitzero"`  // crypt(5)
	DebugShell        DebugShell         `json:"debugShell,omitempty"`       // default never
}

// LoaderRule names the loader for a kind of boot program. Every condition that is set
// must match. A rule without userClass does not match iPXE, which gets its script.
type LoaderRule struct {
	Firmware  Firmware `json:"firmware,omitempty"`
	Arch      Arch     `json:"arch,omitzero"`       // option 93
	Class     string   `json:"class,omitempty"`     // option 60, with * as in [Match]
	UserClass string   `json:"userClass,omitempty"` // option 77, with * as in [Match]
	Loader    string   `json:"loader"`              // a file of the loaders directory, or a URL

	// Server is the TFTP server that has the loader, sent as siaddr and option 66.
	// Default: this server.
	Server netip.Addr `json:"server,omitzero"`
}

// List is a list that appends to the lists of earlier tags. Written as
// {replace: [...]} it replaces them.
type List[T any] struct {
	Replace bool
	Items   []T
}

// KernelArgs are kernel command line words, written as one string. They append to
// those of earlier tags. Written as {replace: "..."} they replace them.
type KernelArgs struct {
	Replace bool
	Args    []string
}

// Strings is one string or a list of them.
type Strings []string

// Duration is a time.Duration written as 90s, 10m or 12h.
type Duration time.Duration

// Range is the span of addresses that a catch-all pool leases from, both ends
// included. In the config and in JSON it is written 10.28.72.10-10.28.72.250, or
// fd00::100-fd00::1ff.
type Range struct {
	First, Last netip.Addr
}

// Taint is a Kubernetes taint that the node registers with.
type Taint struct {
	Key    string `json:"key"`             // [prefix/]name
	Value  string `json:"value,omitempty"` // default: none
	Effect string `json:"effect"`          // NoSchedule, PreferNoSchedule or NoExecute
}
