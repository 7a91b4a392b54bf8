package migrate

// Readers are the readers of the fields of a mapping, by key.
type Readers map[string]func(*Value)

// Fields calls the reader of each field of a mapping, and notes the fields that have none
// as not understood. A value that is no mapping is noted likewise; null is none.
func (f *Farm) Fields(v *Value, readers Readers) {
	if v.IsNull() {
		return
	}
	if !v.IsMap() {
		f.Unknown(v.Origin, "keys with values are expected here")
		return
	}
	for _, p := range v.Pairs {
		read, ok := readers[p.Key]
		if !ok {
			f.Unknown(p.Value.Origin, "an option that this import does not know")
			continue
		}
		read(p.Value)
	}
}

// Known notes the fields of a mapping that are none of these.
func (f *Farm) Known(v *Value, keys ...string) {
	readers := Readers{}
	for _, key := range keys {
		readers[key] = Skip
	}
	f.Fields(v, readers)
}

// Each calls read for the items of a list.
func (f *Farm) Each(list *Value, read func(*Value)) {
	if !list.IsNull() && !list.IsList() {
		f.Unknown(list.Origin, "a list is expected here")
		return
	}
	for _, item := range list.List() {
		read(item)
	}
}

// NoCounterpart returns a reader that notes each value below as lost.
func (f *Farm) NoCounterpart(format string, args ...any) func(*Value) {
	return func(v *Value) {
		if v.IsNull() || len(v.Text) == 0 && len(v.Pairs) == 0 && len(v.Items) == 0 {
			return // nothing is set
		}
		f.Lost(v.Origin, format, args...)
	}
}

// Skip is a reader for fields that say nothing about machines, such as comments.
func Skip(*Value) {}
