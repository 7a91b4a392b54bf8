package inspect

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// konnectivity checks whether agents connect the nodes to a control plane that drover
// runs. Of other clusters drover may not see it.
func (i *inspection) konnectivity(ctx context.Context) {
	const what = "konnectivity"
	set, err := i.client.AppsV1().DaemonSets(metav1.NamespaceSystem).Get(ctx, "konnectivity-agent", metav1.GetOptions{})
	switch {
	case i.Conf.ControlPlane == nil && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)):
	case err != nil:
		i.note(what, "", i.Wrap("read the DaemonSet konnectivity-agent", err))
	case set.Status.DesiredNumberScheduled == 0:
		i.note(what, "no node needs an agent yet", nil)
	case set.Status.NumberReady == 0:
		i.note(what, "", errors.New("no agent is connected, so that logs, exec, and webhooks of Services do not work; do nodes reach the konnectivity-server, port 8132 of the endpoint?"))
	default:
		i.note(what, fmt.Sprintf("agents of %d of %d nodes are connected", set.Status.NumberReady, set.Status.DesiredNumberScheduled), nil)
	}
}
