package backup

import "drover/state"

// FinishBy is Finish with a call of step after each of its steps.
func FinishBy(dir string, step func()) error {
	lock, err := state.Lock(dir, lockTimeout)
	if err != nil {
		return err
	}
	defer lock.Close()
	_, err = finish(dir, lock, step)
	return err
}

// Pack writes files as a backup with any manifest.
var Pack = pack
