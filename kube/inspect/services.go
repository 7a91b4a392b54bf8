package inspect

import (
	"context"
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/pools"
)

const (
	// manyEndpoints is the number from which kube-proxy in mode iptables takes seconds for
	// each change: it writes all rules anew.
	manyEndpoints = 5000
	// veryMany is the number from which its first rules take long in mode nftables, too.
	veryMany = 20_000
	// sampledSlices is the number of EndpointSlices whose endpoints are counted, a few at a
	// time: one may have 1000, and drover takes answers of 2 MiB.
	sampledSlices, slicesPerPage = 100, 4
)

// load is what kube-proxy on a host has to follow.
type load struct {
	services  int64 // with and without a ClusterIP
	slices    int64 // EndpointSlices
	sampled   int64 // of these, those that were read
	endpoints int64 // of the sampled ones, without those of Headless Services
	headless  int64 // of the sampled ones, those of Headless Services
}

// services advises how kube-proxy on hosts outside the cluster keeps up, by the number of
// Services and endpoints.
func (i *inspection) services(ctx context.Context) {
	const what = "Services"
	if i.Conf.HostNetwork == nil {
		return
	}
	list, err := i.client.CoreV1().Services("").List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		i.note(what, "", i.Wrap("count the Services", err))
		return
	}
	l := load{services: int64(len(list.Items)) + remaining(list.RemainingItemCount)}
	for page := (metav1.ListOptions{Limit: slicesPerPage}); l.sampled < sampledSlices; {
		list, err := i.client.DiscoveryV1().EndpointSlices("").List(ctx, page)
		if err != nil {
			i.note(what, "", i.Wrap("count the EndpointSlices", err))
			return
		}
		for _, s := range list.Items {
			l.add(&s)
		}
		l.sampled += int64(len(list.Items))
		l.slices = l.sampled + remaining(list.RemainingItemCount)
		if page.Continue = list.Continue; page.Continue == "" {
			break
		}
	}
	text, advice := l.advice(i.Conf.HostNetwork.ProxyMode)
	if i.note(what, text, nil) {
		i.found[len(i.found)-1].Advice = advice
	}
}

func remaining(n *int64) int64 {
	if n == nil || *n < 0 { // the page is all there is
		return 0
	}
	return *n
}

// add counts the endpoints of a slice: kube-proxy has rules for each of its ports.
func (l *load) add(s *discoveryv1.EndpointSlice) {
	n := int64(len(s.Endpoints)) * int64(max(1, len(s.Ports)))
	if _, ok := s.Labels["service.kubernetes.io/headless"]; ok {
		l.headless += n
	} else {
		l.endpoints += n
	}
}

// all returns the number in all slices, by that in those that were sampled.
func (l load) all(n int64) int64 {
	if l.sampled == 0 || l.sampled == l.slices {
		return n
	}
	return int64(float64(n) * float64(l.slices) / float64(l.sampled))
}

// advice returns the numbers, and what to do about them; advice is false if that is nothing.
func (l load) advice(mode pools.ProxyMode) (text string, advice bool) {
	endpoints, about := l.all(l.endpoints), ""
	if l.sampled != l.slices {
		about = "about "
	}
	text = fmt.Sprintf("%d, with %s%d endpoints for kube-proxy on hosts, and %s%d of Headless Services, for which it has no rules", l.services, about, endpoints, about, l.all(l.headless))
	if mode == pools.ProxyIPTables && endpoints >= manyEndpoints {
		text += fmt.Sprintf("; in mode iptables it writes some %d rules anew with each change, which takes seconds, and tens of seconds from %d endpoints on: set hostNetwork.proxyMode: nftables, which writes what has changed alone and needs Linux 5.13 on the hosts, and install their bundles anew", 3*(l.services+endpoints), veryMany)
		advice = true
	}
	if endpoints >= veryMany || advice {
		text += "; make the Services that only hosts and their own pods use Headless (clusterIP: None): the resolver and the ports of a host find their pods without rules"
		advice = true
	}
	return text, advice
}
