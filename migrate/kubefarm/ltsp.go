package kubefarm

import (
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"

	"drover/migrate"
	"drover/pools"
)

// ltsp reads the boot server and what it does on nodes.
func (r *reader) ltsp(v *migrate.Value) {
	f := r.farm
	pod := f.NoCounterpart("it is of the server's pods: drover runs as a service of a host, or by its own chart")
	f.Fields(v, migrate.Readers{
		"config": r.config,
		"enabled": func(v *migrate.Value) {
			if !v.Is() {
				f.Lost(v.Origin, "without the boot server there is nothing to boot: drover always serves the images of its pools")
			}
		},
		"image": f.NoCounterpart("the image of LTSP holds server and root: build a root image with drover image build, and name it with --image"),
		"publishDHCP": func(v *migrate.Value) {
			if !v.Is() {
				f.Lost(v.Origin, "boot data are not in DHCP there: server.dhcp: proxy or off leaves DHCP to another server")
			}
		},
		"replicaCount": func(v *migrate.Value) {
			if v.String() != "1" {
				f.Lost(v.Origin, "several servers: run drover on several hosts with one config")
			}
		},
		"service": func(v *migrate.Value) {
			f.Fields(v, migrate.Readers{
				"enabled": migrate.Skip, "type": migrate.Skip, "annotations": pod,
				"loadBalancerIP": f.NoCounterpart("the address that nodes boot from: drover's own, or subnets[].address for one in front of it"),
				"labels": func(v *migrate.Value) {
					if len(v.Pairs) > 0 {
						f.Bug(v.Origin, "the chart never wrote these labels")
					}
				},
			})
		},
		"annotations": func(v *migrate.Value) {
			if len(v.Pairs) > 0 {
				f.Bug(v.Origin, "the chart wrote these annotations as labels")
			}
		},
		"labels": pod, "podLabels": pod, "podAnnotations": pod, "nodeSelector": pod, "tolerations": pod, "affinity": pod,
		"sidecars": pod, "extraVolumes": pod, "resources": pod, "securityContext": pod,
	})
}

// config reads ltsp.config: all of it is for all nodes.
func (r *reader) config(v *migrate.Value) {
	f := r.farm
	t := r.tag(allTag)
	to := func(v *migrate.Value, field string) { f.TakenSecret(v.Origin, "tags.all."+field, anys(v.Strings())...) }
	f.Fields(v, migrate.Readers{
		"disableAutoupdate": func(v *migrate.Value) {
			if v.Is() {
				r.mask(allTag, v, "apt-daily.timer", "apt-daily-upgrade.timer")
			}
		},
		"timezone": func(v *migrate.Value) {
			if t.Timezone = v.String(); t.Timezone != "" {
				to(v, "timezone")
			}
		},
		"sshAuthorizedKeys": func(v *migrate.Value) {
			switch t.SSHAuthorizedKeys.Items = v.Strings(); {
			case v.IsMap() || len(v.Items) > 0 && len(v.Items) != len(t.SSHAuthorizedKeys.Items):
				f.Unknown(v.Origin, "a list of keys is expected here")
			case len(t.SSHAuthorizedKeys.Items) > 0:
				to(v, "sshAuthorizedKeys")
			}
		},
		"rootPasswd": r.rootPassword,
		"sysctls": func(v *migrate.Value) {
			for _, p := range v.Pairs {
				set(&t.Sysctls, p.Key, p.Value.String())
				r.number(p.Value)
			}
			to(v, "sysctls")
		},
		"modules": func(v *migrate.Value) {
			if t.Modules.Items = v.Strings(); len(v.Items) != len(t.Modules.Items) && !v.IsPlain() || v.IsMap() {
				f.Unknown(v.Origin, "a list of names is expected here")
				return
			}
			to(v, "modules")
		},
		"dockerConfig":        r.docker,
		"options":             migrate.Skip, // with those of the tag all
		"sections":            r.sections,
		"extraFiles":          r.extraFiles,
		"extraProjectedItems": f.NoCounterpart("a Secret or ConfigMap of the admin cluster was public there to anyone who fetched the initrd: write files with fromSecret or fromFile, which drover sends sealed"),
	})
}

func anys(texts []string) (all []any) {
	for _, text := range texts {
		all = append(all, text)
	}
	return all
}

// set gives a map a value.
func set[V any](m *map[string]V, key string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = v
}

// docker writes the config of Docker, as JSON.
func (r *reader) docker(v *migrate.Value) {
	if len(v.Pairs) == 0 {
		return
	}
	text, err := json.MarshalIndent(plain(v), "", "  ")
	if err != nil {
		r.farm.Unknown(v.Origin, "%v", err)
		return
	}
	set(&r.tag(allTag).Files, "/etc/docker/daemon.json", file(string(text)+"\n"))
	at := v.Origin
	at.Path += " (all)"
	r.farm.Taken(at, "tags.all.files./etc/docker/daemon.json; drover's images have containerd, whose config is /etc/containerd/config.toml")
}

// plain returns a value as JSON has it.
func plain(v *migrate.Value) any {
	switch {
	case v.IsMap():
		m := map[string]any{}
		for _, p := range v.Pairs {
			m[p.Key] = plain(p.Value)
		}
		return m
	case v.IsList():
		list := []any{}
		for _, item := range v.Items {
			list = append(list, plain(item))
		}
		return list
	case v.IsNull():
		return nil
	case v.Quoted:
		return v.Text
	}
	if b, err := strconv.ParseBool(v.Text); err == nil && len(v.Text) > 1 {
		return b
	}
	if n := json.Number(v.Text); json.Valid([]byte(n)) {
		return n
	}
	return v.Text
}

// chartFiles are the files that the chart itself writes.
const chartFiles = "authorized_keys docker.json kubeadm-join.service ltsp.conf modules sysctl.conf"

// extraFiles reads the files that nodes get as /etc/ltsp/NAME. Services are enabled.
func (r *reader) extraFiles(v *migrate.Value) {
	t := r.tag(allTag)
	for _, p := range v.Pairs {
		if strings.Contains(p.Key, "/") || path.Clean(p.Key) != p.Key || p.Key == "" {
			r.farm.Unknown(p.Value.Origin, "%q is no name of a file", p.Key)
			continue
		}
		if slices.Contains(strings.Fields(chartFiles), p.Key) {
			r.farm.Lost(p.Value.Origin, "a file that the chart writes itself: drover's agent joins nodes, and all else has a field of its own (sshAuthorizedKeys, modules, sysctls, …)")
			continue
		}
		if strings.HasSuffix(p.Key, ".service") {
			set(&t.Units, p.Key, pools.Unit{Content: p.Value.String(), Enable: true})
			r.farm.Taken(p.Value.Origin, "tags.all.units."+p.Key)
			continue
		}
		if strings.HasSuffix(p.Key, ".sh") {
			r.functions(p.Value)
		}
		set(&t.Files, "/etc/ltsp/"+p.Key, file(p.Value.String()))
		r.farm.Taken(p.Value.Origin, "tags.all.files./etc/ltsp/"+p.Key)
	}
}

// file returns a file with a text that is no template.
func file(text string) pools.File {
	f := pools.File{Content: text}
	if strings.Contains(text, "{{") {
		f.Template = new(bool)
	}
	return f
}
