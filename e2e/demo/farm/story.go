package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// story prints what helps to see why the demo failed.
func (d *demo) story() {
	d.watch.Failures()
	d.Story(d.log)
	for _, tenant := range d.tenants {
		tenant.Story(d.log)
	}
}

// lookAround says what there is to see while everything runs.
func (d *demo) lookAround() {
	kubectl := fmt.Sprintf("ip netns exec %s %s --kubeconfig", d.Name, filepath.Join(d.BinDir, "kubectl"))
	fmt.Fprintf(d.log, `
Everything is running. To look around, as root:
  %[1]s %[2]s --namespace farm get drover,pods
  %[1]s %[2]s --namespace farm edit machines.drover.dev b1
  %[1]s %[2]s --namespace farm exec deployment/drover -- drover boot list
`, kubectl, d.Admin)
	for _, name := range d.declared.tenants {
		fmt.Fprintf(d.log, "  %s %s get nodes,pods -A -o wide\n", kubectl, d.tenants[name].Kubeconfig)
	}
	for _, m := range d.watch.Machines {
		fmt.Fprintf(d.log, "  tail -f %s\n", m.Console())
	}
	fmt.Fprintf(d.log, `The page is http://%s/ inside of the namespace; it asks for the token in
%s.
Ctrl-C, or kill %d, stops and removes it all.
`, d.Server.API, d.Server.TokenFile(), os.Getpid())
}
