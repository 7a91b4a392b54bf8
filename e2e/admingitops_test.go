package e2e_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drover/e2e/farm"
	"drover/e2e/fixture"
	"drover/kube/approve"
	"drover/kube/externalhost"
)

// wantManifests has the API servers check all manifests: the admin cluster's those of the
// chart, with all that it may have, and of deploy; the tenant's those for tenants.
func wantManifests(ctx context.Context, t *testing.T, f *farm.Farm, tenant *farm.Tenant) {
	t.Helper()
	// Helm renders no namespaces but that of the release. The operator of Prometheus, which
	// defines ServiceMonitors, is not in the lab: any fields are.
	for _, args := range [][]string{
		{"apply", "-f", "testdata/admin-needs.yaml"},
		{"wait", "--for=condition=Established", "customresourcedefinition/servicemonitors.monitoring.coreos.com"},
	} {
		if _, err := f.Kubectl(ctx, nil, args...); err != nil {
			t.Fatal(err)
		}
	}
	rendered, err := f.Helm(ctx, "template", "other", f.Chart(), "--namespace", farm.Namespace, "--include-crds", "--values", "admin/testdata/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dryRun := []string{"apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f"}
	if _, err := f.Kubectl(ctx, strings.NewReader(rendered), append(dryRun, "-")...); err != nil {
		t.Errorf("the chart: %v", err)
	}
	files, err := filepath.Glob("../deploy/*.yaml")
	files = slices.DeleteFunc(files, func(f string) bool { return strings.HasPrefix(filepath.Base(f), "alerts") }) // Prometheus' own
	if err != nil || len(files) < 3 {
		t.Fatalf("manifests %q: %v", files, err)
	}
	// A dry run makes no namespace, and no object in one that is not there.
	if _, err := tenant.Kubectl(ctx, nil, "create", "namespace", externalhost.Namespace); err != nil {
		t.Fatal(err)
	}
	// drover itself makes this one, at any time.
	used := "{apiVersion: v1, kind: Namespace, metadata: {name: " + approve.UsedNamespace + "}}"
	if _, err := tenant.Kubectl(ctx, strings.NewReader(used), "apply", "--server-side", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		kubectl := f.Kubectl
		switch filepath.Base(file) {
		case "rbac.yaml", "hosts-rbac.yaml":
			kubectl = tenant.Kubectl
		}
		if _, err := kubectl(ctx, nil, append(dryRun, file)...); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// wantApplied waits until every object of the farm is Ready. Then it upgrades the release to
// the same values, and applies the rendered manifests twice, as Argo CD and Flux do: that
// changes no generation of any object, and the second time nothing at all.
func wantApplied(ctx context.Context, t *testing.T, f *farm.Farm) {
	t.Helper()
	values := []string{"drover", f.Chart(), "--namespace", farm.Namespace, "--values", "testdata/admin.yaml"}
	fixture.Until(ctx, t, "all objects are Ready", func() (bool, error) {
		err := f.Objects(ctx, 4, "Ready")
		return err == nil, err
	})
	if _, err := f.Helm(ctx, append([]string{"upgrade"}, values...)...); err != nil { // without the pool's n2
		t.Fatal(err)
	}
	rendered, err := f.Helm(ctx, append([]string{"template"}, values...)...)
	if err != nil {
		t.Fatal(err)
	}
	generations := func() string {
		out, err := f.Kubectl(ctx, strings.NewReader(rendered), "get", "-f", "-", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.generation}{"\n"}{end}`)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	before := generations()
	if _, err := f.Helm(ctx, append([]string{"upgrade"}, values...)...); err != nil {
		t.Fatal(err)
	}
	if after := generations(); after != before {
		t.Errorf("the generations of objects were\n%sand are, upgraded to the same values,\n%s", before, after)
	}
	apply := func() string {
		said, err := f.Kubectl(ctx, strings.NewReader(rendered), "apply", "-f", "-")
		if err != nil {
			t.Fatal(err)
		}
		return said
	}
	apply() // it adds kubectl's own annotation; of Deployments that counts as a change
	before = generations()
	for line := range strings.Lines(apply()) {
		if !strings.HasSuffix(line, " unchanged\n") {
			t.Errorf("applied again: %s", line)
		}
	}
	if after := generations(); after != before {
		t.Errorf("the generations of objects were\n%sand are, applied again,\n%s", before, after)
	}
}
