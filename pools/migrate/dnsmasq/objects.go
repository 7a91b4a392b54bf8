package dnsmasq

import (
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/migrate"
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
	spec := v.Get("spec")
	readers := migrate.Readers{"controller": migrate.Skip}
	switch kind {
	case "DnsmasqOptions":
		readers["options"] = r.each(r.optionObject)
	case "DhcpHosts":
		readers["hosts"] = r.each(r.hostObject)
	case "DhcpOptions":
		readers["options"] = r.each(r.dhcpOptionObject)
	case "DhcpPool":
		readers["pools"] = r.each(r.poolObject)
	case "DnsmasqOptionSet": // of v1alpha1
		readers["options"] = r.each(r.optionLine)
	case "DnsmasqDhcpHostSet":
		readers["hosts"] = r.each(r.hostObject)
	case "DnsmasqDhcpOptionSet":
		readers["options"] = r.each(r.dhcpOptionObject)
	case "DnsHosts", "DnsmasqHostSet":
		at := v.Origin
		at.Path = strings.TrimPrefix(at.Path+".spec", ".") + " (DnsHosts)"
		r.Directive(at, "DnsHosts", nil)
		return 1
	default:
		r.farm.Unknown(v.Origin, "unknown kind %q", kind)
		return 1
	}
	r.farm.Fields(spec, readers)
	return 1
}

// each returns a reader for the items of a list.
func (r *Reader) each(read func(*migrate.Value)) func(*migrate.Value) {
	return func(v *migrate.Value) {
		if !v.IsList() && !v.IsNull() {
			r.farm.Unknown(v.Origin, "a list is expected here")
			return
		}
		for _, item := range v.Items {
			read(item)
		}
	}
}

// optionObject reads an item of DnsmasqOptions: any option of dnsmasq.
func (r *Reader) optionObject(v *migrate.Value) {
	r.unread(v, "key", "values")
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
	r.unread(v, "key", "value")
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

// poolObject reads an item of DhcpPool, which some forks have: a range, its router and its boot
// file.
func (r *Reader) poolObject(v *migrate.Value) {
	r.unread(v, "rangeStart", "rangeEnd", "netmask", "broadcast", "leaseTime", "tag", "gateway", "dhcpBoot")
	at := func(option, key string) pools.Origin {
		o := v.Origin
		if field := v.Get(key); field != nil {
			o = field.Origin
		}
		o.Path += " (" + option + ")"
		return o
	}
	var fields, tags []string
	if tag := v.Get("tag").String(); tag != "" {
		fields, tags = []string{"set:" + tag}, []string{"tag:" + tag}
	}
	for _, key := range []string{"rangeStart", "rangeEnd", "netmask", "broadcast", "leaseTime"} {
		if text := v.Get(key).String(); text != "" {
			fields = append(fields, text)
		}
	}
	r.Directive(at("dhcp-range", "rangeStart"), "dhcp-range", fields)
	if text := v.Get("gateway").String(); text != "" {
		r.Directive(at("dhcp-option", "gateway"), "dhcp-option", append(slices.Clone(tags), "option:router", text))
	}
	if text := v.Get("dhcpBoot").String(); text != "" {
		r.Directive(at("dhcp-boot", "dhcpBoot"), "dhcp-boot", append(slices.Clone(tags), strings.Split(text, ",")...))
	}
}

// unread notes the fields of an item that are none of these.
func (r *Reader) unread(v *migrate.Value, known ...string) {
	readers := migrate.Readers{}
	for _, key := range known {
		readers[key] = migrate.Skip
	}
	r.farm.Fields(v, readers)
}

// hostObject reads an item of DhcpHosts.
func (r *Reader) hostObject(v *migrate.Value) {
	if old := v.Get("clientIDs"); old != nil {
		r.farm.Bug(old.Origin, "dnsmasq-controller does not read clientIDs, which its documentation has: the field is clientID")
	}
	r.unread(v, "macs", "clientID", "clientIDs", "setTags", "tags", "ip", "hostname", "leaseTime", "ignore")
	fields := v.Get("macs").Strings()
	if id := v.Get("clientID").String(); id != "" {
		fields = append(fields, "id:"+id)
	}
	for _, tag := range v.Get("setTags").Strings() {
		fields = append(fields, "set:"+tag)
	}
	for _, tag := range v.Get("tags").Strings() {
		fields = append(fields, "tag:"+tag)
	}
	for _, key := range []string{"ip", "hostname", "leaseTime"} {
		if text := v.Get(key).String(); text != "" {
			fields = append(fields, text)
		}
	}
	if v.Get("ignore").Is() {
		fields = append(fields, "ignore")
	}
	at := v.Origin
	at.Path += " (dhcp-host)"
	r.Directive(at, "dhcp-host", fields)
}

// dhcpOptionObject reads an item of DhcpOptions. The field for vendor is called leaseTime
// there, by mistake.
func (r *Reader) dhcpOptionObject(v *migrate.Value) {
	r.unread(v, "type", "key", "values", "tags", "encap", "viEncap", "vendor", "leaseTime")
	var fields []string
	for _, tag := range v.Get("tags").Strings() {
		fields = append(fields, "tag:"+tag)
	}
	for _, p := range []struct{ key, prefix string }{{"encap", "encap:"}, {"viEncap", "vi-encap:"}, {"leaseTime", "vendor:"}} {
		if text := v.Get(p.key).String(); text != "" {
			fields = append(fields, p.prefix+text)
		}
	}
	if vendor := v.Get("vendor"); !vendor.IsNull() {
		r.farm.Bug(vendor.Origin, "dnsmasq-controller does not read vendor: it takes the vendor class from leaseTime")
	}
	at, key := v.Origin, v.Get("key").String()
	if kind := v.Get("type").String(); kind != "" { // of v1alpha1
		key = kind + ":" + key
	}
	at.Path += " (dhcp-option " + key + ")"
	r.Directive(at, "dhcp-option", append(append(fields, key), strings.Split(strings.Join(v.Get("values").Strings(), ","), ",")...))
}
