package settings

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"drover/pools"
	"drover/pools/config/mistake"
)

func (c checking) files(all map[string]pools.File) {
	for _, p := range keys(all) {
		f, at, what := all[p], "files."+p, "file "+p
		c.fail(at, within("file", absPath(p)))
		c.fail(at, within(what, fileMode(f.Mode)))
		c.fail(at, within(what, size(f.Content)))
		c.fail(at, within(what, c.content(f)))
		if f.Owner != "" && !c.checker.owner.MatchString(f.Owner) {
			c.fail(at, pools.Hint("owner: www-data, or owner: 33:33", "%s: %q is not user or user:group", what, f.Owner))
		}
		if f.IsTemplate() {
			c.fail(at, within(what, template(p, f.Content, "the content is a Go template over the Plan: write {{\"{{\"}} for two braces, or template: false")))
		}
	}
}

// content checks that a file has its content from one place.
func (c checking) content(f pools.File) error {
	places := 0
	for _, is := range []bool{f.Content != "", f.Base64 != "", f.FromFile != "", f.FromSecret != pools.SecretRef{}} {
		if is {
			places++
		}
	}
	if places > 1 {
		return pools.Hint("keep one of content, base64, fromFile and fromSecret", "its content is given twice")
	}
	if b, err := base64.StdEncoding.DecodeString(f.Base64); err != nil {
		return pools.Hint("write the output of base64 -w0", "base64: %v", err)
	} else if err := size(string(b)); err != nil {
		return err
	}
	if f.IsTemplate() && f.Base64 != "" {
		return pools.Hint("use content, or remove it", "template: true with base64")
	}
	return CheckReference(f.Reference)
}

// CheckReference checks the place of a content that is not in the config.
func CheckReference(r pools.Reference) error {
	s := r.FromSecret
	switch {
	case r.FromFile != "" && s != pools.SecretRef{}:
		return pools.Hint("keep one of them", "fromFile and fromSecret are both set")
	case r.FromFile != "" && (!filepath.IsLocal(r.FromFile) || filepath.Clean(r.FromFile) != r.FromFile || r.FromFile == "." || strings.ContainsRune(r.FromFile, 0)):
		return pools.Hint("write files/motd, relative to the config file", "fromFile: %q is not a file in the config's directory or below it", r.FromFile)
	case s != pools.SecretRef{} && (s.Namespace == "" || s.Name == "" || s.Key == ""):
		return pools.Hint("fromSecret: {namespace: drover, name: node-files, key: tls.key}", "fromSecret needs namespace, name and key")
	}
	return nil
}

// fileMode checks octal permissions.
func fileMode(m string) error {
	if n, err := strconv.ParseUint(m, 8, 16); m != "" && (err != nil || n > 0o7777 || len(m) < 3) {
		return pools.Hint(`write mode: "0644"`, "mode %q is not octal permissions", m)
	}
	return nil
}

func size(content string) error {
	if len(content) > maxFile {
		return pools.Hint("put it into the image instead", "%d bytes, more than %d", len(content), maxFile)
	}
	return nil
}

func template(name, text, hint string) error {
	if _, err := pools.Template(name, text); err != nil {
		return &pools.HintError{Msg: err.Error(), Hint: hint}
	}
	return nil
}

func (c checking) units(t pools.Tag) {
	for _, name := range keys(t.Units) {
		at, u := "units."+name, t.Units[name]
		c.fail(at, c.unitName(name))
		if u.Content == "" && !u.Enable {
			c.fail(at, pools.Hint("give its content, or enable: true", "unit %s does nothing", name))
		}
		c.fail(at, within("unit "+name, size(u.Content)))
	}
	for i, name := range t.MaskUnits.Items {
		c.fail(index("maskUnits", i), c.unitName(name))
		if _, both := t.Units[name]; both {
			c.fail(index("maskUnits", i), pools.Hint("remove it from one", "unit %s is in units and in maskUnits", name))
		}
		if name == "drover-agent.service" {
			c.fail(index("maskUnits", i), pools.Hint("remove it", "unit %s joins the node to its cluster", name))
		}
	}
}

func (c checking) unitName(name string) error {
	if !c.checker.unit.MatchString(name) {
		return pools.Hint("name it like example.service or example.timer", "%q is not the name of a systemd unit", name)
	}
	return nil
}

func (c checking) scripts(all map[string]pools.Script) {
	for _, name := range keys(all) {
		at, s := "scripts."+name, all[name]
		what := fmt.Sprintf("script %q", name)
		if !c.checker.name.MatchString(name) {
			c.fail(at, pools.Hint("use letters, digits, '-', '_' and '.'", "%s: its name has other characters", what))
		}
		c.fail(at+".stage", within(what, oneOf("stage", s.Stage, pools.Stages()...)))
		c.fail(at, within(what, CheckReference(s.Reference)))
		switch {
		case s.IsReference() && s.Run != "":
			c.fail(at, pools.Hint("keep one of them", "%s: it has run and a reference", what))
		case !s.IsReference() && !s.Source && !strings.HasPrefix(s.Run, "#!"):
			c.fail(at, pools.Hint(`start it with "#!/bin/sh", or add source: true`, "%s: run does not name its interpreter", what))
		case !s.IsReference() && strings.TrimSpace(s.Run) == "":
			c.fail(at, pools.Hint("run: ..., or fromFile: network.sh", "%s: it is empty", what))
		}
		c.fail(at+".run", within(what, size(s.Run)))
		c.fail(at+".run", within(what, template(name, s.Run, `run is a Go template over the Plan: write {{"{{"}} for two braces`)))
	}
}

// sections are the keys of a network, with the kinds of devices of netplan.
var sections = []string{
	"version", "renderer", "ethernets", "bonds", "bridges", "vlans", "vrfs", "tunnels", "dummy-devices",
	"virtual-ethernets", "wifis", "modems", "openvswitch", "nm-devices",
}

// network checks the form of a network. Its details are netplan's.
func (c checking) network(t pools.Tree) {
	for _, key := range keys(t) {
		at := "network." + key
		devices, isMap := t[key].(map[string]any)
		switch {
		case key == "network":
			c.fail(at, pools.Hint("leave out this level", "network has the key network again"))
		case !slices.Contains(sections, key):
			c.fail(at, pools.Hint(mistake.Hint(key, sections, "see netplan(5)"), "unknown key %q", at))
		case key == "version" && t[key] != "2":
			c.fail(at, pools.Hint("version: 2, or leave it out", "network: version %v is not 2", t[key]))
		case key == "version", key == "renderer", key == "openvswitch":
		case !isMap:
			c.fail(at, pools.Hint(key+": {eno1: {mtu: 9000}}", "%s: want devices by their names", at))
		default:
			c.devices(at, key, devices)
		}
	}
	c.fail("network", within("network", treeTemplates(t)))
}

func (c checking) devices(at, kind string, devices map[string]any) {
	for _, name := range keys(devices) {
		at, what := at+"."+name, "network: device "+strconv.Quote(name)
		settings, isMap := devices[name].(map[string]any)
		if !isMap {
			c.fail(at, pools.Hint(name+": {mtu: 9000}", "%s has no settings", what))
			continue
		}
		if kind != "ethernets" && !c.checker.device.MatchString(name) { // the id of a card is not its name where it has a match
			c.fail(at, pools.Hint("15 letters, digits, '.', '-' and '_' at most", "%s: its name is not one of a network interface", what))
		}
		if mtu, ok := settings["mtu"].(string); ok && !strings.Contains(mtu, "{{") {
			if n, err := strconv.Atoi(mtu); err != nil || n < 68 || n > 65535 {
				c.fail(at+".mtu", pools.Hint("mtu: 9000", "%s: mtu %q is not from 68 to 65535", what, mtu))
			}
		}
		if id, ok := settings["id"].(string); kind == "vlans" && !strings.Contains(id, "{{") {
			if n, err := strconv.Atoi(id); !ok || err != nil || n < 0 || n > 4094 {
				c.fail(at, pools.Hint("id: 2", "%s: id %q is not that of a VLAN, from 0 to 4094", what, id))
			}
		}
	}
}

// treeTemplates checks the templates in the values of a tree.
func treeTemplates(v any) error {
	switch v := v.(type) {
	case string:
		return template(v, v, `values are Go templates over the Plan: "{{.Address}}/16"`)
	case []any:
		for _, item := range v {
			if err := treeTemplates(item); err != nil {
				return err
			}
		}
	case pools.Tree:
		return treeTemplates(map[string]any(v))
	case map[string]any:
		for _, key := range keys(v) {
			if err := treeTemplates(v[key]); err != nil {
				return err
			}
		}
	}
	return nil
}
