package tenants

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"drover/e2e/farm"
)

// layout is how kubernetes-in-kubernetes spreads the programs over pods.
var layout = map[string][]string{
	"etcd":               {"etcd"},
	"api-server":         {"kube-apiserver", "konnectivity-server"},
	"controller-manager": {"kube-controller-manager"},
	"scheduler":          {"kube-scheduler"},
}

// separate is a control plane of separate pods, made of one that drover has made.
type separate struct {
	*Tenant
	farm   *farm.Farm
	admin  kubernetes.Interface
	name   string // of its objects
	pod    corev1.PodSpec
	config map[string]string
	etcd   string // address of etcd's Service
}

// Separate makes a tenant, deletes its object, and starts the programs of its control plane
// again with the same arguments, keys and data as separate pods. Its Joinable is the time
// from the first of these pods' objects on. Selector has the pods' labels.
func Separate(ctx context.Context, f *farm.Farm, name string, address netip.Addr) (one *Tenant, selector string, err error) {
	if _, err := Start(ctx, f, name, address); err != nil {
		return nil, "", err
	}
	s := &separate{Tenant: &Tenant{Name: name, Address: address}, farm: f, name: name + "-separate"}
	if s.admin, err = Admin(f); err != nil {
		return nil, "", err
	}
	joinable := &joinTest{farm: f, admin: s.admin, tenant: name}
	if joinable.conf, err = Administrator(ctx, f, s.admin, name); err != nil { // it goes with the tenant
		return nil, "", err
	}
	if err := s.take(ctx); err != nil {
		return nil, "", err
	}
	start := time.Now()
	if err := s.create(ctx); err != nil {
		return nil, "", fmt.Errorf("separate pods: %w", err)
	}
	err = poll(ctx, func() error { return joinable.try(ctx) })
	s.Joinable = since(start)
	return s.Tenant, "app=" + s.name, err
}

// take reads the objects of the tenant's pod, and removes the tenant.
func (s *separate) take(ctx context.Context) error {
	sets := s.admin.AppsV1().StatefulSets(farm.Namespace)
	set, err := sets.Get(ctx, s.Name+"-control-plane", metav1.GetOptions{})
	if err != nil {
		return err
	}
	config, err := s.admin.CoreV1().ConfigMaps(farm.Namespace).Get(ctx, s.Name+"-control-plane", metav1.GetOptions{})
	if err != nil {
		return err
	}
	s.pod, s.config = set.Spec.Template.Spec, config.Data
	if _, err := s.farm.Kubectl(ctx, nil, "delete", "tenants.drover.dev", s.Name, "--namespace", farm.Namespace); err != nil {
		return err
	}
	return poll(ctx, func() error {
		pods, err := s.admin.CoreV1().Pods(farm.Namespace).List(ctx, metav1.ListOptions{LabelSelector: s.Selector()})
		if err == nil && len(pods.Items) > 0 {
			err = errors.New("its pod is still there")
		}
		_, gone := s.admin.CoreV1().Services(farm.Namespace).Get(ctx, s.Name+"-api", metav1.GetOptions{})
		if err == nil && !apierrors.IsNotFound(gone) {
			err = errors.New("its Service is still there")
		}
		return err
	})
}

// create creates the objects of the separate pods.
func (s *separate) create(ctx context.Context) error {
	core, labels := s.admin.CoreV1(), map[string]string{"app": s.name}
	text := map[string]string{}
	for file, content := range s.config {
		text[file] = strings.ReplaceAll(content, "https://127.0.0.1:6443", "https://"+s.Address.String()+":6443")
	}
	_, err := core.ConfigMaps(farm.Namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: s.name, Labels: labels}, Data: text}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for part, spec := range map[string]corev1.ServiceSpec{
		"etcd":       {Ports: []corev1.ServicePort{{Name: "client", Port: 2379}}},
		"api-server": {Type: corev1.ServiceTypeLoadBalancer, LoadBalancerIP: s.Address.String(), Ports: []corev1.ServicePort{{Name: "https", Port: 6443}, {Name: "konnectivity", Port: 8132}}},
	} {
		spec.Selector = s.labels(part)
		made, err := core.Services(farm.Namespace).Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-" + part, Labels: labels}, Spec: spec}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if part == "etcd" {
			s.etcd = made.Spec.ClusterIP
		}
	}
	for _, part := range slices.Sorted(maps.Keys(layout)) {
		d := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: s.name + "-" + part, Labels: labels},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: s.labels(part)},
				Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: s.labels(part)}, Spec: s.podOf(layout[part])},
			},
		}
		if _, err := s.admin.AppsV1().Deployments(farm.Namespace).Create(ctx, d, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func (s *separate) labels(part string) map[string]string {
	return map[string]string{"app": s.name, "part": part}
}

// podOf returns a pod with some of the programs. They find the others by Services.
func (s *separate) podOf(programs []string) corev1.PodSpec {
	spec := *s.pod.DeepCopy()
	all := slices.Concat(spec.InitContainers, spec.Containers)
	spec.InitContainers, spec.Containers, spec.Affinity = nil, nil, nil
	for _, c := range all {
		if !slices.Contains(programs, c.Name) {
			continue
		}
		c.RestartPolicy = nil // as an init container it had one
		for i, arg := range c.Args {
			switch {
			case strings.HasPrefix(arg, "--etcd-servers="):
				c.Args[i] = "--etcd-servers=http://" + s.etcd + ":2379"
			case strings.HasPrefix(arg, "--listen-client-urls="):
				c.Args[i] = "--listen-client-urls=http://0.0.0.0:2379"
			case strings.HasPrefix(arg, "--advertise-client-urls="):
				c.Args[i] = "--advertise-client-urls=http://" + s.etcd + ":2379"
			}
		}
		if p := c.StartupProbe; p != nil && p.HTTPGet != nil && p.HTTPGet.Port == intstr.FromString("https") {
			p.FailureThreshold = 600 // etcd is another pod
		}
		spec.Containers = append(spec.Containers, c)
	}
	var used []corev1.Volume
	for _, v := range append(spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + s.Name + "-control-plane-0"},
	}}) {
		if v.ConfigMap != nil {
			v.ConfigMap.Name = s.name
		}
		if slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool {
			return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name })
		}) {
			used = append(used, v)
		}
	}
	spec.Volumes = used
	return spec
}
