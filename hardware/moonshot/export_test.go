package moonshot

// SetHostKey changes the fingerprint that the manager must have.
func (m *Manager) SetHostKey(fingerprint string) { m.login.HostKey = fingerprint }
