package config

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/config/mistake"
	"drover/pools/option"
)

// The checks of the syntax of names and values. Each returns a mistake, or nil.

// syntax holds the patterns, compiled once for each check of a config.
type syntax struct {
	label, qualified, value, hostKey, pin *regexp.Regexp
}

func newSyntax() *syntax {
	return &syntax{
		label:     regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`), // RFC 1123
		qualified: regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`),
		value:     regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$`),
		hostKey:   regexp.MustCompile(`^SHA256:[A-Za-z0-9+/]{43}=?$`),
		pin:       regexp.MustCompile(`^(sha256:)?([0-9A-Fa-f]{2}:?){32}$`),
	}
}

// labelKey checks a Kubernetes label or taint key: [prefix/]name.
func (s *syntax) labelKey(key string) error {
	prefix, name, hasPrefix := strings.Cut(key, "/")
	if !hasPrefix {
		name = prefix
	}
	switch {
	case hasPrefix && (!option.IsDomain(prefix) || prefix != strings.ToLower(prefix)):
		return pools.Hint("write example.org/name", "the prefix of label key %q is not a DNS name", key)
	case !s.qualified.MatchString(name):
		return pools.Hint("use letters, digits, '-', '_' and '.', 63 at most", "%q is not a label key", key)
	case key == "kubernetes.io/hostname" || key == "kubernetes.io/os" || key == "kubernetes.io/arch":
		return pools.Hint("use a key of your own", "label %q belongs to the kubelet", key)
	case prefix == "drover" && hasPrefix:
		return pools.Hint("use a key of your own", "label %q is drover's own mark", key)
	}
	return nil
}

func (s *syntax) labelValue(v string) error {
	if !s.value.MatchString(v) {
		return pools.Hint("use letters, digits, '-', '_' and '.', 63 at most", "%q is not a label value", v)
	}
	return nil
}

// kernelArg checks one word of the kernel command line.
func kernelArg(w string) error {
	name, _, _ := strings.Cut(w, "=")
	switch {
	case strings.HasPrefix(w, "drover.") || name == "BOOTIF" || name == "initrd":
		return pools.Hint("remove it", "kernel argument %q is set by drover itself", name)
	case strings.Contains(w, "${"):
		return pools.Hint("iPXE would expand it", "kernel argument %q holds ${", w)
	case strings.ContainsAny(w, `\'$`):
		return pools.Hint("GRUB and U-Boot would change them", "kernel argument %q holds a backslash, a single quote or $", w)
	case strings.HasPrefix(w, "#"), w == "||", w == "&&", w == ";":
		return pools.Hint("iPXE would end the command line there", "kernel argument %q begins a comment or ends a command", w)
	}
	for _, c := range w {
		if c < 0x21 || c > 0x7e {
			return pools.Hint("use printable ASCII", "kernel argument %q has other characters", w)
		}
	}
	return nil
}

// kernelQuotes checks the double quotes of a command line. GRUB keeps them only
// around a value, or around a whole word; it puts a backslash before others.
func kernelQuotes(args []string) error {
	for i := 0; i < len(args); i++ {
		word := args[i]
		for strings.Count(word, `"`)%2 == 1 && i+1 < len(args) {
			i++
			word += " " + args[i]
		}
		_, value, _ := strings.Cut(word, "=")
		switch n := strings.Count(word, `"`); {
		case n == 0:
		case n == 2 && len(word) > 1 && strings.HasPrefix(word, `"`) && strings.HasSuffix(word, `"`):
		case n == 2 && len(value) > 1 && strings.HasPrefix(value, `"`) && strings.HasSuffix(value, `"`):
		default:
			return pools.Hint(`write key="a value" or "key=a value"`, "kernel argument %q has quotes that GRUB would change", word)
		}
	}
	return nil
}

// The longest names of loaders, in bytes. A file is in the BOOTP file field, without its final NUL. A
// longer URL is in option 67 alone, in one piece: iPXE does not join pieces (RFC 3396).
const maxLoader, maxLoaderURL = 127, 255

// loaderName checks the name of a loader: a file of the loaders directory, or a
// URL that the firmware fetches.
func loaderName(name string) error {
	scheme, _, isURL := strings.Cut(name, "://")
	switch {
	case isURL && len(name) > maxLoaderURL:
		return pools.Hint("option 67 has room for 255 bytes", "%q has %d bytes", name, len(name))
	case !isURL && len(name) > maxLoader:
		return pools.Hint("the BOOTP field has room for 127 bytes", "%q has %d bytes", name, len(name))
	case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }):
		return pools.Hint("use printable ASCII", "%q has spaces or other characters", name)
	case isURL && scheme != "http" && scheme != "https" && scheme != "tftp":
		return pools.Hint("http://, https:// or tftp://", "%q is not a URL that firmware fetches", name)
	case !isURL && (path.IsAbs(name) || path.Clean(name) != name || strings.HasPrefix(name, "..")):
		return pools.Hint("name a file inside the loaders directory", "%q is not a clean relative path", name)
	}
	return nil
}

// collectorURL checks the URL of a collector of OpenTelemetry.
func collectorURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Path == "" || u.Path == "/":
		return pools.Hint("http://127.0.0.1:4318/v1/traces", "%q is not the URL of a collector", s)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return pools.Hint("let a collector on this host add credentials", "the URL has more than host and path")
	}
	return nil
}

func oneOf(what, got string, known ...string) error {
	if slices.Contains(known, got) {
		return nil
	}
	return pools.Hint(mistake.Hint(got, known, "known: "+strings.Join(known, ", ")), "unknown %s %q", what, got)
}
