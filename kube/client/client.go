package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Interface is a client of one API server, with one set of credentials.
type Interface interface {
	AdmissionregistrationV1() AdmissionregistrationV1
	AppsV1() AppsV1
	AuthorizationV1() AuthorizationV1
	CertificatesV1() CertificatesV1
	CoordinationV1() CoordinationV1
	CoreV1() CoreV1
	DiscoveryV1() DiscoveryV1
	RbacV1() RbacV1
	// ServerVersion asks the API server for its version.
	ServerVersion(ctx context.Context) (*version.Info, error)
}

// set implements [Interface]: a REST client for each group, all with one transport and
// one rate limit.
type set struct {
	admissionregistration, apps, authorization, certificates, coordination, core, discovery, rbac rest.Interface
}

// New returns a client with the connection of conf. It sends nothing.
func New(conf *rest.Config) (Interface, error) {
	shared := rest.CopyConfig(conf)
	transport, err := rest.HTTPClientFor(shared)
	if err != nil {
		return nil, err
	}
	if shared.RateLimiter == nil && shared.QPS > 0 {
		if shared.Burst <= 0 {
			return nil, errors.New("a rate limit (QPS) needs a burst")
		}
		shared.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(shared.QPS, shared.Burst)
	}
	k := known()
	shared.NegotiatedSerializer = rest.CodecFactoryForGeneratedClient(k.scheme, k.codecs).WithoutConversion()
	s := new(set)
	for _, group := range []struct {
		version schema.GroupVersion
		client  *rest.Interface
	}{
		{admissionregistrationv1.SchemeGroupVersion, &s.admissionregistration},
		{appsv1.SchemeGroupVersion, &s.apps},
		{authorizationv1.SchemeGroupVersion, &s.authorization},
		{certificatesv1.SchemeGroupVersion, &s.certificates},
		{coordinationv1.SchemeGroupVersion, &s.coordination},
		{corev1.SchemeGroupVersion, &s.core},
		{discoveryv1.SchemeGroupVersion, &s.discovery},
		{rbacv1.SchemeGroupVersion, &s.rbac},
	} {
		of := *shared
		of.GroupVersion, of.APIPath = &group.version, "/apis"
		if group.version.Group == "" {
			of.APIPath = "/api"
		}
		if *group.client, err = rest.RESTClientForConfigAndClient(&of, transport); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *set) AdmissionregistrationV1() AdmissionregistrationV1 {
	return AdmissionregistrationV1{s.admissionregistration}
}

func (s *set) AppsV1() AppsV1                   { return AppsV1{s.apps} }
func (s *set) AuthorizationV1() AuthorizationV1 { return AuthorizationV1{s.authorization} }
func (s *set) CertificatesV1() CertificatesV1   { return CertificatesV1{s.certificates} }
func (s *set) CoordinationV1() CoordinationV1   { return CoordinationV1{s.coordination} }
func (s *set) CoreV1() CoreV1                   { return CoreV1{s.core} }
func (s *set) DiscoveryV1() DiscoveryV1         { return DiscoveryV1{s.discovery} }
func (s *set) RbacV1() RbacV1                   { return RbacV1{s.rbac} }

// ServerVersion implements [Interface].
func (s *set) ServerVersion(ctx context.Context) (*version.Info, error) {
	body, err := s.core.Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	v := new(version.Info)
	if err := json.Unmarshal(body, v); err != nil {
		return nil, fmt.Errorf("unable to parse the server version: %w", err)
	}
	return v, nil
}
