package dnsmasq

import (
	"strings"

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
		return migrate.FormatError(migrate.At(files[0]), "no object of dnsmasq.kvaps.cf: want DnsmasqOptions, DhcpHosts or DhcpOptions")
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
	if c := v.Get("spec", "controller"); c.String() != "" {
		r.farm.Taken(c.Origin, "all objects are read, also those of controller %q", c)
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
	case "DnsHosts":
		r.Directive(v.Origin, "DnsHosts", nil)
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
	at := v.Origin
	at.Path = v.Get("key").String()
	r.unread(v, "key", "values")
	r.Directive(at, at.Path, v.Get("values").Strings())
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
	r.Directive(v.Origin, "dhcp-host", fields)
}

// dhcpOptionObject reads an item of DhcpOptions. The field for vendor is called leaseTime
// there, by mistake.
func (r *Reader) dhcpOptionObject(v *migrate.Value) {
	r.unread(v, "key", "values", "tags", "encap", "viEncap", "vendor", "leaseTime")
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
	at := v.Origin
	at.Path = "dhcp-option " + v.Get("key").String()
	r.Directive(at, "dhcp-option", append(append(fields, v.Get("key").String()), v.Get("values").Strings()...))
}
