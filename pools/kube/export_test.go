package kube

import "fmt"

// ParseInfo reads the data of a cluster-info, as [Clusters.Join] does.
func ParseInfo(data map[string]string) (endpoint string, hashes []string, err error) {
	info, err := parseInfo(data)
	if err != nil {
		return "", nil, err
	}
	return info.endpoint, info.hashes, nil
}

// PrintedToken returns a new token as all that may print it do, and its secret.
func PrintedToken() (printed, secret string) {
	tok, err := newToken()
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("%v %s %q %+v %#v %v", tok, tok, tok, tok, tok, &tok), tok.secret
}

// Followed returns how many nodes are on their way to Ready.
func (c *Clusters) Followed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.followed)
}
