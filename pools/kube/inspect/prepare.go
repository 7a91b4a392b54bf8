package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"drover/pools"
	"drover/pools/kube/cluster"
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
	ctx = cluster.Quiet(ctx)
	docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		o := &unstructured.Unstructured{}
		if err := docs.Decode(&o.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		resource, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind()) // right for all kinds of deploy/rbac.yaml
		opts := metav1.ApplyOptions{FieldManager: "drover-prepare", Force: true}
		if _, err := client.Resource(resource).Namespace(o.GetNamespace()).Apply(ctx, o.GetName(), o, opts); err != nil {
			return fmt.Errorf("%s %q: %w", o.GetKind(), o.GetName(), err)
		}
		done(o.GetKind() + " " + o.GetName())
	}
}
