package declared

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"drover/internal/atomicfile"
)

// maxFile bounds the file of stored objects, in bytes. 10 000 machines need 4 MB.
const maxFile = 64 << 20

// stored is the content of the file.
type stored struct {
	Namespace string    `json:"namespace"` // of the objects
	Objects   []*Object `json:"objects"`
}

// Load returns the objects of a namespace that [Save] has stored in the file at path; none
// if there is no such file.
func Load(path, namespace string) ([]*Object, error) {
	data, err := atomicfile.Read(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var s stored
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if s.Namespace != namespace {
		return nil, nil
	}
	return s.Objects, nil
}

// Save stores objects, readable by nobody else: tags can hold secrets of nodes.
func Save(path, namespace string, all []*Object) error {
	data, err := json.Marshal(stored{namespace, all})
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append(data, '\n'), 0o600)
}
