package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"drover/e2e/demo/watch"
	"drover/e2e/farm"
	"drover/e2e/lab"
	"drover/pools"
)

// rackful returns the machines. memory is in MB: the image of the node, and the container
// images of what a tenant runs on it, are in RAM.
func rackful() []*watch.Machine {
	const memory = 2560
	return []*watch.Machine{
		{What: "BIOS, iPXE in its network card", Machine: lab.Machine{
			Name: "bios", Memory: memory, NICs: []lab.NIC{{MAC: "52:54:00:77:00:0a", Boot: true}},
		}},
		{What: "UEFI, two network cards of which the second boots", Machine: lab.Machine{
			Name: "uefi", Memory: memory, Firmware: lab.UEFI, NICs: []lab.NIC{{MAC: "52:54:00:77:00:b1", Dark: true}, {MAC: "52:54:00:77:00:b2", Boot: true}},
		}},
		{What: "BIOS, a MAC that no object names", Machine: lab.Machine{
			Name: "stray", Memory: memory, NICs: []lab.NIC{{MAC: "52:54:00:77:00:0c", Boot: true}},
		}},
	}
}

// The machines of [rackful], as the steps of the demo use them.
const (
	bios  = 0 // serves the proofs, and moves
	stray = 2 // in the same tenant until then
)

// say prints a command, as a person would type it.
func (d *demo) say(command ...string) {
	for i, word := range command {
		if strings.Contains(word, `"`) {
			command[i] = "'" + word + "'"
		}
	}
	d.log.Say("$ %s", strings.Join(command, " "))
}

// kubectl runs kubectl in drover's namespace of the admin cluster, and prints what it says.
func (d *demo) kubectl(ctx context.Context, args ...string) error {
	args = append([]string{"--namespace", farm.Namespace}, args...)
	d.say(append([]string{"kubectl"}, args...)...)
	out, err := d.Kubectl(ctx, nil, args...)
	fmt.Fprint(d.log, out)
	return err
}

// install installs the chart.
func (d *demo) install(ctx context.Context) error {
	d.log.Say("the admin cluster is up: one host, %s, and no drover", farm.Address)
	values := filepath.Join(d.dir, "values.yaml")
	d.say("helm install drover", d.Chart(), "--namespace", farm.Namespace, "--create-namespace --values", values)
	return d.Install(ctx, values)
}

// apply applies the objects, and waits until all are in force.
func (d *demo) apply(ctx context.Context) error {
	if err := d.kubectl(ctx, "apply", "--filename", filepath.Join(d.dir, "objects.yaml")); err != nil {
		return err
	}
	d.log.Say("waiting until all objects are in force")
	return d.objects(ctx, pools.Accepted)
}

func (d *demo) objects(ctx context.Context, condition string) error {
	return farm.Await(ctx, "objects", func() error { return d.Objects(ctx, len(d.declared.objects), condition) })
}

// controlPlanes waits until the control planes of the tenants run. The machines boot
// meanwhile: what they need of them is the join, which they ask for until they get it.
func (d *demo) controlPlanes(ctx context.Context) error {
	d.log.Say("waiting until the control planes of %s run as pods", strings.Join(d.declared.tenants, " and "))
	if err := d.objects(ctx, pools.Ready); err != nil {
		return err
	}
	for _, name := range d.declared.tenants {
		tenant, err := d.Tenant(ctx, name)
		if err != nil {
			return err
		}
		d.tenants[name] = tenant
	}
	return d.kubectl(ctx, "get", "tenants.drover.dev,pods")
}

// powerOn asks the farm what is to become of each machine, and switches them on.
func (d *demo) powerOn(context.Context) error {
	for _, m := range rackful() {
		var err error
		if m.Plan, err = d.declared.plan(m.MAC()); err != nil {
			return err
		}
		if err := d.watch.PowerOn(m); err != nil {
			return err
		}
	}
	return nil
}

// tenantOf returns the tenant that a machine is in.
func (d *demo) tenantOf(m *watch.Machine) *farm.Tenant { return d.tenants[m.Plan.Cluster] }

// konnectivity shows that the API server of a tenant needs no way to its nodes.
func (d *demo) konnectivity(ctx context.Context) error {
	m := d.watch.Machines[bios]
	d.log.Say("from now on %s takes no TCP connection, and nothing leads to the pods of tenants", m.Plan.Node)
	if err := d.tenantOf(m).ProveKonnectivity(ctx, m.Plan.Node, m.Plan.Address.String()); err != nil {
		return err
	}
	d.log.Say("kubectl logs, kubectl exec and a webhook on %s work all the same: through konnectivity", m.Plan.Node)
	return nil
}

// services shows that pods of two machines reach each other.
func (d *demo) services(ctx context.Context) error {
	m, other := d.watch.Machines[bios], d.watch.Machines[stray]
	tenant := d.tenantOf(m)
	if err := tenant.InstallHello(ctx, other.Plan.Node); err != nil {
		return err
	}
	var address string
	if err := farm.Await(ctx, "the Service hello", func() (err error) {
		address, err = tenant.Hello(ctx)
		return err
	}); err != nil {
		return err
	}
	d.log.Say("a pod on %s reaches the pod hello on %s: at its ClusterIP, http://%s/, and by DNS, http://hello/", m.Plan.Node, other.Plan.Node, address)
	return nil
}

// move gives a machine to the other tenant, by an edit of its object.
func (d *demo) move(ctx context.Context) error {
	m := d.watch.Machines[bios]
	if err := d.tenantOf(m).RemoveWebhook(ctx); err != nil {
		return err
	}
	patch, err := d.declared.movedTo(m.Plan.Node, "b-compute")
	if err != nil {
		return err
	}
	if err := d.kubectl(ctx, "patch", "machines.drover.dev", m.Plan.Node, "--type=merge", "--patch", patch); err != nil {
		return err
	}
	plan, err := d.declared.plan(m.MAC())
	if err != nil {
		return err
	}
	return d.watch.Move(ctx, m, plan)
}

// report shows the objects and the clusters, and checks the machines once more.
func (d *demo) report(ctx context.Context) error {
	if err := d.kubectl(ctx, "get", "tenants.drover.dev,machines.drover.dev", "-o", "wide"); err != nil {
		return err
	}
	return d.watch.Report(ctx, d.declared.tenants...)
}

// remove deletes all objects, and waits until nothing of the tenants is left.
func (d *demo) remove(ctx context.Context) error {
	if err := d.kubectl(ctx, "delete", "--wait=false", "--filename", filepath.Join(d.dir, "objects.yaml")); err != nil {
		return err
	}
	if err := farm.Await(ctx, "the end of the tenants", func() error { return d.Removed(ctx) }); err != nil {
		return err
	}
	d.log.Say("the control planes are gone, with their keys and volumes")
	return farm.Await(ctx, "an empty farm", func() error {
		out, err := d.Drover(ctx, "node", "list", "--selector", "from!=catch-all", "--output", "name")
		if err == nil && strings.TrimSpace(out) != "" {
			err = fmt.Errorf("drover has the nodes %s", strings.Fields(out))
		}
		return err
	})
}
