package crd

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"drover/pools"
	"drover/pools/config/controlplane"
	"drover/pools/config/externalhost"
)

// kind describes a kind of object.
type kind struct {
	about   string
	spec    reflect.Type
	status  reflect.Type
	columns []Column
}

// Column is a column of kubectl get.
type Column struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Path        string `json:"jsonPath"`
	Priority    int    `json:"priority,omitempty"`
	Description string `json:"description,omitempty"`
}

var kinds = map[pools.ObjectKind]kind{
	pools.KindTenant: {"Tenant is a Kubernetes cluster that nodes join. Its spec is an element of clusters in drover.yaml.",
		reflect.TypeFor[pools.Cluster](), reflect.TypeFor[pools.TenantStatus](), []Column{
			{Name: "Version", Type: "string", Path: ".status.version"}, {Name: "Endpoint", Type: "string", Path: ".status.endpoint"},
			{Name: "Nodes", Type: "integer", Path: ".status.nodesReady"}, {Name: "Agents", Type: "integer", Path: ".status.agents", Priority: 1}}},
	pools.KindPool: {"Pool is a group of nodes that boot one image and join one cluster. Its spec is an element of pools in drover.yaml.",
		reflect.TypeFor[pools.Pool](), reflect.TypeFor[pools.ObjectStatus](), []Column{
			{Name: "Tenant", Type: "string", Path: ".spec.cluster"}, {Name: "Image", Type: "string", Path: ".spec.image"},
			{Name: "Catchall", Type: "boolean", Path: ".spec.catchall"}}},
	pools.KindMachine: {"Machine is a node of a pool. Its spec is an element of a pool's nodes in drover.yaml, and the name of the pool.",
		reflect.TypeFor[pools.PoolNode](), reflect.TypeFor[pools.MachineStatus](), []Column{
			{Name: "Pool", Type: "string", Path: ".spec.pool"}, {Name: "Address", Type: "string", Path: ".status.address"},
			{Name: "Step", Type: "string", Path: ".status.step"}, {Name: "Since", Type: "date", Path: ".status.since"},
			{Name: "Image", Type: "string", Path: ".status.image", Priority: 1}, {Name: "Tenant", Type: "string", Path: ".status.tenant", Priority: 1},
			{Name: "Error", Type: "string", Path: ".status.error", Priority: 1}}},
	pools.KindTag: {"Tag is a bundle of settings of nodes. Its spec is a value of tags in drover.yaml, and its name the key.",
		reflect.TypeFor[pools.Tag](), reflect.TypeFor[pools.ObjectStatus](), nil},
	pools.KindSubnet: {"Subnet is a network that nodes live in. Its spec is an element of subnets in drover.yaml; its name has no meaning.",
		reflect.TypeFor[pools.Subnet](), reflect.TypeFor[pools.ObjectStatus](), []Column{
			{Name: "CIDR", Type: "string", Path: ".spec.cidr"}, {Name: "Router", Type: "string", Path: ".spec.router"}}},
	pools.KindChassis: {"Chassis is a chassis of machines with one manager. Its spec is an element of chassis in drover.yaml.",
		reflect.TypeFor[pools.Chassis](), reflect.TypeFor[pools.ObjectStatus](), []Column{
			{Name: "Address", Type: "string", Path: ".spec.address"}, {Name: "Pool", Type: "string", Path: ".spec.pool"}}},
	pools.KindExternalHost: {"ExternalHost is a host outside a cluster that shares its pod network. Its spec is an element of a cluster's hosts in drover.yaml, and the name of the cluster.",
		reflect.TypeFor[pools.ClusterHost](), reflect.TypeFor[pools.ExternalHostStatus](), []Column{
			{Name: "Tenant", Type: "string", Path: ".spec.cluster"}, {Name: "Address", Type: "string", Path: ".spec.address"},
			{Name: "PodCIDR", Type: "string", Path: ".status.podCIDR"}}},
}

// leftOut are the fields that objects do not have: metadata.name is the name, a node is a
// Machine, and contents from elsewhere are for the config file alone.
var leftOut = map[string]bool{
	"Cluster.name": true, "Pool.name": true, "Pool.nodes": true, "Chassis.name": true, "Node.name": true, "ClusterHost.name": true,
	"Reference.fromFile": true, "Reference.fromSecret": true,
}

// optional are the fields that only rules require.
var optional = map[string]bool{"Pool.image": true, "File.content": true}

// amend are changes of single fields.
var amend = map[string]func(*Schema){
	"Taint.effect":            func(s *Schema) { s.Enum = []string{"NoSchedule", "PreferNoSchedule", "NoExecute"} },
	"Condition.status":        func(s *Schema) { s.Enum = []string{"True", "False", "Unknown"} },
	"ObjectStatus.conditions": func(s *Schema) { s.ListType, s.ListMapKeys = "map", []string{"type"} },
	"ControlPlane.version":    func(s *Schema) { s.Pattern = `^v1\.[1-9][0-9]{0,2}\.[0-9]{1,3}$` },
	"ControlPlane.replicas":   func(s *Schema) { s.Minimum = new(1) },
	"ControlPlaneEndpoint.port": func(s *Schema) {
		s.Minimum, s.Maximum = new(1), new(65535)
	},
	"Cluster.kubeconfig":       func(s *Schema) { s.MaxLength = 4096 },
	"ExternalHost.address":     func(s *Schema) { s.AnyOf, s.Format = nil, "ipv4" },
	"ExternalHost.podCIDRSize": func(s *Schema) { s.Minimum, s.Maximum = new(8), new(30) },
	"ExternalHost.expose":      func(s *Schema) { s.MaxItems = externalhost.MaxExposed },
	"Exposed.service": func(s *Schema) {
		s.Pattern, s.MaxLength = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?\.[a-z0-9]([-a-z0-9]*[a-z0-9])?$`, 127
	},
	"Exposed.port":     func(s *Schema) { s.Minimum, s.Maximum = new(1), new(65535) },
	"Exposed.hostPort": func(s *Schema) { s.Minimum, s.Maximum = new(1), new(65535) },

	"Chassis.passwordFile":   func(s *Schema) { s.MaxLength = 4096 },
	"NodePower.passwordFile": func(s *Schema) { s.MaxLength = 4096 },
}

// below is a rule that a path does not leave the directory of the config file.
func below(field string) Rule {
	return Rule{
		fmt.Sprintf(`!has(self.%[1]s) || !(self.%[1]s.startsWith('/') || self.%[1]s.startsWith('../') || self.%[1]s.contains('/../'))`, field),
		field + " of an object is a path below the directory of drover.yaml, such as secrets/ilo.pass",
	}
}

// keeps is a rule that the effective value of a field does not change, and why. Optional
// fields of CEL are not for it: their cost would be that of texts of any length.
func keeps(path, fallback, why string) Rule {
	value := func(of string) string {
		there, at := "", of
		for field := range strings.SplitSeq(path, ".") {
			at += "." + field
			there += " && has(" + at + ")"
		}
		return fmt.Sprintf("(%s ? %s : '%s')", strings.TrimPrefix(there, " && "), at, fallback)
	}
	return Rule{value("self") + " == " + value("oldSelf"), path + " cannot change: " + why}
}

const (
	keepsNetworks = "the control plane would lose its pods and Services; make another tenant"
	keepsVolume   = "Kubernetes keeps the volumes of a StatefulSet as they are; "
)

// own is a rule that extraArgs of a program do not have flags of drover's own.
func own(part string, flags []string) Rule {
	return Rule{
		fmt.Sprintf(`!has(self.extraArgs) || !has(self.extraArgs.%[1]s) || !['%[2]s'].exists(f, f in self.extraArgs.%[1]s)`, part, strings.Join(flags, "', '")),
		fmt.Sprintf("extraArgs.%s has a flag of drover's own: %s", part, strings.Join(flags, ", ")),
	}
}

// rules are the validations of types, for what fields alone do not say.
var rules = func() map[string][]Rule {
	cp, flags := &pools.ControlPlane{}, controlplane.OwnFlags()
	controlplane.SetDefaults(cp)
	return map[string][]Rule{
		"Cluster": {
			{`[has(self.kubeconfig), has(self.secretRef), has(self.controlPlane)].filter(x, x).size() == 1`, "give one of kubeconfig, secretRef and controlPlane"},
			{`!has(self.deletionPolicy) || has(self.controlPlane)`, "deletionPolicy has no effect without a controlPlane"},
			{`!has(self.serving) || !self.serving || !has(self.approver) || self.approver == 'drover'`, "serving: true has drover approve serving certificates, but the approver is the cluster"},
			below("kubeconfig"),
		},
		"TokenPolicy": {
			{`!has(self.rotate) || has(self.mode) && self.mode == 'shared'`, "rotate is for shared tokens: add mode: shared, or remove it"},
		},
		"ControlPlane": {
			keeps("podSubnet", cp.PodSubnet.String(), keepsNetworks), keeps("serviceSubnet", cp.ServiceSubnet.String(), keepsNetworks),
			keeps("storage.size", cp.Storage.Size, keepsVolume+"enlarge the PersistentVolumeClaim data-NAME-control-plane-0 itself, if its StorageClass allows that"),
			keeps("storage.class", cp.Storage.Class, keepsVolume+"make another tenant"),
			own("etcd", flags.Etcd), own("apiServer", flags.APIServer), own("controllerManager", flags.ControllerManager),
			own("scheduler", flags.Scheduler), own("konnectivity", flags.Konnectivity),
		},
		"ControlPlaneEndpoint": {
			{`!has(self.port) || !(self.port in [` + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(controlplane.Ports())), ", "), "[]") + `])`, "the port is that of another program of the control plane"},
			{`has(self.address) || !has(self.serviceType) || self.serviceType == 'LoadBalancer'`, "give the address: a NodePort or ClusterIP has none of its own"},
		},
		"Pool": {
			{`has(self.image) && self.image != '' || has(self.ignore) && self.ignore`, "a pool has an image, such as image: debian-12"},
			{`has(self.catchall) && self.catchall || !has(self.match) && !has(self.range) && !has(self.range6) && !has(self.authoritative)`,
				"only a catch-all pool has match, range, range6 and authoritative: add catchall: true"},
			{`!has(self.role) || self.role != 'gateway' || has(self.cluster) && self.cluster != '' && (!has(self.catchall) || !self.catchall)`,
				"a pool of gateways has a cluster, and names its machines"},
		},
		"PoolNode": {
			{`has(self.macs) && self.macs.size() > 0 || has(self.match)`, `a machine has macs: ["52:54:00:12:34:56"], or a match`},
		},
		"NodePower": {
			{`self.driver != 'exec' && !has(self.program) && !has(self.options)`, "programs of the server and their options are for its config file alone"},
			{`has(self.address) && has(self.passwordFile)`, "power over a network needs address and passwordFile"},
			below("passwordFile"),
		},
		"ClusterHost": {
			{`!has(self.expose) || self.expose.all(e, self.expose.exists_one(f, (has(f.hostPort) ? f.hostPort : f.port) == (has(e.hostPort) ? e.hostPort : e.port)))`,
				"a port of the host leads to one Service: give another hostPort"},
		},
		"Subnet": {
			{`!has(self.rapidCommit) || !self.rapidCommit || self.cidr.contains(':')`, "rapidCommit is for IPv6 subnets"},
			{`!has(self.slaac) || !self.slaac || self.cidr.contains(':') && self.cidr.endsWith('/64')`, "slaac is for IPv6 subnets of 64 bits"},
		},
		"Chassis": {
			{`!has(self.hostKey) || !has(self.via) || self.via == 'ssh'`, "hostKey is of SSH: give tlsPin for via: rest"},
			{`!has(self.tlsPin) || has(self.via) && self.via == 'rest'`, "tlsPin is of HTTPS: give hostKey for via: ssh"},
			below("passwordFile"),
		},
	}
}()

// nameRules are the validations of metadata.name.
func nameRule(k pools.ObjectKind) []Rule {
	switch k {
	case pools.KindSubnet:
		return nil
	case pools.KindTag:
		return []Rule{{`self.metadata.name.size() <= 63`, "the name of a tag has 63 characters at most"}}
	}
	rules := []Rule{{`self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')`, "the name is a DNS label: a-z, 0-9 and '-', 63 at most"}}
	if k == pools.KindTenant {
		rules = append(rules, Rule{
			fmt.Sprintf("!has(self.spec.controlPlane) || self.metadata.name.size() <= %d && !self.metadata.name.matches('^[0-9]')", controlplane.MaxName),
			fmt.Sprintf("the name of a tenant with a controlPlane begins with a letter, and has %d characters at most", controlplane.MaxName),
		})
	}
	if k == pools.KindExternalHost {
		rules = append(rules, Rule{fmt.Sprintf("self.metadata.name != '%s'", externalhost.RangeName), externalhost.RangeName + " is the Node that holds hostPodCIDR"})
	}
	return rules
}

// Definition is a CustomResourceDefinition.
type Definition struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Kind       string   `json:"kind"`
			ListKind   string   `json:"listKind"`
			Plural     string   `json:"plural"`
			Singular   string   `json:"singular"`
			Categories []string `json:"categories"`
		} `json:"names"`
		Scope    string    `json:"scope"`
		Versions []Version `json:"versions"`
	} `json:"spec"`
}

// Version is a version of a [Definition].
type Version struct {
	Name    string `json:"name"`
	Served  bool   `json:"served"`
	Storage bool   `json:"storage"`
	Schema  struct {
		OpenAPI *Schema `json:"openAPIV3Schema"`
	} `json:"schema"`
	Subresources struct {
		Status struct{} `json:"status"`
	} `json:"subresources"`
	Columns []Column `json:"additionalPrinterColumns"`
}

// Definitions returns the CustomResourceDefinitions of all kinds, by the Go files of package
// pools in a directory.
func Definitions(dir string) ([]*Definition, error) {
	src, err := readSource(dir)
	if err != nil {
		return nil, err
	}
	b := &builder{source: src}
	var all []*Definition
	for _, k := range pools.ObjectKinds {
		all = append(all, b.definition(k, kinds[k]))
	}
	return all, errors.Join(b.errs...)
}

func (b *builder) definition(name pools.ObjectKind, k kind) *Definition {
	d := &Definition{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	d.Metadata.Name = name.Plural() + "." + pools.ObjectGroup
	d.Spec.Group, d.Spec.Scope = pools.ObjectGroup, "Namespaced"
	names := &d.Spec.Names
	names.Kind, names.ListKind, names.Plural, names.Singular = string(name), string(name)+"List", name.Plural(), singular(name)
	names.Categories = []string{"drover"}
	v := Version{Name: pools.ObjectVersion, Served: true, Storage: true}
	v.Columns = append(v.Columns, k.columns...)
	v.Columns = append(v.Columns,
		Column{Name: "Ready", Type: "string", Path: `.status.conditions[?(@.type=="Ready")].status`},
		Column{Name: "Age", Type: "date", Path: ".metadata.creationTimestamp"},
		Column{Name: "Message", Type: "string", Path: `.status.conditions[?(@.type=="Ready")].message`, Priority: 1},
	)
	spec, status := b.schema(k.spec, string(name)+".spec"), b.schema(k.status, string(name)+".status")
	spec.Description, status.Description = "The settings.", "What drover sees. It writes the status, and nobody else."
	v.Schema.OpenAPI = &Schema{
		Type: "object", Description: k.about, Required: []string{"spec"}, Rules: nameRule(name),
		Properties: map[string]*Schema{
			"apiVersion": {Type: "string", Description: "Version of the schema of the object: " + pools.ObjectGroup + "/" + pools.ObjectVersion + "."},
			"kind":       {Type: "string", Description: "Kind of the object: " + string(name) + "."},
			"metadata":   {Type: "object"},
			"spec":       spec, "status": status,
		},
	}
	d.Spec.Versions = []Version{v}
	return d
}

// singular returns the kind in lower case; API servers refuse a plural that is no more than
// that only when two resources share it.
func singular(k pools.ObjectKind) string {
	if k == pools.KindChassis {
		return "chassis"
	}
	plural := k.Plural()
	return plural[:len(plural)-1]
}
