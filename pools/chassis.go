package pools

import (
	"bytes"
	"fmt"
	"text/template"
)

// Chassis is a chassis of machines with one manager. drover reads from the manager
// which nodes the chassis holds, and switches their power through it.
type Chassis struct {
	Name         string `json:"name"`
	Address      string `json:"address"`           // of its manager: host or host:port
	User         string `json:"user,omitempty"`    // default Administrator
	PasswordFile string `json:"passwordFile"`      // relative to the config file
	Via          Via    `json:"via,omitempty"`     // default ssh
	HostKey      string `json:"hostKey,omitempty"` // SHA256:..., of SSH; default: pinned at first use
	TLSPin       string `json:"tlsPin,omitempty"`  // sha256:..., of the certificate; default: pinned at first use
	Legacy       bool   `json:"legacy,omitempty"`  // allow the old algorithms that old firmware needs
	Prompt       string `json:"prompt,omitempty"`  // of its command line; needed only when it has several words

	Pool         string   `json:"pool"`                   // of new nodes
	Tags         []string `json:"tags,omitempty"`         // of its nodes; templates over [Bay]
	NameTemplate string   `json:"nameTemplate,omitempty"` // over [Bay]; default [DefaultNodeName]
	IPTemplate   string   `json:"ipTemplate,omitempty"`   // over [Bay]; default: nodes keep their address, new ones have none
	NIC          string   `json:"nic,omitempty"`          // all, a number such as 1, or a switch, A or B; default all
	Nodes        string   `json:"nodes,omitempty"`        // which: c1n1,c3,5-9; default all

	// Interval is the time between two automatic readings of the chassis.
	// 0: it is read on request only.
	Interval Duration `json:"interval,omitempty"`
}

// Via is the protocol over which a chassis is read and switched.
type Via string

// The protocols of [Via].
const (
	ViaSSH  Via = "ssh"
	ViaREST Via = "rest"
)

// DefaultNodeName is the template for names of nodes when a chassis sets none.
const DefaultNodeName = "{{.Chassis}}c{{.Cartridge}}n{{.Node}}"

// Bay is the data of a chassis's templates: the slot of a node, and nothing else.
// There is no serial number in it, because an exchanged cartridge would then become a
// new node. The type keeps the name Bay because errors of text/template show it to
// operators.
type Bay struct {
	Chassis         string
	Cartridge, Node int
	Slot            string // c12n1
}

// NewBay returns the data of a slot.
func NewBay(chassis string, s Slot) Bay {
	return Bay{chassis, s.Cartridge, s.Node, s.String()}
}

// Render executes a template of [ParseTemplate].
func (d Bay) Render(t *template.Template) (string, error) {
	var out bytes.Buffer
	if err := t.Execute(&out, d); err != nil {
		return "", fmt.Errorf("%s template: %w (it knows .Chassis, .Cartridge, .Node and .Slot)", t.Name(), err)
	}
	return out.String(), nil
}

// ParseTemplate parses a template for names, addresses or tags. Errors call the
// template by the word in what. Its functions are add and mul, for two numbers.
func ParseTemplate(what, text string) (*template.Template, error) {
	t, err := template.New(what).Option("missingkey=error").Funcs(template.FuncMap{
		"add": func(a, b int) int { return a + b },
		"mul": func(a, b int) int { return a * b },
	}).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s template %q: %w", what, text, err)
	}
	return t, nil
}

// ChassisSlot is the chassis and the slot that a node is in. It identifies the node
// in the inventory of its chassis, also when its MACs change.
type ChassisSlot struct {
	Chassis string `json:"chassis"` // name of the chassis
	Slot    string `json:"slot"`    // c12n1
}

// IsZero reports whether the slot is unknown.
func (p ChassisSlot) IsZero() bool { return p == ChassisSlot{} }

// String returns "chassis m1 c12n1", and "" for the zero ChassisSlot.
func (p ChassisSlot) String() string {
	if p.IsZero() {
		return ""
	}
	return "chassis " + p.Chassis + " " + p.Slot
}

// NodePower is how the power of a node is switched. A node in a chassis does not
// need it: the manager of the chassis switches it.
type NodePower struct {
	Driver       PowerDriver `json:"driver"`                 // redfish, ipmi or exec
	Address      string      `json:"address,omitempty"`      // of the management processor; for exec: the program's argument, default the node's name
	User         string      `json:"user,omitempty"`         // default Administrator
	PasswordFile string      `json:"passwordFile,omitempty"` // relative to the config file
	TLSPin       string      `json:"tlsPin,omitempty"`       // redfish: sha256:..., of the certificate; default: pinned at first use
	Legacy       bool        `json:"legacy,omitempty"`       // redfish: allow the old algorithms of TLS
	System       string      `json:"system,omitempty"`       // redfish: ID, name, serial number or UUID of the machine, where the processor has several systems
	Program      string      `json:"program,omitempty"`      // exec: the program to run; ipmi: default ipmitool
	Options      []string    `json:"options,omitempty"`      // ipmi: further arguments, such as -L OPERATOR
}

// PowerDriver names a way to switch a machine.
type PowerDriver string

// The drivers of [NodePower].
const (
	Redfish PowerDriver = "redfish"
	IPMI    PowerDriver = "ipmi"
	Exec    PowerDriver = "exec"
)
