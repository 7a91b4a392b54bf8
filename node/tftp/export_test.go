package tftp

// ReadOptions reads the content of an OACK.
func ReadOptions(body []byte) (size int64, block, window int, err error) {
	r := &Reader{Size: -1, block: defaultSize, window: 1}
	err = r.options(body)
	return r.Size, r.block, r.window, err
}
