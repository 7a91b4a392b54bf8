// Package pki makes and renews the keys and certificates of a hosted control plane.
//
// An [Authority] is a CA, in the keys of a Secret: tls.crt and tls.key sign, and ca.crt
// is the bundle that verifies. During a rotation the bundle has two certificates, so that
// what either CA has signed is good. The keys of ServiceAccounts ([ServiceAccountKeys])
// have the same layout: sa.key signs, and sa.pub may have several public keys.
//
// A [Leaf] describes a certificate; [Authority.Issue] makes it, and [Authority.Stale]
// gives the reason to make it anew. All keys are ECDSA P-256.
//
// The package knows neither Kubernetes objects nor where Secrets are kept. It never
// replaces an authority: a tenant whose CA is lost loses all its nodes.
package pki
