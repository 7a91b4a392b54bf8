package auth

import (
	"os"
	"time"
)

// SetDisk has write in the place of the disk.
func (t *Tokens) SetDisk(patience time.Duration, write func(path string, data []byte, mode os.FileMode) error) {
	t.file.Patience, t.file.Replace = patience, write
}
