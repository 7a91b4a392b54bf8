package pools

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"unicode/utf8"
)

// Reference names the place of a content that is not in the config. At most one field
// is set. Only the server reads it, each time that the content is used.
type Reference struct {
	FromFile   string    `json:"fromFile,omitempty"`  // a file of the server, in the directory of the config file or below it
	FromSecret SecretRef `json:"fromSecret,omitzero"` // a key of a Secret of the admin cluster
}

// IsReference reports whether a place is named.
func (r Reference) IsReference() bool { return r != Reference{} }

// Place returns "file NAME" or "Secret NAMESPACE/NAME, key KEY"; "" for none.
func (r Reference) Place() string {
	switch {
	case r.FromFile != "":
		return "file " + r.FromFile
	case r.FromSecret != SecretRef{}:
		return "Secret " + r.FromSecret.Namespace + "/" + r.FromSecret.Name + ", key " + r.FromSecret.Key
	}
	return ""
}

// References returns what the settings of the tag refer to, by the field.
func (t *Tag) References() map[string]Reference {
	all := map[string]Reference{}
	add := func(field string, r Reference) {
		if r.IsReference() {
			all[field] = r
		}
	}
	for path, f := range t.Files {
		add("files."+path, f.Reference)
	}
	for name, s := range t.Scripts {
		add("scripts."+name, s.Reference)
	}
	add("rootPasswordHash", t.RootPasswordHash.Reference)
	return all
}

// Secret is a text that only the node gets: it is in the config, or where Reference says.
type Secret struct {
	Text string `json:"-"`
	Reference
}

// MarshalJSON writes the text, or the reference.
func (s Secret) MarshalJSON() ([]byte, error) {
	if !s.IsReference() {
		return json.Marshal(s.Text)
	}
	return json.Marshal(s.Reference)
}

// String hides the text.
func (s Secret) String() string {
	if s.Text != "" {
		return "(set)"
	}
	return s.Place()
}

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s == Secret{} }

// IsPasswordHash reports whether a text can be the password field of shadow(5): a hash of
// crypt(5), or one that no password has.
func IsPasswordHash(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	if s == "*" || s == "!" {
		return true
	}
	return len(s) > 12 && len(s) < 512 && strings.Count(s, "$") >= 3 && s[0] == '$' && strings.Trim(s, letters+"./$=,-_+") == ""
}

// File is a file written into the node's root before its init starts. Its content is in
// one of Content, Base64 and Reference.
type File struct {
	Content string `json:"content"`          // a template, unless Template is false
	Base64  string `json:"base64,omitempty"` // for content that is not text
	Reference
	Mode  string `json:"mode,omitempty"`  // octal, default "0644"; "0600" for a FromSecret
	Owner string `json:"owner,omitempty"` // user or user:group of the image, by name or number; default root

	// Template makes the content a text/template over the Plan. Default: true for
	// Content, false for the others.
	Template *bool `json:"template,omitempty"`
}

// IsTemplate reports whether the content is a template.
func (f File) IsTemplate() bool {
	if f.Template != nil {
		return *f.Template
	}
	return f.Base64 == "" && !f.IsReference()
}

// Permissions returns the file's mode in octal, or the default.
func (f File) Permissions() string {
	switch {
	case f.Mode != "":
		return f.Mode
	case f.FromSecret != SecretRef{}:
		return "0600"
	}
	return "0644"
}

// Bytes returns the content of a file without a reference.
func (f File) Bytes() ([]byte, error) {
	if f.Base64 != "" {
		return base64.StdEncoding.DecodeString(f.Base64)
	}
	return []byte(f.Content), nil
}

// With returns the file with a content in place of what it had, ready for the node.
func (f File) With(content []byte) File {
	f = File{Mode: f.Permissions(), Owner: f.Owner}
	if utf8.Valid(content) {
		f.Content = string(content)
	} else {
		f.Base64 = base64.StdEncoding.EncodeToString(content)
	}
	return f
}

// Unit is a systemd unit.
type Unit struct {
	Content string `json:"content,omitempty"` // empty: the unit of the image is enabled only
	Enable  bool   `json:"enable,omitempty"`  // it starts at boot
}

// Script is a program run once per boot. Run is a text/template over the Plan; a file of
// Reference is run as it is.
type Script struct {
	Stage Stage  `json:"stage"`
	Run   string `json:"run,omitempty"` // the program, with its #! line; a template
	Reference
	Source bool `json:"source,omitempty"` // it has no interpreter of its own: /bin/sh reads it with "."
}

// Stage is the moment of a boot at which a script runs.
type Stage string

// The stages, in their order. The first three run in the node's root, before its init,
// with the boot network up.
const (
	Initrd   Stage = "initrd"    // drover has written nothing into the root yet
	PreInit  Stage = "pre-init"  // the config of the node is in the root
	PostInit Stage = "post-init" // the last thing before the root's init
	Online   Stage = "online"    // network-online.target reached, before the node joins its cluster
)

// Stages returns all stages, in the order in which they come.
func Stages() []Stage { return []Stage{Initrd, PreInit, PostInit, Online} }

// DebugShell says when a shell runs on the console of a node.
type DebugShell string

// The values of [DebugShell].
const (
	ShellNever     DebugShell = "never"
	ShellOnFailure DebugShell = "on-failure" // when the boot fails, before the machine restarts
	ShellAlways    DebugShell = "always"     // also before the init of the root starts
)

// BootNetwork is the file of systemd-networkd that drover-init writes for the network card
// that the node booted from. Files of the operator and of netplan come before it: the
// first one that matches a card counts.
const BootNetwork = "/etc/systemd/network/70-drover-boot.network"

// Tree is a mapping of another program's config. Its values are strings as they were
// written, []any, and map[string]any.
type Tree map[string]any

// With returns the tree with the values of another one over it: mappings are merged key
// by key, everything else is replaced.
func (t Tree) With(over Tree) Tree {
	all := make(Tree, len(t)+len(over))
	maps.Copy(all, t)
	for k, v := range over {
		below, isMap := v.(map[string]any)
		old, wasMap := all[k].(map[string]any)
		if isMap && wasMap {
			v = map[string]any(Tree(old).With(below))
		}
		all[k] = v
	}
	return all
}
