package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"drover/pools"
)

// The parts of Kubernetes objects that the demo looks at.

type node struct {
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		Taints []pools.Taint `json:"taints"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type               string    `json:"type"`
			Status             string    `json:"status"`
			LastTransitionTime time.Time `json:"lastTransitionTime"`
		} `json:"conditions"`
	} `json:"status"`
}

func (n *node) ready() bool {
	for _, c := range n.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True"
		}
	}
	return false
}

type lease struct {
	Spec struct {
		RenewTime time.Time `json:"renewTime"`
	} `json:"spec"`
}

type pod struct {
	Status struct {
		Phase string `json:"phase"`
		PodIP string `json:"podIP"`
	} `json:"status"`
}

func (d *demo) node(ctx context.Context, m *machine) (*node, error) {
	var n node
	return &n, d.Get(ctx, m.plan.Cluster, &n, "node", m.plan.Node)
}

// lease is the kubelet's heartbeat.
func (d *demo) lease(ctx context.Context, m *machine) (l lease, err error) {
	return l, d.Get(ctx, m.plan.Cluster, &l, "lease", "-n", "kube-node-lease", m.plan.Node)
}

// pod returns the machine's pod, and creates it first when it is not there.
func (d *demo) pod(ctx context.Context, m *machine) (p pod, err error) {
	err = d.Get(ctx, m.plan.Cluster, &p, "pod", podName(m))
	if err == nil || !strings.Contains(err.Error(), "NotFound") {
		return p, err
	}
	manifest, err := json.Marshal(podFor(m))
	if err != nil {
		return p, err
	}
	_, err = d.Planes[m.plan.Cluster].Kubectl(ctx, bytes.NewReader(manifest), "create", "-f", "-")
	return p, err
}

func podName(m *machine) string { return "hello-" + m.plan.Node }

// podFor is a pod for the machine. It names its node, since the control planes
// of the lab have no scheduler, and tolerates the taints that the farm says.
func podFor(m *machine) any {
	type object map[string]any
	tolerations := []object{}
	for _, t := range m.plan.Taints {
		tolerations = append(tolerations, object{"key": t.Key, "operator": "Equal", "value": t.Value, "effect": t.Effect})
	}
	return object{
		"apiVersion": "v1",
		"kind":       "Pod",
		"metadata":   object{"name": podName(m)},
		"spec": object{
			"nodeName":                     m.plan.Node,
			"automountServiceAccountToken": false,
			"tolerations":                  tolerations,
			"containers": []object{{
				"name": "hello", "image": "localhost/hello:1", "imagePullPolicy": "Never",
			}},
		},
	}
}

// alone checks that a cluster has exactly the nodes that the farm says.
func (d *demo) alone(ctx context.Context, cluster string) error {
	var list struct {
		Items []node `json:"items"`
	}
	if err := d.Get(ctx, cluster, &list, "nodes"); err != nil {
		return err
	}
	var got, want []string
	for _, n := range list.Items {
		got = append(got, n.Metadata.Name)
	}
	for _, m := range d.machines {
		if m.plan.Cluster == cluster {
			want = append(want, m.plan.Node)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		return fmt.Errorf("cluster %s has nodes %v, the farm says %v", cluster, got, want)
	}
	return nil
}
