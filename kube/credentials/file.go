package credentials

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"drover/internal/atomicfile"
	"drover/kube/cluster"
)

// errForeign means that drover leaves a kubeconfig file to its owner.
var errForeign = errors.New("drover may not write it")

// rewrite replaces a token in a kubeconfig file, and leaves all else as it is, comments
// included. A file that drover's user may not write is errForeign, and so are links, which
// configuration management and Kubernetes put into place. Other users of the host cannot
// read what rewrite writes.
func rewrite(path, old, token string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || unix.Access(path, unix.W_OK) != nil {
		return fmt.Errorf("%s: %w", path, errForeign)
	}
	data, err := atomicfile.Read(path, cluster.MaxKubeconfig)
	if err != nil {
		return err
	}
	if bytes.Count(data, []byte(old)) != 1 { // it was replaced meanwhile, or the token is in parts
		return fmt.Errorf("%s: %w", path, errForeign)
	}
	return atomicfile.Write(path, bytes.Replace(data, []byte(old), []byte(token), 1), info.Mode().Perm()&^0o007)
}
