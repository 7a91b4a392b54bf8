package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Follow returns the path of the regular file that path leads to by symbolic links, so that
// [Create] replaces this file, and no link of the operator. It returns a path that does not exist
// as it is. A link that leads nowhere, a directory or a device is an error.
func Follow(path string) (string, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s: the symbolic link leads to a file that does not exist", path)
	}
	if err != nil {
		return "", err
	}
	info, err := os.Stat(target)
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(path, info)
	}
	return target, err
}

// Rewrite is [Write] for a file of the operator, such as the config: a file keeps its mode, and a
// symbolic link stays, see [Follow]. A new file gets mode.
func Rewrite(path string, data []byte, mode os.FileMode) error {
	path, err := Follow(path)
	if err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	return Write(path, data, mode)
}
