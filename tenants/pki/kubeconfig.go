package pki

import (
	"encoding/json"
)

// User is the user of a [Kubeconfig]: files, the content of files, or a token.
type User struct {
	CertFile, KeyFile string
	Pair              Pair
	Token             string
}

// Kubeconfig returns a kubeconfig for a server at a URL. Its CA is a file or the content
// of one. A client reads named files again when they change, but not their content in a
// kubeconfig.
func Kubeconfig(cluster, server, caFile string, ca []byte, u User) ([]byte, error) {
	type object = map[string]any
	where := object{"server": server}
	if caFile != "" {
		where["certificate-authority"] = caFile
	} else {
		where["certificate-authority-data"] = ca
	}
	user := object{}
	switch {
	case u.Token != "":
		user["token"] = u.Token
	case u.CertFile != "":
		user["client-certificate"], user["client-key"] = u.CertFile, u.KeyFile
	default:
		user["client-certificate-data"], user["client-key-data"] = u.Pair.Cert, u.Pair.Key
	}
	text, err := json.MarshalIndent(object{
		"apiVersion":      "v1",
		"kind":            "Config",
		"clusters":        []object{{"name": cluster, "cluster": where}},
		"users":           []object{{"name": cluster, "user": user}},
		"contexts":        []object{{"name": cluster, "context": object{"cluster": cluster, "user": cluster}}},
		"current-context": cluster,
	}, "", "  ")
	return append(text, '\n'), err
}
