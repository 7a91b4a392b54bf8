package admin_test

import (
	"encoding/json"
	"maps"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"drover/e2e/buildcache"
	"drover/e2e/fixture"
	"drover/pools"
)

const chart = "../../deploy/charts/drover"

// helm runs helm, and returns what it prints, on standard error too.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	if testing.Short() && !fixture.Must() {
		fixture.Missing(t, "-short: helm may have to be built")
	}
	program, err := buildcache.Helm(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(cmd.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// render renders the chart with testdata/values.yaml and more flags.
func render(t *testing.T, flags ...string) (string, error) {
	t.Helper()
	return helm(t, append([]string{"template", "drover", chart, "--namespace", "farm", "-f", "testdata/values.yaml"}, flags...)...)
}

// TestChart: helm finds no fault in the chart, and renders the same text each time.
func TestChart(t *testing.T) {
	for _, values := range [][]string{nil, {"-f", "testdata/values.yaml"}} {
		out, err := helm(t, append([]string{"lint", "--strict", chart}, values...)...)
		if err != nil || strings.Contains(out, "[WARNING]") || strings.Contains(out, "[ERROR]") {
			t.Errorf("helm lint %q: %v\n%s", values, err, out)
		}
	}
	first, err := render(t)
	if err != nil {
		t.Fatal(err, first)
	}
	if second, err := render(t); err != nil || second != first {
		t.Errorf("the second time the chart renders another text, %v:\n%s", err, second)
	}
	fixture.Golden(t, "testdata/rendered.yaml", first)
}

// TestValuesRefused has mistakes in values, each with the place where it is found.
func TestValuesRefused(t *testing.T) {
	service := `service={"enabled": true, "tlsSecret": "drover-tls"}`
	for _, tt := range []struct {
		where string
		set   []string
	}{
		{"tenant", []string{`tenant=[]`}},                                                                // a key that does not exist
		{"replicas", []string{`replicas=2`}},                                                             // there is one server
		{"subnet", []string{`config.subnet=[]`}},                                                         // an element that drover.yaml does not have
		{"/config/server/interfaces", []string{`config.server.interfaces="eth1"`}},                       // no list
		{"config.server.interfaces", []string{`config.server.interfaces=[]`}},                            // nobody is served
		{"/config/pools/0", []string{`config.pools=[{"image": "debian-12"}]`}},                           // without a name
		{"/tenants/0/name", []string{`tenants=[{"name": "Tenant_A"}]`}},                                  // no name of an object
		{"/machines", []string{`machines="m1"`}},                                                         // no list
		{"/image/pullPolicy", []string{`image.pullPolicy="never"`}},                                      // misspelt
		{"/image/repository", []string{`image.repository="Registry/Drover"`}},                            // upper case
		{"/storage/state/hostPath", []string{`storage.state.hostPath="state"`}},                          // not absolute
		{"/storage/state/hostPath", []string{`storage.state.hostPath="/a/../../b"`}},                     // leaves its folder
		{"/storage/state", []string{`storage.state.inImage=true`}},                                       // images do not change
		{"/storage/state", []string{`storage.state={"claim": "a", "size": "1Gi"}`}},                      // two places
		{"/storage/images", []string{`storage.images={"storageClass": "fast"}`}},                         // of what size?
		{"/storage/images/size", []string{`storage.images.size="2GB"`}},                                  // no such unit
		{"/service/tlsSecret", []string{`service.enabled=true`}},                                         // a token in plain text
		{"/service/enabled", []string{`serviceMonitor={"enabled": true, "tokenSecret": {"name": "t"}}`}}, // there is nothing to ask
		{"/serviceMonitor/tokenSecret/name", []string{service, `serviceMonitor.enabled=true`}},           // drover refuses
		{"config.server.api", []string{service, `config.server.api=":9000"`}},                            // the Service sets it
		{"/log/level", []string{`log.level="trace"`}},                                                    // no such level
		{"/resources", []string{`resources.memory="1Gi"`}},                                               // neither request nor limit
		{"objects.enabled", []string{`objects.enabled=false`, `tenants=[{"name": "a"}]`}},                // nobody would read the tenant
		{"/secrets", []string{`secrets=["a", "a"]`}},                                                     // twice
	} {
		if out, err := minimal(t, tt.set...); err == nil || !strings.Contains(out, tt.where) {
			t.Errorf("%s: got %v, want a mistake at %s\n%s", tt.set, err, tt.where, out[:min(400, len(out))])
		}
	}
	for _, set := range [][]string{nil, {service}, {`storage.state.size="1Gi"`}, {`storage.images.inImage=true`}} {
		if out, err := minimal(t, set...); err != nil {
			t.Errorf("%s: %v\n%s", set, err, out)
		}
	}
}

// TestGrace: the pod has server.grace to end, and a moment more.
func TestGrace(t *testing.T) {
	for grace, want := range map[string]string{"30s": "45", "1h": "3615", "1m30s": "105", "90s500ms": "105", "2m0.5s": "136"} {
		out, err := minimal(t, `config.server.grace="`+grace+`"`)
		if err != nil {
			t.Fatal(err, out)
		}
		fixture.WantText(t, "grace "+grace, out, "terminationGracePeriodSeconds: "+want+"\n")
	}
}

// minimal renders the chart with an interface and these values.
func minimal(t *testing.T, set ...string) (string, error) {
	t.Helper()
	args := []string{"template", "drover", chart, "--set-json", `config.server.interfaces=["eth1"]`}
	for _, s := range set {
		args = append(args, "--set-json", s)
	}
	return helm(t, args...)
}

// TestTenantRights: the Role for the control planes of tenants and the policy for their pods
// are those of the manifest, which the tests of hosted control planes have.
func TestTenantRights(t *testing.T) {
	rules := func(text, role string) string {
		for doc := range strings.SplitSeq(text, "\n---\n") {
			_, after, found := strings.Cut(doc, "\nrules:\n")
			if found && strings.Contains(doc, "name: "+role) {
				return strings.TrimSpace(after)
			}
		}
		t.Fatalf("no Role %s in %s", role, text)
		return ""
	}
	manifest := rules(fixture.ReadFile(t, "../../deploy/admin-rbac.yaml"), "drover-tenants")
	if got := rules(fixture.ReadFile(t, "testdata/rendered.yaml"), "drover-tenants"); got != manifest {
		t.Errorf("the chart has\n%s\ndeploy/admin-rbac.yaml has\n%s", got, manifest)
	}
	policy := func(file string) string {
		_, after, _ := strings.Cut(fixture.ReadFile(t, file), "\nkind: ValidatingAdmissionPolicy\n")
		_, spec, found := strings.Cut(after, "\nspec:\n")
		spec, _, _ = strings.Cut(spec, "\n---\n")
		if !found {
			t.Fatalf("no policy in %s", file)
		}
		return strings.TrimSpace(spec)
	}
	if got, want := policy("testdata/rendered.yaml"), policy("../../deploy/admin-rbac.yaml"); got != want {
		t.Errorf("the policy of the chart is\n%s\nand of deploy/admin-rbac.yaml\n%s", got, want)
	}
}

// TestConfigFields: the schema has every element of drover.yaml, and no other.
func TestConfigFields(t *testing.T) {
	var schema struct {
		Properties struct {
			Config struct{ Properties map[string]json.RawMessage }
		}
	}
	if err := json.Unmarshal([]byte(fixture.ReadFile(t, chart+"/values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	var want []string
	for f := range reflect.TypeFor[pools.Config]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		want = append(want, name)
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(schema.Properties.Config.Properties)); !slices.Equal(got, want) {
		t.Errorf("values.schema.json has config.%q, drover.yaml has %q", got, want)
	}
}
