package dnsmasq

import (
	"slices"
	"strings"

	"drover/migrate"
	"drover/pools"
)

// ReadObjects reads objects of dnsmasq-controller from YAML files, as kubectl get -o yaml
// writes them: one a document, or lists of them.
func ReadObjects(f *migrate.Farm, files []string) error {
	r := NewReader(f)
	found := 0
	documents, err := migrate.ReadYAML(files)
	if err != nil {
		return err
	}
	for _, doc := range documents {
		found += r.object(doc)
	}
	if found == 0 {
		return migrate.FormatError(migrate.At(files[0]), "no object of dnsmasq.kvaps.cf: want DnsmasqOptions, DhcpHosts, DhcpOptions or DhcpPool")
	}
	r.Finish()
	return nil
}

// object reads an object, or the items of a list. It returns the number of those that are
// of dnsmasq-controller.
func (r *Reader) object(v *migrate.Value) (found int) {
	kind := v.Get("kind").String()
	if v.IsNull() {
		return 0
	}
	if kind == "List" || strings.HasSuffix(kind, "List") && v.Get("items").IsList() {
		for _, item := range v.Get("items").Items {
			found += r.object(item)
		}
		return found
	}
	if group, _, _ := strings.Cut(v.Get("apiVersion").String(), "/"); group != "dnsmasq.kvaps.cf" {
		r.farm.Unknown(v.Origin, "a %s of %s is no object of dnsmasq-controller", kind, v.Get("apiVersion"))
		return 0
	}
	r.farm.SourceTree(v.Get("spec"))
	if c := v.Get("spec", "controller"); c.String() != "" {
		r.farm.Itself(c.Origin, "all objects are read, also those of controller %q", c)
	}
	var list string
	var read func(*migrate.Value)
	switch kind { // those with Set are of v1alpha1
	case "DnsmasqOptions":
		list, read = "options", r.optionObject
	case "DhcpHosts", "DnsmasqDhcpHostSet":
		list, read = "hosts", r.hostObject
	case "DhcpOptions", "DnsmasqDhcpOptionSet":
		list, read = "options", r.dhcpOptionObject
	case "DhcpPool":
		list, read = "pools", r.poolObject
	case "DnsmasqOptionSet":
		list, read = "options", r.optionLine
	case "DnsHosts", "DnsmasqHostSet":
		at := v.Origin
		at.Path = strings.TrimPrefix(at.Path+".spec", ".") + " (DnsHosts)"
		r.Directive(at, "DnsHosts", nil)
		return 1
	default:
		r.farm.Unknown(v.Origin, "unknown kind %q", kind)
		return 1
	}
	r.farm.Known(v.Get("spec"), "controller", list)
	r.farm.Each(v.Get("spec", list), read)
	return 1
}

// optionObject reads an item of DnsmasqOptions: any option of dnsmasq.
func (r *Reader) optionObject(v *migrate.Value) {
	r.farm.Known(v, "key", "values")
	line := v.Get("key").String()
	if values := v.Get("values").Strings(); len(values) > 0 {
		line += "=" + strings.Join(values, ",") // as the controller writes them
	}
	r.line(v, line)
}

// optionLine reads an item of DnsmasqOptionSet: an option of dnsmasq, as a line of its config.
func (r *Reader) optionLine(v *migrate.Value) {
	text := v.Get("value").String()
	if v.Get("value") == nil {
		r.optionObject(v)
		return
	}
	r.farm.Known(v, "key", "value")
	r.line(v, v.Get("key").String()+"="+text)
}

// line reads a line of a config of dnsmasq, which an item of an object has.
func (r *Reader) line(v *migrate.Value, text string) {
	err := r.parse(v.File, text, false, func(d directive) error {
		d.at = v.Origin
		d.at.Path += " (" + d.key + ")"
		r.Directive(d.at, d.key, d.fields)
		return nil
	})
	if err != nil {
		r.farm.Unknown(v.Origin, "%v", err)
	}
}

// part is a field of an item, and what dnsmasq's option has in front of its values.
type part struct{ key, prefix string }

// fields returns the values of an item as those of dnsmasq's option, and notes the fields that
// are none of these parts nor known.
func (r *Reader) fields(v *migrate.Value, parts []part, known ...string) (all []string) {
	for _, p := range parts {
		known = append(known, p.key)
		for _, text := range v.Get(p.key).Strings() {
			if text != "" {
				all = append(all, p.prefix+text)
			}
		}
	}
	r.farm.Known(v, known...)
	return all
}

// at returns the place of an item, or of a field of it, with the option of dnsmasq.
func at(v *migrate.Value, key, option string) pools.Origin {
	o := v.Origin
	if field := v.Get(key); field != nil {
		o = field.Origin
	}
	o.Path += " (" + option + ")"
	return o
}

// poolObject reads an item of DhcpPool, which some forks have: a range, its router and its boot
// file.
func (r *Reader) poolObject(v *migrate.Value) {
	fields := r.fields(v, []part{{"tag", "set:"}, {"rangeStart", ""}, {"rangeEnd", ""}, {"netmask", ""}, {"broadcast", ""}, {"leaseTime", ""}}, "gateway", "dhcpBoot")
	r.Directive(at(v, "rangeStart", "dhcp-range"), "dhcp-range", fields)
	var tags []string
	if tag := v.Get("tag").String(); tag != "" {
		tags = []string{"tag:" + tag}
	}
	if text := v.Get("gateway").String(); text != "" {
		r.Directive(at(v, "gateway", "dhcp-option"), "dhcp-option", append(slices.Clone(tags), "option:router", text))
	}
	if text := v.Get("dhcpBoot").String(); text != "" {
		r.Directive(at(v, "dhcpBoot", "dhcp-boot"), "dhcp-boot", append(tags, strings.Split(text, ",")...))
	}
}

// hostObject reads an item of DhcpHosts.
func (r *Reader) hostObject(v *migrate.Value) {
	if old := v.Get("clientIDs"); old != nil {
		r.farm.Bug(old.Origin, "dnsmasq-controller does not read clientIDs, which its documentation has: the field is clientID")
	}
	fields := r.fields(v, []part{{"macs", ""}, {"clientID", "id:"}, {"setTags", "set:"}, {"tags", "tag:"}, {"ip", ""}, {"hostname", ""}, {"leaseTime", ""}}, "clientIDs", "ignore")
	if v.Get("ignore").Is() {
		fields = append(fields, "ignore")
	}
	r.Directive(at(v, "", "dhcp-host"), "dhcp-host", fields)
}

// dhcpOptionObject reads an item of DhcpOptions. The field for vendor is called leaseTime
// there, by mistake.
func (r *Reader) dhcpOptionObject(v *migrate.Value) {
	fields := r.fields(v, []part{{"tags", "tag:"}, {"encap", "encap:"}, {"viEncap", "vi-encap:"}, {"leaseTime", "vendor:"}}, "type", "key", "values", "vendor")
	if vendor := v.Get("vendor"); !vendor.IsNull() {
		r.farm.Bug(vendor.Origin, "dnsmasq-controller does not read vendor: it takes the vendor class from leaseTime")
	}
	key := v.Get("key").String()
	if kind := v.Get("type").String(); kind != "" { // of v1alpha1
		key = kind + ":" + key
	}
	values := strings.Split(strings.Join(v.Get("values").Strings(), ","), ",")
	r.Directive(at(v, "", "dhcp-option "+key), "dhcp-option", append(append(fields, key), values...))
}
