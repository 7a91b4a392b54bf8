package tenants

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/e2e/farm"
)

// PSS is memory in bytes by the name of a program.
type PSS map[string]int64

// Total returns the memory of all programs.
func (p PSS) Total() (n int64) {
	for _, bytes := range p {
		n += bytes
	}
	return n
}

// Around is the memory of what runs beside the programs of pods: shims and pauses.
const Around = "pods"

// Memory returns the memory of the pods of the farm's namespace with these labels.
func Memory(ctx context.Context, f *farm.Farm, selector string) (PSS, error) {
	admin, err := Admin(f)
	if err != nil {
		return nil, err
	}
	pods, err := admin.CoreV1().Pods(farm.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	if len(pods.Items) == 0 {
		return nil, fmt.Errorf("no pod has the labels %s", selector)
	}
	all := PSS{}
	for i := range pods.Items {
		if err := all.addPod(string(pods.Items[i].UID)); err != nil {
			return nil, fmt.Errorf("pod %s: %w", pods.Items[i].Name, err)
		}
	}
	return all, nil
}

// addPod adds the processes in the cgroup of a pod, and their parents: the shims.
func (p PSS) addPod(uid string) error {
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return err
	}
	inside, parents := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(text), "/pod"+uid) {
			inside[filepath.Dir(file)] = true
		}
	}
	for dir := range inside {
		name, parent, err := process(dir)
		if err != nil {
			return err
		}
		if dir := "/proc/" + parent; !inside[dir] {
			parents[dir] = true
		}
		if name == "pause" || strings.HasPrefix(name, "containerd-shim") {
			name = Around
		}
		if err := p.add(name, dir); err != nil {
			return err
		}
	}
	if len(inside) == 0 {
		return errors.New("no process of this host is in its cgroup")
	}
	for dir := range parents {
		if err := p.add(Around, dir); err != nil {
			return err
		}
	}
	return nil
}

// process returns the name of a process, and the ID of its parent.
func process(dir string) (name, parent string, err error) {
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return "", "", err
	}
	text := string(stat)
	begin, end := strings.Index(text, "("), strings.LastIndex(text, ")")
	fields := strings.Fields(text[end+1:])
	if begin < 0 || end < begin || len(fields) < 2 {
		return "", "", fmt.Errorf("%s/stat: %q", dir, text)
	}
	return text[begin+1 : end], fields[1], nil
}

// add adds the memory of a process.
func (p PSS) add(name, dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "smaps_rollup"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "Pss:" {
			kb, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return err
			}
			p[name] += kb << 10
			return nil
		}
	}
	return fmt.Errorf("%s/smaps_rollup has no Pss", dir)
}
