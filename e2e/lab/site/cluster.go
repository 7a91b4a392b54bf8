package site

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"drover/pools"
	"drover/pools/resolve"
)

// Node has the fields of a Kubernetes Node that a site uses.
type Node struct {
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		Taints []pools.Taint `json:"taints"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
		Addresses []struct {
			Type    string `json:"type"`
			Address string `json:"address"`
		} `json:"addresses"`
	} `json:"status"`
}

// Ready reports whether the node's condition Ready is true.
func (n *Node) Ready() bool {
	for _, c := range n.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True"
		}
	}
	return false
}

// Addresses returns the node's internal addresses, the primary one first.
func (n *Node) Addresses() (all []string) {
	for _, a := range n.Status.Addresses {
		if a.Type == "InternalIP" {
			all = append(all, a.Address)
		}
	}
	return all
}

// ErrNoNode is the error for a node that a cluster does not have.
var ErrNoNode = errors.New("is not in its cluster")

// Cluster runs kubectl in a cluster, as its administrator, and returns what it prints.
type Cluster interface {
	Kubectl(ctx context.Context, stdin io.Reader, args ...string) (string, error)
}

// get reads an object of a cluster.
func get(ctx context.Context, c Cluster, out any, args ...string) error {
	text, err := c.Kubectl(ctx, nil, append([]string{"get", "-o", "json"}, args...)...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), out)
}

// NodeOf reads a node of a cluster; the error is [ErrNoNode] when it is not there.
func NodeOf(ctx context.Context, c Cluster, name string) (*Node, error) {
	var n Node
	err := get(ctx, c, &n, "node", name)
	if err != nil && strings.Contains(err.Error(), "NotFound") {
		err = ErrNoNode
	}
	return &n, err
}

// Node is [NodeOf] with a cluster of the site.
func (s *Site) Node(ctx context.Context, cluster, name string) (*Node, error) {
	return NodeOf(ctx, s.Planes[cluster], name)
}

// NodesOf returns the names of the nodes of a cluster, sorted.
func NodesOf(ctx context.Context, c Cluster) ([]string, error) {
	var list struct {
		Items []Node `json:"items"`
	}
	if err := get(ctx, c, &list, "nodes"); err != nil {
		return nil, err
	}
	var names []string
	for _, n := range list.Items {
		names = append(names, n.Metadata.Name)
	}
	slices.Sort(names)
	return names, nil
}

// Heartbeat returns when a node's kubelet last renewed its lease.
func (s *Site) Heartbeat(ctx context.Context, cluster, node string) (time.Time, error) {
	var lease struct {
		Spec struct {
			RenewTime time.Time `json:"renewTime"`
		} `json:"spec"`
	}
	err := s.Get(ctx, cluster, &lease, "lease", "-n", "kube-node-lease", node)
	return lease.Spec.RenewTime, err
}

// Look is [LookIn] with the cluster of the plan.
func (s *Site) Look(ctx context.Context, plan *resolve.Plan) (podIP string, err error) {
	return LookIn(ctx, s.Planes[plan.Cluster], plan)
}

// LookIn reports whether the machine of a plan is what the plan says: Ready in its
// cluster, with its labels and taints, and running a pod, which LookIn creates.
// The error says what is not so yet. A node can be Ready with a network for pods
// that does not work: hence the pod. Its address is returned.
func LookIn(ctx context.Context, c Cluster, plan *resolve.Plan) (podIP string, err error) {
	node, err := NodeOf(ctx, c, plan.Node)
	switch {
	case err != nil:
		return "", err
	case !node.Ready():
		return "", errors.New("is in its cluster, but not Ready yet")
	}
	if err := matches(plan, node); err != nil {
		return "", err
	}
	return runs(ctx, c, plan)
}

// matches compares a node with what the farm says.
func matches(plan *resolve.Plan, n *Node) error {
	for _, key := range slices.Sorted(maps.Keys(plan.Labels)) {
		if got := n.Metadata.Labels[key]; got != plan.Labels[key] {
			return fmt.Errorf("has label %s=%q, the farm says %q", key, got, plan.Labels[key])
		}
	}
	got := slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t pools.Taint) bool {
		return strings.HasPrefix(t.Key, "node.kubernetes.io/") // Kubernetes' own
	})
	order := func(a, b pools.Taint) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
	slices.SortFunc(got, order)
	if want := slices.SortedFunc(slices.Values(plan.Taints), order); !slices.Equal(got, want) {
		return fmt.Errorf("has taints %v, the farm says %v", got, want)
	}
	return nil
}

// runs reports whether the node of a plan runs its pod, and creates the pod when
// it is not there.
func runs(ctx context.Context, c Cluster, plan *resolve.Plan) (podIP string, err error) {
	var pod struct {
		Status struct {
			Phase string `json:"phase"`
			PodIP string `json:"podIP"`
		} `json:"status"`
	}
	err = get(ctx, c, &pod, "pod", podName(plan))
	switch {
	case err != nil && strings.Contains(err.Error(), "NotFound"):
		manifest, err := json.Marshal(podFor(plan))
		if err != nil {
			return "", err
		}
		_, err = c.Kubectl(ctx, bytes.NewReader(manifest), "create", "-f", "-")
		return "", errors.Join(errors.New("is Ready; its pod is just created"), err)
	case err != nil:
		return "", err
	case pod.Status.Phase != "Running" || pod.Status.PodIP == "":
		return "", fmt.Errorf("is Ready; its pod is %s", cmp.Or(pod.Status.Phase, "new"))
	}
	return pod.Status.PodIP, nil
}

func podName(plan *resolve.Plan) string { return "hello-" + plan.Node }

// podFor is a pod for a node. It names its node, since the control planes of
// the lab have no scheduler, and tolerates the taints that the farm says. Its
// image is in the lab's node image.
func podFor(plan *resolve.Plan) any {
	type object map[string]any
	tolerations := []object{}
	for _, t := range plan.Taints {
		tolerations = append(tolerations, object{"key": t.Key, "operator": "Equal", "value": t.Value, "effect": t.Effect})
	}
	return object{
		"apiVersion": "v1",
		"kind":       "Pod",
		"metadata":   object{"name": podName(plan)},
		"spec": object{
			"nodeName":                     plan.Node,
			"automountServiceAccountToken": false,
			"tolerations":                  tolerations,
			"containers": []object{{
				"name": "hello", "image": "localhost/hello:1", "imagePullPolicy": "Never",
			}},
		},
	}
}
