// Webhook is an admission webhook, and what a test asks for in its pod by kubectl exec:
//
//	webhook             serves HTTPS on port 8443, and first logs its certificate
//	webhook say TEXT    prints the text
//	webhook get URL     prints what the URL answers
//
// It allows every object with a warning, except those with the label deny.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"os"
	"time"
)

// serverName is the name that an API server expects of the Service webhook in the
// namespace default.
const serverName = "webhook.default.svc"

func main() {
	var err error
	switch {
	case len(os.Args) == 1:
		err = serve()
	case len(os.Args) == 3 && os.Args[1] == "say":
		_, err = fmt.Println(os.Args[2])
	case len(os.Args) == 3 && os.Args[1] == "get":
		err = get(os.Args[2])
	default:
		err = errors.New("usage: webhook [say TEXT | get URL]")
	}
	if err != nil {
		log.Fatal(err)
	}
}

func get(url string) error {
	client := &http.Client{Timeout: 10 * time.Second}
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	_, err = io.Copy(os.Stdout, io.LimitReader(resp.Body, 1<<20))
	return err
}

func serve() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{serverName}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	server := &http.Server{
		Addr: ":8443", ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(review),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
	}
	if err := pem.Encode(os.Stdout, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
		return err
	}
	return server.ListenAndServeTLS("", "")
}

// admission has the fields of an AdmissionReview that a webhook without opinions needs.
type admission struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Request    *request `json:"request,omitempty"`
	Response   *answer  `json:"response,omitempty"`
}

type request struct {
	UID    string `json:"uid"`
	Object struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	} `json:"object"`
}

type answer struct {
	UID      string   `json:"uid"`
	Allowed  bool     `json:"allowed"`
	Warnings []string `json:"warnings,omitempty"`
	Status   *status  `json:"status,omitempty"`
}

type status struct {
	Message string `json:"message"`
}

func review(w http.ResponseWriter, r *http.Request) {
	var a admission
	if err := json.NewDecoder(io.LimitReader(r.Body, 4<<20)).Decode(&a); err != nil || a.Request == nil {
		http.Error(w, fmt.Sprintf("no AdmissionReview: %v", err), http.StatusBadRequest)
		return
	}
	a.Response = &answer{UID: a.Request.UID, Allowed: true, Warnings: []string{"the webhook has seen this object"}}
	if _, denied := a.Request.Object.Metadata.Labels["deny"]; denied {
		a.Response = &answer{UID: a.Request.UID, Status: &status{Message: "it has the label deny"}}
	}
	a.Request = nil
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(a); err != nil {
		log.Print(err)
	}
}
