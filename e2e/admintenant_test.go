package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"drover/e2e/farm"
	"drover/e2e/fixture"
	"drover/e2e/lab/site"
)

// wantKonnectivity drops all TCP connections to the node, and takes the way to its pods. The
// tenant's API server reaches them through an agent, and not without one.
func wantKonnectivity(ctx context.Context, t *testing.T, tenant *farm.Tenant) {
	t.Helper()
	if err := tenant.ProveKonnectivity(ctx, "n1", "10.77.0.21"); err != nil {
		t.Fatal(err)
	}
	if err := tenant.KeepAgents(ctx, false); err != nil {
		t.Fatal(err)
	}
	fixture.Until(ctx, t, "without an agent logs, exec and a webhook fail", func() (bool, error) {
		err := tenant.Unreached(ctx)
		return err == nil, err
	})
	if err := tenant.KeepAgents(ctx, true); err != nil {
		t.Fatal(err)
	}
	fixture.Until(ctx, t, "with an agent again logs, exec and a webhook work", func() (bool, error) {
		err := tenant.Reached(ctx)
		return err == nil, err
	})
}

// deleteControlPlane deletes the pod of the tenant's control plane. The API answers again,
// and the node has been Ready all the time.
func deleteControlPlane(ctx context.Context, t *testing.T, f *farm.Farm, tenant *farm.Tenant) {
	t.Helper()
	const pod = "tenant-control-plane-0"
	since := func() (string, error) {
		return tenant.Kubectl(ctx, nil, "get", "node", "n1", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")]['status','lastTransitionTime']}`)
	}
	before, err := since()
	if err != nil || !strings.HasPrefix(before, "True") {
		t.Fatalf("n1 is Ready: %q, %v", before, err)
	}
	uid := func() string {
		return inFarm(ctx, t, f, "get", "pods", "--field-selector=metadata.name="+pod, "-o", "jsonpath={.items[*].metadata.uid}")
	}
	was := uid()
	inFarm(ctx, t, f, "delete", "pod", pod, "--wait=false")
	fixture.Until(ctx, t, "there is a new pod", func() (bool, error) {
		now := uid()
		return now != "" && now != was, nil
	})
	fixture.Until(ctx, t, "the API answers again, and n1 is Ready", func() (bool, error) {
		after, err := since()
		if err == nil && after != before {
			err = fmt.Errorf("n1 is Ready: it was %s, it is %s", before, after)
		}
		return err == nil, err
	})
	fixture.Until(ctx, t, "the agent is connected again", func() (bool, error) {
		err := tenant.Reached(ctx)
		return err == nil, err
	})
	n, err := site.NodeOf(ctx, tenant, "n1")
	if err != nil || !n.Ready() {
		t.Errorf("n1 is Ready: %v, %v", n.Ready(), err)
	}
}

// adoptAgain removes the tenant with its pool and its machine, and declares them again. The
// control plane is gone in between; with the keys and the volume that were retained it is the
// same cluster, and the machine, which ran all the time, is the same Node.
func adoptAgain(ctx context.Context, t *testing.T, f *farm.Farm, tenant *farm.Tenant) {
	t.Helper()
	node := func() (string, error) {
		return tenant.Kubectl(ctx, nil, "get", "node", "n1", "-o", `jsonpath={.metadata.uid} Ready={.status.conditions[?(@.type=="Ready")].status}`)
	}
	before, err := node()
	if err != nil {
		t.Fatal(err)
	}
	upgrade := []string{"upgrade", "drover", f.Chart(), "--namespace", farm.Namespace, "--values", "testdata/admin.yaml"}
	none := []string{"--set-json", "tenants=[]", "--set-json", "pools=[]", "--set-json", "machines=[]"}
	if _, err := f.Helm(ctx, append(upgrade, none...)...); err != nil {
		t.Fatal(err)
	}
	fixture.Until(ctx, t, "the control plane is gone", func() (bool, error) {
		return inFarm(ctx, t, f, "get", "statefulsets,pods", "-l", "drover.dev/tenant=tenant", "-o", "name") == "", nil
	})
	if _, err := f.Helm(ctx, upgrade...); err != nil {
		t.Fatal(err)
	}
	fixture.Until(ctx, t, "n1 is Ready again in the same cluster", func() (bool, error) {
		after, err := node()
		if err == nil && after != before {
			err = fmt.Errorf("n1 was %s, it is %s", before, after)
		}
		return err == nil, err
	})
	fixture.Until(ctx, t, "the agent is connected again", func() (bool, error) {
		err := tenant.Reached(ctx)
		return err == nil, err
	})
}
