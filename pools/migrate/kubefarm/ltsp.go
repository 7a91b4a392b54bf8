package kubefarm

import (
	"encoding/json"
	"path"
	"strconv"
	"strings"

	"drover/pools"
	"drover/pools/migrate"
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
	_, t := f.Tag(allTag)
	to := func(v *migrate.Value, field string) { f.Taken(v.Origin, "tags.all.%s", field) }
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
	_, t := r.farm.Tag(allTag)
	set(&t.Files, "/etc/docker/daemon.json", file(string(text)+"\n"))
	r.farm.Taken(v.Origin, "tags.all.files./etc/docker/daemon.json; drover's images have containerd, whose config is /etc/containerd/config.toml")
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

// extraFiles reads the files that nodes get as /etc/ltsp/NAME. Services are enabled.
func (r *reader) extraFiles(v *migrate.Value) {
	_, t := r.farm.Tag(allTag)
	for _, p := range v.Pairs {
		if strings.Contains(p.Key, "/") || path.Clean(p.Key) != p.Key || p.Key == "" {
			r.farm.Unknown(p.Value.Origin, "%q is no name of a file", p.Key)
			continue
		}
		if strings.HasSuffix(p.Key, ".service") {
			set(&t.Units, p.Key, pools.Unit{Content: p.Value.String(), Enable: true})
			r.farm.Taken(p.Value.Origin, "tags.all.units.%s", p.Key)
			continue
		}
		set(&t.Files, "/etc/ltsp/"+p.Key, file(p.Value.String()))
		r.farm.Taken(p.Value.Origin, "tags.all.files./etc/ltsp/%s", p.Key)
	}
}

// sections reads shell code for the stages of LTSP.
func (r *reader) sections(v *migrate.Value) {
	for _, p := range v.Pairs {
		name := strings.Trim(p.Key, "/")
		switch name {
		case "init":
			r.script(allTag, pools.PostInit, "50-init", p.Value)
		case "initrd-bottom":
			r.script(allTag, pools.Initrd, "50-initrd-bottom", p.Value)
		default:
			r.farm.Lost(p.Value.Origin, "stage %q of LTSP is not one of a node that drover boots (initrd, pre-init, post-init, online)", p.Key)
		}
	}
}

// script adds shell code as a script of a stage, which has the variables of LTSP.
func (r *reader) script(tag string, stage pools.Stage, name string, v *migrate.Value) {
	name = migrate.TagName(name)
	_, t := r.farm.Tag(tag)
	set(&t.Scripts, name, pools.Script{Stage: stage, Source: true, Run: untemplated(v.String())})
	r.farm.Taken(v.Origin, "tags.%s.scripts.%s, in stage %s", migrate.TagName(tag), name, stage)
}

// untemplated returns a text that a template renders as it is.
func untemplated(text string) string { return strings.ReplaceAll(text, "{{", `{{"{{"}}`) }

// file returns a file with a text that is no template.
func file(text string) pools.File {
	f := pools.File{Content: text}
	if strings.Contains(text, "{{") {
		no := false
		f.Template = &no
	}
	return f
}
