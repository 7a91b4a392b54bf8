package client

import (
	"net/netip"

	"drover/pools"
	"drover/pools/boots"
	"drover/pools/resolve"
	"drover/web/answer"
)

// What can be read. docs/rest.md has the parameters of each.
const (
	Nodes     Path[[]pools.NodeInfo]      = "/api/v1/nodes"
	Node      Path[pools.NodeInfo]        = "/api/v1/nodes/{name}"
	Pools     Path[[]pools.PoolInfo]      = "/api/v1/pools"
	Tags      Path[[]pools.TagInfo]       = "/api/v1/tags"
	Clusters  Path[[]pools.ClusterInfo]   = "/api/v1/clusters"
	JoinToken Path[pools.JoinToken]       = "/api/v1/clusters/{cluster}/token"
	Images    Path[[]pools.ImageInfo]     = "/api/v1/images"
	Channels  Path[[]pools.Channel]       = "/api/v1/channels"
	Leases    Path[[]pools.LeaseInfo]     = "/api/v1/leases"
	Addresses Path[[]netip.Addr]          = "/api/v1/addresses"
	Boots     Path[[]boots.Record]        = "/api/v1/boots"
	Unknown   Path[[]pools.Unknown]       = "/api/v1/unknown"
	Chassis   Path[[]pools.ChassisStatus] = "/api/v1/chassis"
	PowerJobs Path[[]pools.PowerJob]      = "/api/v1/power"
	PowerJob  Path[pools.PowerJob]        = "/api/v1/power/{id}"
	Audit     Path[[]pools.AuditEntry]    = "/api/v1/audit"
	Tokens    Path[[]pools.APIToken]      = "/api/v1/tokens"
	Config    Path[pools.ConfigInForce]   = "/api/v1/config"
	Plan      Path[resolve.Explained]     = "/api/v1/plan"
	Status    Path[pools.Overview]        = "/api/v1/status"
	Version   Path[pools.ServerVersion]   = "/api/v1/version"
	Retired   Path[[]pools.RetiredNode]   = "/api/v1/retired"

	ConfigHistory Path[[]pools.ConfigEntry] = "/api/v1/configs"
	ConfigVersion Path[pools.ConfigVersion] = "/api/v1/configs/{number}"
)

// Patch is a JSON merge patch (RFC 7386) of a resource: nil takes a value away.
type Patch = map[string]any

// What can be changed.
var (
	AddNode       = Change[pools.PoolNode, pools.NodeInfo]{"POST", "/api/v1/nodes"}
	PatchNode     = Change[Patch, pools.NodeInfo]{"PATCH", "/api/v1/nodes/{name}"}
	RemoveNode    = Change[None, None]{"DELETE", "/api/v1/nodes/{name}"}
	ChangeNodes   = Change[pools.NodeBatch, pools.NodesChanged]{"POST", "/api/v1/nodes:batch"}
	SetNextBoot   = Change[pools.NextBootRequest, pools.NodeInfo]{"PUT", "/api/v1/nodes/{name}/next-boot"}
	ClearNextBoot = Change[None, None]{"DELETE", "/api/v1/nodes/{name}/next-boot"}
	ForgetBoots   = Change[None, None]{"DELETE", "/api/v1/boots/{node}"}
	EndLease      = Change[None, None]{"DELETE", "/api/v1/leases/{address}"}
	ForgetUnknown = Change[None, None]{"DELETE", "/api/v1/unknown/{mac}"}
	ForgetRetired = Change[None, None]{"DELETE", "/api/v1/retired/{name}"}
	SyncChassis   = Change[None, None]{"POST", "/api/v1/chassis/{name}/sync"}
	Power         = Change[pools.PowerRequest, pools.PowerJob]{"POST", "/api/v1/power"}
	CreateToken   = Change[pools.APITokenRequest, pools.NewAPIToken]{"POST", "/api/v1/tokens"}
	RotateToken   = Change[None, pools.NewAPIToken]{"POST", "/api/v1/tokens/{name}/rotate"}
	RevokeToken   = Change[None, None]{"DELETE", "/api/v1/tokens/{name}"}
	Promote       = Change[pools.PromoteRequest, pools.Channel]{"POST", "/api/v1/images:promote"}
	Rollback      = Change[pools.RollbackRequest, pools.Channel]{"POST", "/api/v1/images:rollback"}
	MarkImage     = Change[pools.MarkRequest, None]{"POST", "/api/v1/images:mark"}
	ReloadConfig  = Change[None, pools.ReloadResult]{"POST", "/api/v1/config:reload"}
	RestoreState  = Change[pools.RestoreRequest, None]{"POST", "/api/v1/state:restore"}
	AnswerConfig  = Change[pools.ConfigAnswer, pools.ReloadResult]{"POST", "/api/v1/config:answer"}

	// RollbackConfig makes a content of the config file active that was so before.
	RollbackConfig = Change[None, pools.ReloadResult]{"POST", "/api/v1/configs/{number}/rollback"}

	CheckConfig = Change[pools.ConfigText, answer.Checked]{"POST", "/api/v1/config:check"}
)
