package inspect

import (
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/pools"
)

// TestAdvice: from which numbers nftables and Headless Services are advised.
func TestAdvice(t *testing.T) {
	for _, tt := range []struct {
		load    load
		mode    pools.ProxyMode
		advised string // words, separated by |; empty: nothing
		numbers string
	}{
		{load{}, pools.ProxyIPTables, "", "0, with 0 endpoints"},
		{load{services: 40, slices: 40, sampled: 40, endpoints: 90, headless: 30}, pools.ProxyIPTables, "", "40, with 90 endpoints for kube-proxy on hosts, and 30 of Headless"},
		{load{services: 900, slices: 1000, sampled: 100, endpoints: 499}, pools.ProxyIPTables, "", "900, with about 4990 endpoints"},
		{load{services: 900, slices: 1000, sampled: 100, endpoints: 500}, pools.ProxyIPTables, "some 17700 rules|proxyMode: nftables|Linux 5.13|Headless (clusterIP: None)", "about 5000 endpoints"},
		{load{services: 900, slices: 1000, sampled: 100, endpoints: 500}, pools.ProxyNFTables, "", "about 5000 endpoints"},
		{load{services: 900, slices: 1000, sampled: 100, headless: 9000}, pools.ProxyIPTables, "", "about 0 endpoints for kube-proxy on hosts, and about 90000 of Headless"},
		{load{services: 900, slices: 300, sampled: 100, endpoints: 10_000}, pools.ProxyNFTables, "Headless (clusterIP: None)", "about 30000 endpoints"},
	} {
		text, advice := tt.load.advice(tt.mode)
		if advice != (tt.advised != "") || !strings.Contains(text, tt.numbers) {
			t.Errorf("%+v: %t, %q, want %q", tt.load, advice, text, tt.numbers)
		}
		for word := range strings.SplitSeq(tt.advised, "|") {
			if !strings.Contains(text, word) {
				t.Errorf("%+v: %q does not say %q", tt.load, text, word)
			}
		}
	}
}

// TestLoad: endpoints count for each port, and those of Headless Services apart.
func TestLoad(t *testing.T) {
	var l load
	s := &discoveryv1.EndpointSlice{Endpoints: make([]discoveryv1.Endpoint, 3), Ports: make([]discoveryv1.EndpointPort, 2)}
	l.add(s)
	s.Ports = nil
	s.ObjectMeta = metav1.ObjectMeta{Labels: map[string]string{"service.kubernetes.io/headless": ""}}
	l.add(s)
	if l.endpoints != 6 || l.headless != 3 {
		t.Errorf("got %+v", l)
	}
}
