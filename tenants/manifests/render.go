package manifests

import (
	"bytes"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"text/template"

	"drover/pools"
	"drover/tenants/pki"
)

//go:embed templates
var templates embed.FS

// Front returns the Services, which have to be there before the address of a load
// balancer is known.
func (p *Plane) Front() ([]byte, error) { return p.render("front.yaml.tmpl") }

// Pods returns the StatefulSet and what its pods need but the Secrets.
func (p *Plane) Pods() ([]byte, error) { return p.render("pods.yaml.tmpl") }

// Bootstrap returns what "kubeadm join" reads in the tenant, and the konnectivity agent.
func (p *Plane) Bootstrap() ([]byte, error) {
	join, err := p.render("bootstrap.yaml.tmpl")
	if err != nil {
		return nil, err
	}
	agent, err := p.render("konnectivity.yaml.tmpl")
	return bytes.Join([][]byte{join, agent}, []byte("\n---\n")), err
}

// Addons returns the add-ons that are to be installed, and those that are not.
func (p *Plane) Addons() (installed, removed []byte, err error) {
	a := p.Spec.Addons
	var yes, no [][]byte
	for _, addon := range []struct {
		template string
		on       bool
	}{{"kube-proxy.yaml.tmpl", on(a.KubeProxy)}, {"coredns.yaml.tmpl", on(a.CoreDNS)}, {"flannel.yaml.tmpl", on(a.Flannel)}} {
		text, err := p.render(addon.template)
		if err != nil {
			return nil, nil, err
		}
		if addon.on {
			yes = append(yes, text)
		} else {
			no = append(no, text)
		}
	}
	sep := []byte("\n---\n")
	return bytes.Join(yes, sep), bytes.Join(no, sep), nil
}

func (p *Plane) render(file string) ([]byte, error) {
	t, err := template.New(file).Funcs(template.FuncMap{
		"json":        toJSON,
		"base64":      base64.StdEncoding.EncodeToString,
		"fingerprint": func(s string) string { return Fingerprint([]byte(s)) },
		"include":     p.include,
	}).Option("missingkey=error").ParseFS(templates, "templates/"+file)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return nil, fmt.Errorf("tenant %q: %w", p.Name, err)
	}
	return b.Bytes(), nil
}

// include renders a file that is a value in another.
func (p *Plane) include(name string) (string, error) {
	text, err := p.render(name)
	return string(text), err
}

func toJSON(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

// Kubeconfigs returns the kubeconfigs of the parts in the pod, which name files: a part
// reads them again when its certificate is renewed.
func (p *Plane) Kubeconfigs() (map[string]string, error) {
	all := map[string]string{}
	for file, cert := range map[string]string{
		"controller-manager.conf": "controller-manager", "scheduler.conf": "scheduler", "konnectivity.conf": "konnectivity-client",
	} {
		text, err := pki.Kubeconfig(p.Name, p.Local(), keysDir+"/ca.crt", nil, pki.User{
			CertFile: keysDir + "/" + cert + ".crt", KeyFile: keysDir + "/" + cert + ".key",
		})
		if err != nil {
			return nil, err
		}
		all[file] = string(text)
	}
	return all, nil
}

// ResourcesOf returns the resources of a container. Without any of the tenant's they are
// requests that fit a small tenant.
func (p *Plane) ResourcesOf(program string) pools.Resources {
	r := p.Spec.Resources
	own, cpu, memory := pools.Resources{}, "", ""
	switch program {
	case "etcd":
		own, cpu, memory = r.Etcd, "50m", "64Mi"
	case "kube-apiserver":
		own, cpu, memory = r.APIServer, "100m", "256Mi"
	case "kube-controller-manager":
		own, cpu, memory = r.ControllerManager, "25m", "64Mi"
	case "kube-scheduler":
		own, cpu, memory = r.Scheduler, "25m", "32Mi"
	case "konnectivity-server":
		own, cpu, memory = r.Konnectivity, "10m", "16Mi"
	}
	if own.Requests == nil && own.Limits == nil {
		own.Requests = map[string]string{"cpu": cpu, "memory": memory}
	}
	return own
}
