package tenants

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"drover/pools"
	"drover/tenants/manifests"
)

// Annotations of the Secret of the CA: what the nodes and the data of the tenant have. They
// outlive a removed tenant.
const (
	podsNote     = "drover.dev/pod-subnet"
	servicesNote = "drover.dev/service-subnet"
	addressNote  = "drover.dev/endpoint-address"
)

// chooseVersion chooses the version to run: the one that is meant, or the newest one that has
// run while that cannot be reached.
func (w *worker) chooseVersion() error {
	meant := w.plane.Spec.Version
	why := unreachable(w.ran, meant)
	w.plane.Version = meant
	if why == "" {
		w.status.set(VersionAccepted, true, "Reachable", "version "+meant, w.now())
		return nil
	}
	w.status.set(VersionAccepted, false, "Unreachable", why, w.now())
	if w.ran == "" {
		return &waiting{versionUnreachable, why}
	}
	w.refuse(versionUnreachable, "%s", why)
	w.plane.Version = w.ran
	return nil
}

// chooseNetworks keeps the networks that the tenant's data have: Services and Nodes have
// addresses of them.
func (w *worker) chooseNetworks(k *keys) {
	spec := &w.plane.Spec
	for _, n := range []struct {
		field, note string
		nets        *pools.Prefixes
	}{{"podSubnet", podsNote, &spec.PodSubnet}, {"serviceSubnet", servicesNote, &spec.ServiceSubnet}} {
		var noted pools.Prefixes
		if err := noted.UnmarshalText([]byte(k.secret.Annotations[n.note])); err != nil {
			continue // the tenant has no data yet
		}
		if meant := *n.nets; !slices.Equal(meant, noted) {
			w.refuse(networksFixed, "the tenant's data have %s %s, and %s is not carried out: set it back to %s, or make another tenant", n.field, noted, meant, noted)
			*n.nets = noted
		}
	}
}

// noteNetworks notes the networks of a control plane that runs with them.
func (w *worker) noteNetworks(ctx context.Context, k *keys) error {
	return w.note(ctx, k, map[string]string{podsNote: w.plane.Spec.PodSubnet.String(), servicesNote: w.plane.Spec.ServiceSubnet.String()})
}

// chooseStorage keeps the volume that a StatefulSet has: Kubernetes refuses any other.
func (w *worker) chooseStorage() {
	if w.set == nil {
		return
	}
	meant := &w.plane.Spec.Storage
	for _, claim := range w.set.Spec.VolumeClaimTemplates {
		if claim.Name != manifests.DataVolume {
			continue
		}
		has := pools.ControlPlaneStorage{Size: claim.Spec.Resources.Requests.Storage().String()}
		if c := claim.Spec.StorageClassName; c != nil {
			has.Class = *c
		}
		size, err := resource.ParseQuantity(meant.Size)
		if err != nil || size.Cmp(claim.Spec.Resources.Requests[corev1.ResourceStorage]) != 0 {
			w.refuse(storageFixed, "the volume was made with %s, and drover does not change its size to %s; set storage.size back to %s", has.Size, meant.Size, has.Size)
		}
		if meant.Class != has.Class {
			w.refuse(storageFixed, "the volume was made with the StorageClass %q, and drover does not move it to %q; set storage.class back", has.Class, meant.Class)
		}
		*meant = has
	}
}
