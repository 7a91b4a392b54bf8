package inspect

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"drover/kube/apply"
	"drover/kube/cluster"
	"drover/pools"
)

// Apply applies a manifest with server-side apply, as the user of a kubeconfig file.
// The objects are cluster-wide or name their namespace. Apply calls done with each
// object that it applied. After an error the earlier objects stay applied.
func Apply(ctx context.Context, kubeconfig string, manifest []byte, done func(object string)) error {
	file, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return err
	}
	conf, err := clientcmd.NewDefaultClientConfig(*file, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("%s: %w", kubeconfig, err)
	}
	cluster.New(pools.Cluster{}, kubeconfig, time.Now).Limit(conf)
	client, err := dynamic.NewForConfig(conf)
	if err != nil {
		return err
	}
	return apply.Manifest(cluster.Quiet(ctx), client, "drover-prepare", manifest, func(o *unstructured.Unstructured) {
		done(o.GetKind() + " " + o.GetName())
	})
}
