package loaders

// VersionOf returns the version in the headers of a program.
func VersionOf(content []byte) string {
	p := &program{content: content}
	p.readPE()
	return p.Version
}
