package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"

	"drover/e2e/farm"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/config/declared"
	"drover/pools/resolve"
)

// contents is the farm that the values of the chart and the objects declare.
type contents struct {
	config  []byte // drover.yaml
	objects []*declared.Object
	tenants []string
}

// readFarm reads values.yaml and objects.yaml of a folder.
func readFarm(dir string) (*contents, error) {
	text, err := os.ReadFile(filepath.Join(dir, "values.yaml"))
	if err != nil {
		return nil, err
	}
	var values struct{ Config map[string]any }
	if err := yaml.Unmarshal(text, &values); err != nil {
		return nil, err
	}
	server, ok := values.Config["server"].(map[string]any)
	if !ok {
		return nil, errors.New("values.yaml: there is no config.server")
	}
	server["objects"] = map[string]string{"namespace": farm.Namespace} // as the chart does
	d := &contents{}
	if d.config, err = yaml.Marshal(values.Config); err != nil {
		return nil, err
	}
	if text, err = os.ReadFile(filepath.Join(dir, "objects.yaml")); err != nil {
		return nil, err
	}
	if d.objects, err = declared.Read("objects.yaml", text); err != nil {
		return nil, err
	}
	for _, o := range d.objects {
		if o.Kind == pools.KindTenant {
			d.tenants = append(d.tenants, o.Name)
		}
	}
	return d, nil
}

// noNodes is a store without nodes of the API.
type noNodes struct{}

func (noNodes) Nodes() ([]pools.PoolNode, error)             { return nil, nil }
func (noNodes) ChangeNodes([]pools.PoolNode, []string) error { return nil }

// plan returns what drover makes of the machine that boots with a MAC; nil when it is none of
// the farm's.
func (d *contents) plan(mac string) (*resolve.Plan, error) {
	dir, err := os.MkdirTemp("", "drover-demo-farm-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "drover.yaml")
	if err := os.WriteFile(file, d.config, 0o600); err != nil {
		return nil, err
	}
	live, err := config.NewLive(config.Source{File: file}, noNodes{}, d.objects...)
	if err != nil {
		return nil, err
	}
	m, err := pools.ParseMAC(mac)
	if err != nil {
		return nil, err
	}
	return live.Farm().Resolve(resolve.Query{MAC: m}), nil
}

// movedTo gives a machine to another pool, and returns the merge patch for its object.
func (d *contents) movedTo(machine, pool string) (patch string, err error) {
	i := slices.IndexFunc(d.objects, func(o *declared.Object) bool { return o.Kind == pools.KindMachine && o.Name == machine })
	if i < 0 {
		return "", fmt.Errorf("objects.yaml: there is no Machine %s", machine)
	}
	var spec map[string]any
	if err := json.Unmarshal(d.objects[i].Spec, &spec); err != nil {
		return "", err
	}
	spec["pool"] = pool
	text, err := json.Marshal(spec)
	if err != nil {
		return "", err
	}
	d.objects[i] = declared.New(d.objects[i].Key, 0, text)
	return fmt.Sprintf(`{"spec": {"pool": %q}}`, pool), nil
}
