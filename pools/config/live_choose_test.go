package config_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"drover/pools"
	"drover/pools/config"
	"drover/pools/config/declared"
)

// randomSpecs makes one of a few specs of a small farm, of which some are wrong, and some in
// conflict with each other.
var randomSpecs = map[string]func(n func(int) int) string{
	"Subnet": func(n func(int) int) string {
		return fmt.Sprintf(`{"cidr": "10.%d.0.0/%d", "router": "10.29.0.%d"}`, 28+n(3), 16+8*n(2), 1+n(3))
	},
	"Tag": func(n func(int) int) string {
		return [...]string{`{}`, `{"env": {"A": "b"}}`, `{"labels": {"a": "b"}}`, `{"labels": {"!": "b"}}`, `{"lables": {}}`}[n(5)]
	},
	"Tenant": func(n func(int) int) string {
		network := fmt.Sprintf(`"hostNetwork": {"podCIDR": "10.%d.0.0/16", "serviceCIDR": "10.96.0.0/12", "hostPodCIDR": "10.%[1]d.240.0/%d"}`, 242+n(3), 20+7*n(2))
		return fmt.Sprintf(`{"kubeconfig": %q, %s, "ipFamilies": %q}`, [...]string{"a", "/etc/a"}[n(8)/7], network, [...]string{"", "IPv4", "IPv6"}[n(6)/3+n(9)/8])
	},
	"Pool": func(n func(int) int) string {
		tags, cluster := [...]string{"[]", `["t0"]`, `["t1", "t2"]`}[n(3)], [...]string{"", "c0", "c1"}[n(3)]
		if n(4) > 0 {
			return fmt.Sprintf(`{"image": "debian-12", "tags": %s, "cluster": %q}`, tags, cluster)
		}
		return fmt.Sprintf(`{"image": "debian-12", "tags": %s, "cluster": %q, "catchall": true, "range": "10.29.%d.1-10.29.%d.99"}`, tags, cluster, n(3), n(3))
	},
	"Machine": func(n func(int) int) string {
		return fmt.Sprintf(`{"pool": %q, "macs": ["52:54:00:00:00:0%d"], "ip": "10.29.%d.%d"}`, [...]string{"file", "p0", "p1", "p2"}[n(4)], n(9), n(2), n(9))
	},
	"Chassis": func(n func(int) int) string {
		return fmt.Sprintf(`{"address": "ilo%d", "passwordFile": "x", "pool": %q, "nameTemplate": "%s-{{.Slot}}"}`, n(3), [...]string{"file", "p0", "p1"}[n(3)], [...]string{"a", "b", "{{.Chassis}}"}[n(3)])
	},
	"ExternalHost": func(n func(int) int) string {
		return fmt.Sprintf(`{"cluster": "c%d", "address": "192.0.2.%d", "podCIDRSize": %d}`, n(2), n(4), 26+n(3))
	},
}

var randomNames = []string{"Subnet s0", "Subnet s1", "Subnet s2", "Tag t0", "Tag t1", "Tag t2", "Tenant c0", "Tenant c1", "Pool p0", "Pool p1", "Pool p2",
	"Machine m0", "Machine m1", "Machine m2", "Machine m3", "Machine m4", "Machine m5", "Chassis x", "Chassis y", "ExternalHost h0", "ExternalHost h1", "ExternalHost m0"}

// TestRandomFarms changes a small farm at random. What is in force is valid; no change that is
// left out fits beside it, and no deleted object is in force that could go; what was in force and
// did not change stays; and the same objects again change nothing.
func TestRandomFarms(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("drover.yaml", []byte(objectsConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	start := func(last ...*declared.Object) *config.Live {
		t.Helper()
		l, err := config.NewLive(config.Source{File: "drover.yaml"}, &memory{nodes: map[string]pools.PoolNode{}}, last...)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	fits := func(all []*declared.Object) bool { return len(start(all...).Objects().InForce) == len(all) }
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 1))
		l, desired := start(), map[string]*declared.Object{}
		for round := range 8 {
			for range 1 + r.IntN(12) {
				name := randomNames[r.IntN(len(randomNames))]
				if r.IntN(4) == 0 {
					delete(desired, name)
					continue
				}
				o := object(name, int64(round), "{}")
				desired[name] = object(name, int64(round), randomSpecs[string(o.Kind)](r.IntN))
			}
			before, all := l.Objects(), slices.Collect(maps.Values(desired))
			got, err := l.SetObjects(all)
			if err != nil {
				t.Fatalf("seed %d, round %d: %v", seed, round, err)
			}
			place := fmt.Sprintf("seed %d, round %d", seed, round)
			if !fits(got.InForce) {
				t.Fatalf("%s: what is in force does not fit", place)
			}
			checkLeftOut(t, place, all, got, fits)
			for _, o := range before.InForce {
				if d := desired[o.String()]; d != nil && d.Same(o) && !o.Same(got.Find(o.Key)) {
					t.Errorf("%s: %s was in force, has not changed, and is no more", place, o)
				}
			}
			again, err := l.SetObjects(all)
			if err != nil || summary(again) != summary(got) {
				t.Fatalf("%s: the same objects again: %v\ngot  %s\nthen %s", place, err, summary(got), summary(again))
			}
		}
	}
}

// checkLeftOut reports the changes that are left out and fit beside what is in force.
func checkLeftOut(t *testing.T, place string, all []*declared.Object, got declared.Choice, fits func([]*declared.Object) bool) {
	t.Helper()
	others := func(k declared.Key) []*declared.Object {
		return slices.DeleteFunc(slices.Clone(got.InForce), func(o *declared.Object) bool { return o.Key == k })
	}
	for _, o := range all {
		if errs, wrong := got.Wrong[o.Key]; wrong && (len(errs) == 0 || fits(append(others(o.Key), o))) {
			t.Errorf("%s: %s %s fits and is left out: %v", place, o, o.Spec, errs)
		} else if !wrong && !o.Same(got.Find(o.Key)) {
			t.Errorf("%s: %s is left out without a reason", place, o)
		}
	}
	for _, k := range got.Kept {
		if fits(others(k)) {
			t.Errorf("%s: %s was deleted, nothing needs it, and it is in force", place, k)
		}
	}
}

func summary(c declared.Choice) string {
	text := ""
	for _, o := range c.InForce {
		text += fmt.Sprintf("%s %s, ", o, o.Spec)
	}
	text += fmt.Sprint("kept ", c.Kept)
	for _, k := range slices.SortedFunc(maps.Keys(c.Wrong), func(a, b declared.Key) int { return slices.Compare([]byte(a.String()), []byte(b.String())) }) {
		text += fmt.Sprintf("; %s: %v", k, c.Wrong[k])
	}
	return text
}

// TestRenamed: a Machine is renamed beside the deletion of a Tag that is needed, and beside a
// change that no mistake names: the new one boots, and what nothing needs is gone.
func TestRenamed(t *testing.T) {
	l, _ := liveObjects(t, objectsConfig)
	tag, other, web := object("Tag t", 1, `{}`), object("Tag other", 1, `{}`), object("Pool web", 1, `{"image": "debian-12", "tags": ["t"]}`)
	subnet, far := object("Subnet s", 1, `{"cidr": "10.29.0.0/16"}`), object("Machine far", 1, `{"pool": "web", "macs": ["52:54:00:00:00:03"], "ip": "10.29.9.9"}`)
	set(t, l, "Subnet s@1, Tag other@1, Tag t@1, Pool web@1, Machine far@1, Machine m1@1", nil, subnet, tag, other, web, far, machine("m1", "web", "02", "12"))
	set(t, l, "Subnet s@1, Tag t@1, Pool web@1, Machine far@1, Machine m2@1", map[string]string{"Subnet s": "address 10.29.9.9 is in none of the subnets"},
		object("Subnet s", 2, `{"cidr": "10.29.0.0/24"}`), web, far, machine("m2", "web", "02", "12"))
	if p := resolveMAC(l, "02"); p == nil || p.Node != "m2" {
		t.Errorf("got %+v", p)
	}
	if got := fmt.Sprint(l.Objects().Kept); got != "[Tag t]" {
		t.Errorf("kept are %s", got)
	}
}

// TestPartners: a change that fits only with the deletion of a Subnet is not made at the cost of
// another that needs the Subnet.
func TestPartners(t *testing.T) {
	l, _ := liveObjects(t, objectsConfig)
	set(t, l, "Subnet s@1", nil, object("Subnet s", 1, `{"cidr": "10.29.0.0/16", "router": "10.29.0.1"}`))
	at := func(name, mac, ip string) *declared.Object {
		return object("Machine "+name, 1, fmt.Sprintf(`{"pool": "file", "macs": ["52:54:00:00:00:%s"], "ip": "10.29.0.%s"}`, mac, ip))
	}
	set(t, l, "Subnet s@1, Machine m2@1", map[string]string{"Machine m1": "10.29.0.1 is the router of"}, at("m1", "02", "1"), at("m2", "03", "2"))
}
