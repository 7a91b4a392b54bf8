package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"drover/pools/kube/cluster"
)

// Apply applies a manifest of cluster-wide objects and of objects that name
// their namespace, with server-side apply, as the user of a kubeconfig file. It
// calls done with each object; those before a failure stay applied.
func Apply(ctx context.Context, kubeconfig string, manifest []byte, done func(object string)) error {
	file, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return err
	}
	conf, err := clientcmd.NewDefaultClientConfig(*file, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("%s: %w", kubeconfig, err)
	}
	conf.UserAgent, conf.WarningHandler = "drover", rest.NoWarnings{}
	client, err := dynamic.NewForConfig(conf)
	if err != nil {
		return err
	}
	docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		o := &unstructured.Unstructured{}
		if err := docs.Decode(&o.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := apply(cluster.Quiet(ctx), client, o); err != nil {
			return fmt.Errorf("%s %q: %w", o.GetKind(), o.GetName(), err)
		}
		done(o.GetKind() + " " + o.GetName())
	}
}

func apply(ctx context.Context, client dynamic.Interface, o *unstructured.Unstructured) error {
	kinds := map[string]string{
		"ServiceAccount": "serviceaccounts", "Role": "roles", "RoleBinding": "rolebindings",
		"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings",
		"ValidatingAdmissionPolicy":        "validatingadmissionpolicies",
		"ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
	}
	resource, ok := kinds[o.GetKind()]
	if !ok {
		return errors.New("drover applies no objects of this kind")
	}
	group := o.GroupVersionKind().GroupVersion()
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	_, err := client.Resource(schema.GroupVersionResource{Group: group.Group, Version: group.Version, Resource: resource}).
		Namespace(o.GetNamespace()).Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "drover-prepare", Force: true})
	return err
}
