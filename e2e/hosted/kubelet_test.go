package hosted_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"drover/internal/wait"
)

// kubelet runs the pods of a namespace as processes of this host, without containers: it
// writes their volumes as files, starts the programs in the order of the pod with the
// pod's own arguments, probes them as the pod says, and reports their state. Paths of
// volumes in arguments and files become those on this host. Programs that it does not have
// are reported as ready, and named in missing.
type kubelet struct {
	t         *testing.T
	client    kubernetes.Interface
	namespace string
	tenant    string                                                               // whose pods it runs
	version   string                                                               // the tag of images of Kubernetes that can be pulled
	programs  map[string]string                                                    // file by the container's name
	others    map[string]string                                                    // file by image, without its registry: of other versions
	dir       string                                                               // a short path: one of a socket has 107 bytes at most
	command   func(name string, args ...string) *exec.Cmd                          // of a program: nil is exec.Command
	dial      func(ctx context.Context, network, address string) (net.Conn, error) // to a probe: nil is as usual

	mu      sync.Mutex
	running map[types.UID]*runningPod
	missing []string
	wipe    bool // the next pod finds an empty volume
}

type runningPod struct {
	dir     string
	stop    context.CancelFunc
	done    chan struct{}
	mu      sync.Mutex
	started map[string]*exec.Cmd
}

// run follows the pods until ctx is done, and ends their processes.
func (k *kubelet) run(ctx context.Context) {
	for wait.Sleep(ctx, 200*time.Millisecond) == nil {
		pods, err := k.client.CoreV1().Pods(k.namespace).List(ctx, metav1.ListOptions{LabelSelector: "drover.dev/tenant=" + k.tenant})
		if err != nil {
			continue // the next round tells, or the test ends
		}
		k.mu.Lock()
		for uid, r := range k.running {
			if !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.UID == uid }) {
				r.end()
				delete(k.running, uid)
			}
		}
		k.mu.Unlock()
		for _, pod := range pods.Items {
			k.sync(ctx, &pod)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.running {
		r.end()
	}
}

func (r *runningPod) end() {
	r.stop()
	<-r.done
}

// pid returns the process of a container, or 0.
func (k *kubelet) pid(container string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.running {
		r.mu.Lock()
		cmd := r.started[container]
		r.mu.Unlock()
		if cmd != nil {
			return cmd.Process.Pid
		}
	}
	return 0
}

func (k *kubelet) sync(ctx context.Context, pod *corev1.Pod) {
	k.mu.Lock()
	r := k.running[pod.UID]
	k.mu.Unlock()
	switch {
	case pod.DeletionTimestamp != nil:
		if r != nil {
			r.end()
		}
		now := int64(0)
		err := k.client.CoreV1().Pods(k.namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && ctx.Err() == nil {
			k.t.Errorf("delete pod: %v", err)
		}
	case r == nil:
		life, stop := context.WithCancel(ctx)
		// The data outlives the pod, as a volume does.
		r = &runningPod{dir: filepath.Join(k.dir, pod.Name), stop: stop, done: make(chan struct{}), started: map[string]*exec.Cmd{}}
		k.mu.Lock()
		k.running[pod.UID] = r
		wipe := k.wipe
		k.wipe = false
		k.mu.Unlock()
		if wipe {
			if err := os.RemoveAll(filepath.Join(r.dir, "data")); err != nil {
				k.t.Error(err)
			}
		}
		go func() {
			runtime.LockOSThread() // never unlocked: the programs end with this thread
			defer close(r.done)
			if err := k.start(life, r, pod); err != nil && life.Err() == nil {
				k.t.Errorf("pod %s: %v", pod.Name, err)
			}
			<-life.Done()
			r.kill()
		}()
	default:
		if err := k.volumes(ctx, r, pod); err != nil && ctx.Err() == nil {
			k.t.Logf("volumes: %v", err)
		}
	}
}

// start starts the containers of a pod, one after the other.
func (k *kubelet) start(ctx context.Context, r *runningPod, pod *corev1.Pod) error {
	if err := wait.Sleep(ctx, 0); err != nil {
		return err
	}
	for try := 0; ; try++ {
		err := k.volumes(ctx, r, pod)
		if err == nil {
			break
		}
		if try > 120 || wait.Sleep(ctx, 500*time.Millisecond) != nil {
			return err
		}
	}
	status := corev1.PodStatus{Phase: corev1.PodPending}
	for _, c := range pod.Spec.InitContainers {
		status.InitContainerStatuses = append(status.InitContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image})
	}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image})
	}
	for i, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		all := &status.InitContainerStatuses
		if i >= len(pod.Spec.InitContainers) {
			all, i = &status.ContainerStatuses, i-len(pod.Spec.InitContainers)
		}
		if tag := c.Image[strings.LastIndex(c.Image, ":")+1:]; strings.HasPrefix(c.Name, "kube-") && tag != k.version && k.others[path.Base(c.Image)] == "" {
			(*all)[i].State.Waiting = &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: c.Image + " not found"}
			return k.report(ctx, pod, status)
		}
		if err := k.container(ctx, r, pod, c); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		(*all)[i].Ready = true
		(*all)[i].State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.Now()}
		if err := k.report(ctx, pod, status); err != nil {
			return err
		}
	}
	status.Phase = corev1.PodRunning
	status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	return k.report(ctx, pod, status)
}

func (k *kubelet) report(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	for {
		now, err := k.client.CoreV1().Pods(k.namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && now.UID != pod.UID {
			return nil // the pod is gone
		}
		if err != nil {
			return err
		}
		now.Status = status
		_, err = k.client.CoreV1().Pods(k.namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
}

// container starts a program and waits until its probe is good.
func (k *kubelet) container(ctx context.Context, r *runningPod, pod *corev1.Pod, c corev1.Container) error {
	program := cmp.Or(k.others[path.Base(c.Image)], k.programs[c.Name])
	if program == "" {
		k.mu.Lock()
		k.missing = append(k.missing, c.Name)
		k.mu.Unlock()
		return nil
	}
	var args []string
	for _, a := range c.Args {
		args = append(args, r.paths(c).Replace(strings.ReplaceAll(a, "$(POD_NAME)", pod.Name)))
	}
	if c.Name == "etcd" {
		args = append(args, "--unsafe-no-fsync")
	}
	log, err := os.OpenFile(filepath.Join(k.dir, c.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command
	if k.command != nil {
		command = k.command
	}
	cmd := command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	r.mu.Lock()
	r.started[c.Name] = cmd
	r.mu.Unlock()
	if c.StartupProbe == nil {
		return nil
	}
	return k.probe(ctx, c)
}

// probe waits until the startup probe of a container succeeds.
func (k *kubelet) probe(ctx context.Context, c corev1.Container) error {
	get := c.StartupProbe.HTTPGet
	port := get.Port.IntValue()
	for _, p := range c.Ports {
		if p.Name == get.Port.StrVal {
			port = int(p.ContainerPort)
		}
	}
	scheme := "http"
	if get.Scheme == corev1.URISchemeHTTPS {
		scheme = "https"
	}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, DialContext: k.dial}} // as a kubelet does
	last := errors.New("not probed")
	for range c.StartupProbe.FailureThreshold * 5 {
		resp, err := client.Get(fmt.Sprintf("%s://127.0.0.1:%d%s", scheme, port, get.Path))
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode < 400 {
				return nil
			}
			err = errors.New(resp.Status)
		}
		last = err
		if err := wait.Sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	return last
}

// paths replaces the paths of a container's volumes by those on this host.
func (r *runningPod) paths(c corev1.Container) *strings.Replacer {
	var pairs []string
	for _, m := range c.VolumeMounts {
		pairs = append(pairs, m.MountPath+"/", r.volume(c, m.Name)+"/")
	}
	return strings.NewReplacer(pairs...)
}

// volume is the folder of a volume. A container has a copy of configuration of its own,
// since the paths in it differ.
func (r *runningPod) volume(c corev1.Container, name string) string {
	if name == "config" {
		name += "-" + c.Name
	}
	return filepath.Join(r.dir, name)
}

// volumes writes the volumes of all containers, as they are now.
func (k *kubelet) volumes(ctx context.Context, r *runningPod, pod *corev1.Pod) error {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, m := range c.VolumeMounts {
			files, err := k.content(ctx, pod, m.Name)
			if err != nil {
				return err
			}
			dir := r.volume(c, m.Name)
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			for name, data := range files {
				text := r.paths(c).Replace(string(data))
				if old, err := os.ReadFile(filepath.Join(dir, name)); err == nil && string(old) == text {
					continue
				}
				temp := filepath.Join(dir, ".new")
				if err := os.WriteFile(temp, []byte(text), 0o600); err != nil {
					return err
				}
				if err := os.Rename(temp, filepath.Join(dir, name)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// content returns the files of a volume.
func (k *kubelet) content(ctx context.Context, pod *corev1.Pod, name string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, v := range pod.Spec.Volumes {
		if v.Name != name {
			continue
		}
		if v.ConfigMap != nil {
			cm, err := k.client.CoreV1().ConfigMaps(k.namespace).Get(ctx, v.ConfigMap.Name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			for key, text := range cm.Data {
				files[key] = []byte(text)
			}
		}
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			secret, err := k.client.CoreV1().Secrets(k.namespace).Get(ctx, source.Secret.Name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			for _, item := range source.Secret.Items {
				data, ok := secret.Data[item.Key]
				if !ok {
					return nil, fmt.Errorf("Secret %s has no %s", secret.Name, item.Key)
				}
				files[item.Path] = data
			}
		}
	}
	return files, nil
}

// kill ends the processes, the last started first.
func (r *runningPod) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range []string{"kube-scheduler", "kube-controller-manager", "konnectivity-server", "kube-apiserver", "etcd"} {
		cmd := r.started[name]
		if cmd == nil {
			continue
		}
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			<-ended
		}
	}
	r.started = map[string]*exec.Cmd{}
}
