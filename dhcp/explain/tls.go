package explain

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"os"

	"drover/pools/resolve"
)

// nodeTLS is the HTTPS listener for config, join and events of nodes.
type nodeTLS struct {
	URL     string `json:"url"`
	Pin     string `json:"pin,omitempty"`     // as on the kernel command line
	Problem string `json:"problem,omitempty"` // why the pin is unknown on this host
}

// explainTLS returns the HTTPS listener as the kernel command line of a machine has it; nil
// without one.
func explainTLS(farm *resolve.Farm, p *resolve.Plan) *nodeTLS {
	url := p.Advertised.SecureURL
	if url == "" {
		return nil
	}
	t := farm.Config.Server.NodeTLS
	if t == nil {
		return &nodeTLS{URL: url, Problem: "that of the server's own key; its log tells it at start"}
	}
	pin, err := pinOf(farm.Path(t.Cert))
	if err != nil {
		return &nodeTLS{URL: url, Problem: err.Error()}
	}
	return &nodeTLS{URL: url, Pin: pin}
}

// pinOf returns the pin of a certificate in a file. It does not read the key, which the
// user may not be allowed to.
func pinOf(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return "", fmt.Errorf("%s holds no certificate", file)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

func (t *nodeTLS) text() string {
	pin := t.Pin
	if pin == "" {
		pin = "(" + t.Problem + ")"
	}
	return fmt.Sprintf("config, join and events: %s, pin %s\n", t.URL, pin)
}
