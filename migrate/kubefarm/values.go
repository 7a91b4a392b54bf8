package kubefarm

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"strings"

	"drover/migrate"
	"drover/migrate/dnsmasq"
	"drover/pools"
)

// defaults are the values of the chart that decide what a node gets.
const defaults = `
ltsp:
  config:
    disableAutoupdate: true
    sysctls: {net.ipv4.ip_forward: 1, net.ipv6.conf.all.forwarding: 1}
    modules: [br_netfilter]
    dockerConfig: {exec-opts: [native.cgroupdriver=systemd], iptables: false, ip-forward: false, bridge: none, log-driver: journald, storage-driver: overlay2}
    options: {MENU_TIMEOUT: 0}
tags:
  ltspOptions:
    all:
      FSTAB_KUBELET: tmpfs /var/lib/kubelet tmpfs x-systemd.wanted-by=kubelet.service 0 0
      FSTAB_DOCKER: tmpfs /var/lib/docker tmpfs x-systemd.wanted-by=docker.service 0 0
      KUBELET_EXTRA_ARGS_CGROUP: --cgroup-driver=systemd
    debug: {DEBUG_SHELL: "1"}
`

// release stands for the tag of the release, which kubefarm makes of its name.
const release = "kubefarm-release"

// reader reads the values of one release.
type reader struct {
	farm *migrate.Farm
	dhcp *dnsmasq.Reader // of the options of tags
	tags []string        // names of all tags, without all
	root *migrate.Value
}

// Read merges files of values as Helm does, and fills a farm with them.
func Read(f *migrate.Farm, files []string) error {
	all, err := migrate.ParseYAML("kubefarm's default", []byte(defaults))
	if err != nil {
		return err
	}
	values := all[0].WithoutLines()
	documents, err := migrate.ReadYAML(files)
	if err != nil {
		return err
	}
	found := false
	for i, doc := range documents {
		if i > 0 && documents[i-1].File == doc.File {
			return migrate.FormatError(doc.Origin, "a second document")
		}
		if !doc.IsMap() {
			return migrate.FormatError(doc.Origin, "keys with values are expected")
		}
		for _, key := range []string{"kubernetes", "tokenGenerator", "ltsp", "nodePools", "tags"} {
			found = found || doc.Get(key) != nil
		}
		f.SourceTree(doc)
		values = migrate.Merge(values, doc)
	}
	if !found {
		return migrate.FormatError(migrate.At(strings.Join(files, ", ")), "no key of kubefarm's values: want kubernetes, ltsp, nodePools or tags")
	}
	r := &reader{farm: f, dhcp: dnsmasq.NewReader(f), root: values}
	r.read()
	return nil
}

func (r *reader) read() {
	f := r.farm
	f.Guess, f.SelfMade = true, true
	f.Cluster = cmp.Or(f.Cluster, "kubefarm")
	for _, kind := range []string{"dhcpOptions", "ltspOptions", "kubernetesLabels", "kubernetesTaints"} {
		if v := r.root.Get("tags", kind); v.IsMap() {
			for _, p := range v.Pairs {
				if !slices.Contains(r.tags, p.Key) && p.Key != allTag {
					r.tags = append(r.tags, p.Key)
				}
			}
		}
	}
	f.Fields(r.root, migrate.Readers{
		"kubernetes": r.kubernetes, "tokenGenerator": r.tokens, "ltsp": r.ltsp, "tags": r.allTags, "nodePools": r.nodePools,
		"global": migrate.Skip, "nameOverride": migrate.Skip, "fullnameOverride": migrate.Skip,
	})
	r.dhcp.Finish()
	f.Comment("kubefarm's ltsp.config, and its tag all.", "tags", allTag)
}

// allTag is the tag of all nodes, there and here.
const allTag = "all"

// kubernetes reads the values of the control plane. drover joins nodes to one that exists.
func (r *reader) kubernetes(v *migrate.Value) {
	f := r.farm
	if enabled := v.Get("enabled"); enabled.IsPlain() && !enabled.Is() {
		f.Itself(enabled.Origin, "drover needs a kubeconfig of the cluster that the nodes join, wherever it runs")
	}
	if f.Kubernetes != "" {
		r.hosted(v)
		return
	}
	c := pools.Cluster{Name: migrate.Label(f.Cluster), Kubeconfig: migrate.Label(f.Cluster) + ".kubeconfig"}
	e := endpointOf(v)
	host := e.host
	if host == "" && e.address.IsValid() {
		host = e.address.String()
	}
	if host != "" {
		c.Endpoint = net.JoinHostPort(host, strconv.Itoa(e.port))
		for _, at := range []*migrate.Value{e.nameAt, e.addressAt, e.portAt} {
			if at != nil && (at != e.addressAt || e.host == "") {
				f.Taken(at.Origin, "clusters[].endpoint", c.Endpoint)
			}
		}
	}
	f.AddCluster(c)
	f.Comment("The control plane stays as it is. See docs/clusters.md for the kubeconfig.", "clusters", c.Name)
	v.Leaves(func(leaf *migrate.Value) {
		if leaf != e.addressAt && leaf != e.portAt && leaf != e.nameAt && leaf.Path != "kubernetes.enabled" && !leaf.IsNull() {
			f.Lost(leaf.Origin, "it is of the control plane, which stays as it is: keep the chart kubernetes-in-kubernetes for it")
		}
	})
}

// tokens reads tokenGenerator. Two of its values are read by no template of the chart.
func (r *reader) tokens(v *migrate.Value) {
	bug := func(v *migrate.Value) {
		r.farm.Bug(v.Origin, "the chart never read it (tokens were valid for 24h, and made every 12h); drover makes a token for each boot, valid for clusters[].token.ttl")
	}
	r.farm.Fields(v, migrate.Readers{"tokenTtl": bug, "schedule": bug, "enabled": func(v *migrate.Value) {
		r.farm.Itself(v.Origin, "drover makes the join tokens, one for each boot of a node")
	}})
}

// allTags reads the tags: kinds of options, each by tag.
func (r *reader) allTags(v *migrate.Value) {
	for _, name := range r.tags {
		if migrate.TagName(name) != name {
			r.farm.Taken(v.Origin, "tags."+migrate.TagName(name)+"; there "+name)
		}
		if strings.Contains(name, "-") {
			r.farm.Bug(v.Origin, "tag %q: the dash made a shell of LTSP fail, and nodes with the tag did not boot; here it is a tag like any other", name)
		}
	}
	r.farm.Fields(v, migrate.Readers{
		"dhcpOptions": r.byTag((*migrate.Value).IsMap, r.dhcpOptions), "ltspOptions": r.byTag((*migrate.Value).IsMap, r.ltspOptions),
		"kubernetesLabels": r.byTag((*migrate.Value).IsMap, r.labels), "kubernetesTaints": r.byTag((*migrate.Value).IsList, r.taints),
	})
	if !v.Get("ltspOptions", allTag).IsMap() { // ltsp.config.options has no other place
		r.ltspOptions(allTag, nil)
	}
}

// byTag returns a reader for values by tag, which have the form that is reports.
func (r *reader) byTag(is func(*migrate.Value) bool, read func(tag string, v *migrate.Value)) func(*migrate.Value) {
	return func(v *migrate.Value) {
		if v.IsNull() {
			return
		}
		if !v.IsMap() {
			r.farm.Unknown(v.Origin, "tags with values are expected here")
			return
		}
		for _, p := range v.Pairs {
			r.farm.Tag(p.Key)
			switch {
			case p.Value.IsNull():
			case is(p.Value):
				read(p.Key, p.Value)
			case p.Value.IsPlain() || len(p.Value.Items)+len(p.Value.Pairs) > 0:
				r.farm.Unknown(p.Value.Origin, "a mapping of options or labels, or a list of taints, is expected here")
			}
		}
	}
}

// dhcpOptions reads the DHCP options of a tag: router, 42, option:ntp-server.
func (r *reader) dhcpOptions(tag string, v *migrate.Value) {
	for _, p := range v.Pairs {
		key := p.Key
		switch {
		case key == "broadcast":
			key = "28"
		case !strings.Contains(key, ":") && strings.Trim(key, "0123456789") != "":
			key = "option:" + key
		}
		var fields []string
		if tag != allTag {
			fields = append(fields, "tag:"+tag)
		}
		fields = append(fields, key)
		for _, text := range p.Value.Strings() {
			for word := range strings.SplitSeq(text, ",") {
				fields = append(fields, strings.TrimSpace(word))
			}
		}
		r.dhcp.Directive(p.Value.Origin, "dhcp-option", fields)
	}
}

// inTag returns the path of a field of a tag.
func inTag(tag, field string) string { return "tags." + migrate.TagName(tag) + "." + field }

// tag returns a tag, and adds it if it is new.
func (r *reader) tag(name string) *pools.Tag {
	_, t := r.farm.Tag(name)
	return t
}

func (r *reader) labels(tag string, v *migrate.Value) {
	for _, p := range v.Pairs {
		set(&r.tag(tag).Labels, p.Key, p.Value.String())
		if text := p.Value.String(); !p.Value.Quoted && (text == "0" || text == "false") {
			r.farm.Bug(p.Value.Origin, "the chart wrote an empty value for %s there", text)
		}
		r.number(p.Value)
		r.farm.Taken(p.Value.Origin, inTag(tag, "labels."+p.Key), p.Value.String())
	}
}

func (r *reader) taints(tag string, v *migrate.Value) {
	t := r.tag(tag)
	for _, item := range v.Items {
		r.farm.Known(item, "key", "value", "effect")
		t.Taints.Items = append(t.Taints.Items, pools.Taint{Key: item.Get("key").String(), Value: item.Get("value").String(), Effect: item.Get("effect").String()})
		r.farm.Taken(item.Origin, inTag(tag, "taints"), item.Get("key").String(), item.Get("effect").String())
	}
}
