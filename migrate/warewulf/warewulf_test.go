package warewulf_test

import (
	"fmt"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/e2e/importtest"
	"drover/migrate/warewulf"
)

// leased is the range of server.
const (
	leased = "10.91.0.100-10.91.0.199"
	server = "ipaddr: 10.91.0.2\nnetmask: 255.255.255.0\nwarewulf: {port: 9873}\ndhcp: {enabled: %s, range start: 10.91.0.100, range end: 10.91.0.199%s}\n"
)

// TestNodes: a node has the values of its profiles, the later one before the earlier one, and its
// own before all of them. Passwords are nowhere.
func TestNodes(t *testing.T) {
	r, c := importtest.Text(t, warewulf.Read, `nodeprofiles:
  base: {image name: rocky-9, network devices: {default: {netmask: 255.255.255.0}}, ipmi: {username: base, password: hidden-1}}
  gpu: {profiles: [base], image name: gpu-9, ipmi: {username: gpu}}
  old: {container name: rocky-8}
nodes:
  c1: {profiles: [base], network devices: {default: {hwaddr: "02:00:00:00:91:01", ipaddr: 10.91.0.11}}, ipmi: {ipaddr: 10.91.9.1, password: hidden-2}}
  c2: {profiles: [base, gpu], network devices: {default: {hwaddr: "02:00:00:00:91:02", ipaddr: 10.91.0.12}}, ipmi: {ipaddr: 10.91.9.2}}
  c3: {profiles: [gpu, ~base], image name: own-1, network devices: {default: {hwaddr: "02:00:00:00:91:03", ipaddr: 10.91.0.13}}}
  c4: {profiles: [base, old], network devices: {default: {hwaddr: "02:00:00:00:91:04", ipaddr: 10.91.0.14}}}
  c5: {profiles: [none], network devices: {default: {hwaddr: "02:00:00:00:91:05", ipaddr: 10.91.0.15, netmask: 255.255.255.0}}}
`)
	pool := map[string]string{}
	for _, p := range c.Pools {
		for _, n := range p.Nodes {
			pool[n.Name] = p.Name
			if n.Power != nil {
				pool[n.Name] += " " + n.Power.User
			}
		}
	}
	if got, want := fmt.Sprint(pool), "map[c1:rocky-9 base c2:gpu-9 gpu c3:own-1 c4:rocky-9 c5:nodes]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	fixture.WantText(t, "the report", importtest.Report(r), `profile "none" is not in nodeprofiles`)
	fixture.WantNoText(t, "report and config", importtest.Report(r)+string(r.Config()), "hidden")
}

// TestProfilesOfProfiles: profiles that name each other end, however many they are.
func TestProfilesOfProfiles(t *testing.T) {
	var text strings.Builder
	var all []string
	for i := range 60 {
		all = append(all, fmt.Sprint("p", i))
	}
	text.WriteString("nodeprofiles:\n")
	for _, name := range all {
		fmt.Fprintf(&text, "  %s: {profiles: [%s], image name: image-%s}\n", name, strings.Join(all, ", "), name)
	}
	text.WriteString("nodes:\n  c1: {profiles: [p7], network devices: {default: {hwaddr: \"02:00:00:00:91:01\", ipaddr: 10.91.0.11, netmask: 255.255.255.0}}}\n")
	r, c := importtest.Text(t, warewulf.Read, text.String())
	importtest.WantNodes(t, r, c, "c1 02:00:00:00:91:01 10.91.0.11")
	if got := c.Pools[0].Name; got != "image-p7" {
		t.Errorf("the node is in pool %q, want image-p7: the profile that it names comes after those of the profile", got)
	}
}

// TestRange: only a range that the server hands out to anyone is one of drover.
func TestRange(t *testing.T) {
	for _, tt := range []struct {
		enabled, more string
		open          []string
		restricted    bool
	}{
		{"true", "", []string{leased}, false},
		{"true", ", template: default", []string{leased}, false},
		{"true", ", template: static", nil, true},
		{"true", ", template: own.conf", nil, true},
		{"false", "", nil, false},
		{"no", "", nil, false},
		{"off", "", nil, false},
		{"yes", "", []string{leased}, false},
	} {
		importtest.WantOpen(t, warewulf.Read, fmt.Sprintf(server, tt.enabled, tt.more), tt.open, tt.restricted)
	}
}

func TestHostile(t *testing.T) {
	importtest.Refused(t, warewulf.Read)
	for _, text := range []string{fmt.Sprintf(server, "true", ", template: default"), fmt.Sprintf(server, "true", ", template: static"), fmt.Sprintf(server, "false", "")} {
		importtest.Damage(t, warewulf.Read, text)
	}
	importtest.Damage(t, warewulf.Read, `nodeprofiles: {base: {profiles: [base], image name: a, network devices: {default: {netmask: 255.255.255.0}}, ipmi: {username: u}}}
nodes: {c1: {profiles: [base], primary network: default, discoverable: "true", network devices: {default: {hwaddr: "02:00:00:00:91:01", ipaddr: 10.91.0.11, ipaddr6: "fd00::1", prefixlen6: 64, gateway: 10.91.0.1}}}}
`)
}
