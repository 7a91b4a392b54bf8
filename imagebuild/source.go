package imagebuild

import (
	"fmt"
	"slices"
	"strings"

	"drover/imagebuild/layer"
	"drover/imagebuild/oci"
)

// SourceForms lists the forms of [Builder.Source], for help texts and errors.
const SourceForms = "dir:PATH, tar:FILE, oci:DIR[:TAG] or oci-archive:FILE[:TAG]"

// cutSource splits a source into its form and its argument.
func cutSource(src string) (form, arg string, err error) {
	form, arg, _ = strings.Cut(src, ":")
	if !slices.Contains([]string{"dir", "tar", "oci", "oci-archive"}, form) || arg == "" {
		return "", "", fmt.Errorf("source %q is not one of %s", src, SourceForms)
	}
	return form, arg, nil
}

// openSource opens a source in one of [SourceForms].
func openSource(src string, platform oci.Platform) (*layer.Source, error) {
	form, arg, err := cutSource(src)
	if err != nil {
		return nil, err
	}
	var s *layer.Source
	switch form {
	case "dir":
		s, err = layer.OpenDir(arg)
	case "tar":
		s, err = layer.OpenTar(arg)
	case "oci":
		s, err = oci.OpenDir(arg, platform)
	case "oci-archive":
		s, err = oci.OpenArchive(arg, platform)
	}
	if err != nil {
		return nil, fmt.Errorf("source %q: %w", src, err)
	}
	return s, nil
}
