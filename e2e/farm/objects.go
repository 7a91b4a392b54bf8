package farm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"drover/pools"
)

// Objects returns an error unless the farm has count objects, and each of them has a
// condition that is true.
func (f *Farm) Objects(ctx context.Context, count int, condition string) error {
	out, err := f.Kubectl(ctx, nil, "get", "drover", "--namespace", Namespace, "-o", "json")
	if err != nil {
		return err
	}
	var list struct {
		Items []struct {
			Kind     string
			Metadata struct{ Name string }
			Status   struct{ Conditions []pools.Condition }
		}
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return err
	}
	var errs []error
	for _, o := range list.Items {
		i := slices.IndexFunc(o.Status.Conditions, func(c pools.Condition) bool { return c.Type == condition })
		switch {
		case i < 0:
			errs = append(errs, fmt.Errorf("%s %s has no condition %s yet", o.Kind, o.Metadata.Name, condition))
		case o.Status.Conditions[i].Status != "True":
			errs = append(errs, fmt.Errorf("%s %s is not %s: %s", o.Kind, o.Metadata.Name, condition, o.Status.Conditions[i].Message))
		}
	}
	if n := len(list.Items); n != count {
		errs = append(errs, fmt.Errorf("the farm has %d objects, want %d", n, count))
	}
	return errors.Join(errs...)
}

// Removed returns an error unless nothing of any tenant is left in the admin cluster: neither
// pods nor keys nor data.
func (f *Farm) Removed(ctx context.Context) error {
	left, err := f.Kubectl(ctx, nil, "get", "statefulsets,pods,services,configmaps,networkpolicies,secrets,persistentvolumeclaims",
		"--namespace", Namespace, "-l", "drover.dev/tenant", "-o", "name")
	if err == nil && left != "" {
		err = fmt.Errorf("these are left: %s", strings.Join(strings.Fields(left), ", "))
	}
	return err
}

// Story writes what helps to see why a farm does not work: its pods and objects, events, and
// the end of drover's log.
func (f *Farm) Story(w io.Writer) {
	tell(w, "the admin cluster", f.Kubectl, [][]string{
		{"get", "pods", "-A", "-o", "wide"}, {"get", "drover", "--namespace", Namespace},
		{"get", "events", "-A", "--sort-by=.metadata.creationTimestamp"},
		{"describe", "pods", "--namespace", Namespace},
		{"logs", "deployment/drover", "--namespace", Namespace, "--tail=60"},
	})
}

// Story writes the nodes and pods of a tenant, with events.
func (t *Tenant) Story(w io.Writer) {
	tell(w, t.Name, t.Kubectl, [][]string{
		{"get", "nodes,pods", "-A", "-o", "wide"},
		{"get", "events", "-A", "--sort-by=.metadata.creationTimestamp"},
	})
}

// tell writes what kubectl prints. It has a time limit of its own: the story is of a run
// that has ended.
func tell(w io.Writer, cluster string, kubectl func(context.Context, io.Reader, ...string) (string, error), commands [][]string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, args := range commands {
		out, err := kubectl(ctx, nil, args...)
		if err != nil {
			out += err.Error() + "\n"
		}
		fmt.Fprintf(w, "\n%s$ kubectl %s\n%s", cluster, strings.Join(args, " "), out)
	}
}
