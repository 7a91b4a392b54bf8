package tenants_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"drover/tenants"
)

// TestDetail: the last line of a program that failed is in the status, and no secret with it.
func TestDetail(t *testing.T) {
	backoff := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 20s restarting failed container"}}
	jwt := "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEyMzQ1Njc4OTAifQ.eyJpc3MiOiJrdWJlcm5ldGVzL3NlcnZpY2VhY2NvdW50MTIzIn0.c2lnbmF0dXJlMTIzNDU2Nzg5MDEyMzQ1Njc4OTA"
	for name, tt := range map[string]struct {
		state corev1.ContainerState
		text  string
		code  int32
		want  string
	}{
		"it has not failed":  {backoff, "", 0, "back-off 20s restarting failed container"},
		"it ended well":      {backoff, "bye", 0, "back-off 20s restarting failed container"},
		"it failed":          {backoff, "begins\n\"command failed\" err=\"open /etc/kubernetes/audit.yaml: no such file or directory\"\n\n", 1, `back-off 20s restarting failed container; its last line: "command failed" err="open /etc/kubernetes/audit.yaml: no such file or directory"`},
		"it runs again":      {corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, "unknown flag: --audit-polcy-file", 1, "starts; its last line: unknown flag: --audit-polcy-file"},
		"a token":            {backoff, "no such user " + jwt, 1, "back-off 20s restarting failed container; its last line: no such user ***.***.***"},
		"a password":         {backoff, "password=hunter2, token: abc; Authorization: Bearer xyz", 1, "back-off 20s restarting failed container; its last line: password=***, token: ***; Authorization: Bearer ***"},
		"a URL":              {backoff, "dial https://root:hunter2@etcd:2379/x", 1, "back-off 20s restarting failed container; its last line: dial https://***@etcd:2379/x"},
		"control characters": {backoff, "red \x1b[31m\u202e", 2, "back-off 20s restarting failed container; its last line: red ?[31m?"},
	} {
		s := corev1.ContainerStatus{State: tt.state, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: tt.code, Message: tt.text}}}
		if got := tenants.Detail(&s); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, tt.want)
		}
	}
	long := corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: strings.Repeat("long ", 1000)}}}
	if got := tenants.Detail(&long); len(got) > 500 || !strings.HasPrefix(got, "Error; its last line: long") {
		t.Errorf("a long line: %d bytes: %s", len(got), got)
	}
}
