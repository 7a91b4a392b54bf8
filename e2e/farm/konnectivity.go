package farm

import (
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"drover/e2e/buildcache"
)

//go:embed webhook.yaml
var webhookPod string

//go:embed admission.yaml
var admission string

// noAgent is what an API server says of a request for which it has no agent.
const noAgent = "No agent available"

// ProveKonnectivity isolates a node of a tenant, and waits until logs, exec and a webhook reach
// a pod there all the same: through an agent, since there is no other way.
func (t *Tenant) ProveKonnectivity(ctx context.Context, node, address string) error {
	if err := t.farm.Isolate(ctx, address, "10.244.0.0/16"); err != nil {
		return err
	}
	if err := t.InstallWebhook(ctx, node); err != nil {
		return err
	}
	return Await(ctx, "logs, exec and a webhook through an agent", func() error { return t.Reached(ctx) })
}

// Isolate drops all TCP connections to a node, from anywhere on the rack, and the way to the
// pods of its tenant. It returns an error if the kubelet could not be reached before, or
// still can be: what goes through konnectivity then proves nothing.
func (f *Farm) Isolate(ctx context.Context, node, pods string) error {
	kubelet := net.JoinHostPort(node, "10250")
	if err := Await(ctx, "the kubelet of "+node, func() error {
		conn, err := f.Dial(ctx, "tcp", kubelet)
		if err == nil {
			err = conn.Close()
		}
		return err
	}); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"iptables", "-I", "OUTPUT", "-p", "tcp", "--syn", "-d", node, "-j", "DROP"},
		{"iptables", "-I", "FORWARD", "-p", "tcp", "--syn", "-d", node, "-j", "DROP"},
		{"ip", "route", "replace", "unreachable", pods},
	} {
		if _, err := f.Run(ctx, args[0], args[1:]...); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(args, " "), err)
		}
	}
	// Unanswered for this long: longer makes nothing surer, the rules are in force.
	dial, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if conn, err := f.Dial(dial, "tcp", kubelet); err == nil {
		return errors.Join(fmt.Errorf("%s can still be reached", kubelet), conn.Close())
	}
	return nil
}

// InstallWebhook runs the pod webhook on a node, and has the API server ask it about the
// ConfigMaps of the namespace default. The pod logs its certificate: so this works only if
// logs do.
func (t *Tenant) InstallWebhook(ctx context.Context, node string) error {
	pod := strings.NewReplacer("$NODE", node, "$IMAGE", buildcache.WebhookName).Replace(webhookPod)
	if _, err := t.Kubectl(ctx, strings.NewReader(pod), "apply", "-f", "-"); err != nil {
		return err
	}
	var certificate string
	if err := Await(ctx, "the webhook's log", func() (err error) {
		certificate, err = t.Kubectl(ctx, nil, "logs", "webhook")
		if err == nil && !strings.Contains(certificate, "END CERTIFICATE") {
			err = fmt.Errorf("its log is %q", certificate)
		}
		return err
	}); err != nil {
		return err
	}
	config := strings.ReplaceAll(admission, "$CA", base64.StdEncoding.EncodeToString([]byte(certificate)))
	_, err := t.Kubectl(ctx, strings.NewReader(config), "apply", "-f", "-")
	return err
}

// RemoveWebhook removes what [Tenant.InstallWebhook] has made.
func (t *Tenant) RemoveWebhook(ctx context.Context) error {
	_, err := t.Kubectl(ctx, nil, "delete", "--ignore-not-found", "--wait=false", "--grace-period=1",
		"validatingwebhookconfiguration/webhook", "pod/webhook", "service/webhook")
	return err
}

// Exec runs the program of the pod webhook, and returns what it prints.
func (t *Tenant) Exec(ctx context.Context, args ...string) (string, error) {
	return t.Kubectl(ctx, nil, append([]string{"exec", "webhook", "--", "/webhook"}, args...)...)
}

// Admit creates a ConfigMap, without storing it, which the webhook allows, or denies.
func (t *Tenant) Admit(ctx context.Context, label string) error {
	object := fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "asked-", "labels": {%q: ""}}}`, label)
	_, err := t.Kubectl(ctx, strings.NewReader(object), "create", "--dry-run=server", "-f", "-")
	return err
}

// Reached returns an error unless logs, exec and the webhook work.
func (t *Tenant) Reached(ctx context.Context) error {
	if _, err := t.Kubectl(ctx, nil, "logs", "webhook"); err != nil {
		return err
	}
	said, err := t.Exec(ctx, "say", "hello")
	if err != nil {
		return err
	}
	if said != "hello\n" {
		return fmt.Errorf("kubectl exec printed %q", said)
	}
	if err := t.Admit(ctx, "allow"); err != nil {
		return err
	}
	return failed("an object with the label deny", t.Admit(ctx, "deny"), "it has the label deny")
}

// failed returns nil if err has a text.
func failed(what string, err error, text string) error {
	switch {
	case err == nil:
		return fmt.Errorf("%s: it worked, and should fail: %s", what, text)
	case !strings.Contains(err.Error(), text):
		return fmt.Errorf("%s: should fail otherwise: %s: %w", what, text, err)
	}
	return nil
}

// Unreached returns an error unless logs, exec and the webhook fail since no agent is
// connected.
func (t *Tenant) Unreached(ctx context.Context) error {
	_, logs := t.Kubectl(ctx, nil, "logs", "webhook")
	_, exec := t.Exec(ctx, "say", "hello")
	return errors.Join(
		failed("kubectl logs", logs, noAgent),
		failed("kubectl exec", exec, noAgent),
		failed("the webhook", t.Admit(ctx, "allow"), noAgent),
	)
}

// KeepAgents lets the agents of konnectivity run, or ends them: their DaemonSet then selects
// a node that does not exist.
func (t *Tenant) KeepAgents(ctx context.Context, run bool) error {
	node := `"nowhere"`
	if run {
		node = "null"
	}
	if _, err := t.Kubectl(ctx, nil, "patch", "daemonset", "konnectivity-agent", "-n", "kube-system", "--type=merge",
		"-p", `{"spec": {"template": {"spec": {"nodeSelector": {"kubernetes.io/hostname": `+node+`}}}}}`); err != nil || run {
		return err
	}
	_, err := t.Kubectl(ctx, nil, "delete", "pods", "-n", "kube-system", "-l", "k8s-app=konnectivity-agent", "--grace-period=1", "--wait=false")
	return err
}
