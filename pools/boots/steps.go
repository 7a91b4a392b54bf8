package boots

import "slices"

// Step is the name of a milestone of a boot.
type Step string

// The steps of a boot; [Steps] has their order and meaning.
const (
	StepDiscover Step = "discover"
	StepOffer    Step = "offer"
	StepLoader   Step = "loader"
	StepScript   Step = "script"
	StepKernel   Step = "kernel"
	StepInitrd   Step = "initrd"
	StepInit     Step = "init"
	StepNetwork  Step = "network"
	StepQueued   Step = "queued"
	StepImage    Step = "image"
	StepWipe     Step = "wipe"
	StepConfig   Step = "config"
	StepSwitch   Step = "switch-root"
	StepOnline   Step = "online"
	StepToken    Step = "token"
	StepCSR      Step = "csr"
	StepJoined   Step = "joined"
	StepReady    Step = "ready"
)

// Reporter is the party that reports a step.
type Reporter string

// The reporters.
const (
	ByServer  Reporter = "server"  // drover itself
	ByNode    Reporter = "node"    // drover-init, with the nonce of its boot
	ByCluster Reporter = "cluster" // the tenant's API server, as drover watches it
)

// StepInfo describes a step.
type StepInfo struct {
	Step     Step
	Reporter Reporter
	Source   string // the folder of the code that reports it
	Meaning  string
	Optional bool // most boots skip it
}

// Steps returns the steps of a boot in order.
func Steps() []StepInfo { return slices.Clone(steps[:]) }

var steps = [...]StepInfo{
	{StepDiscover, ByServer, "dhcp", "first DISCOVER of the firmware", false},
	{StepOffer, ByServer, "dhcp", "an address was offered", false},
	{StepLoader, ByServer, "tftp, httpboot", "loader fetched", false},
	{StepScript, ByServer, "httpboot", "boot script fetched", false},
	{StepKernel, ByServer, "tftp, httpboot", "kernel fetched", false},
	{StepInitrd, ByServer, "tftp, httpboot", "initrd fetched", false},
	{StepInit, ByNode, "cmd/drover-init", "drover-init runs", false},
	{StepNetwork, ByNode, "cmd/drover-init", "address configured", false},
	{StepQueued, ByNode, "cmd/drover-init", "waiting for its turn to fetch the root image", true},
	{StepImage, ByNode, "cmd/drover-init", "root image in RAM, digest verified", false},
	{StepWipe, ByNode, "cmd/drover-init", "disks with the data of another tenant are erased", true},
	{StepConfig, ByNode, "cmd/drover-init", "config applied", false},
	{StepSwitch, ByNode, "cmd/drover-init", "about to start the init of the root image", false},
	{StepOnline, ByNode, "cmd/drover-init", "join agent runs in the root image", false},
	{StepToken, ByServer, "httpboot", "join token minted and signed", false},
	{StepCSR, ByCluster, "kube", "certificate request of the kubelet approved", false},
	{StepJoined, ByNode, "cmd/drover-init", "kubeadm join succeeded", false},
	{StepReady, ByCluster, "kube", "Node is Ready", false},
}

// ranks has the index of each step in the order of a boot.
var ranks = func() map[Step]int {
	all := make(map[Step]int, len(steps))
	for i, s := range steps {
		all[s.Step] = i
	}
	return all
}()

// Rank returns the index of a step in the order of a boot, from 0. It is -1 for a
// step that this version of drover does not know.
func (s Step) Rank() int {
	if i, ok := ranks[s]; ok {
		return i
	}
	return -1
}

// Reporter returns the party that reports a step; empty for an unknown step.
func (s Step) Reporter() Reporter {
	if i := s.Rank(); i >= 0 {
		return steps[i].Reporter
	}
	return ""
}
