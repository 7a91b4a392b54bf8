package imagebuild

import (
	"context"
	"fmt"
	"strings"

	"drover/imagebuild/layer"
	"drover/imagebuild/oci"
	"drover/imagebuild/registry"
)

// sourceForms lists the forms of [Builder.Source], for help texts and errors.
const sourceForms = "dir:PATH, tar:FILE, oci:DIR[:TAG], oci-archive:FILE[:TAG], docker-archive:FILE[:TAG] or docker://IMAGE"

// opener opens the argument of a source. Images is the directory that the build writes to.
type opener func(ctx context.Context, arg string, platform oci.Platform, images string) (*layer.Source, error)

// openers returns the function for each form of a source.
func openers() map[string]opener {
	return map[string]opener{
		"dir": func(_ context.Context, arg string, _ oci.Platform, images string) (*layer.Source, error) {
			return layer.OpenDir(arg, images)
		},
		"tar": func(_ context.Context, arg string, _ oci.Platform, _ string) (*layer.Source, error) {
			return layer.OpenTar(arg)
		},
		"oci": func(_ context.Context, arg string, platform oci.Platform, _ string) (*layer.Source, error) {
			return oci.OpenDir(arg, platform)
		},
		"oci-archive": func(_ context.Context, arg string, platform oci.Platform, _ string) (*layer.Source, error) {
			return oci.OpenArchive(arg, platform)
		},
		"docker-archive": func(_ context.Context, arg string, platform oci.Platform, _ string) (*layer.Source, error) {
			return oci.OpenDockerArchive(arg, platform)
		},
		"docker": func(ctx context.Context, arg string, platform oci.Platform, _ string) (*layer.Source, error) {
			return registry.Open(ctx, arg, platform)
		},
	}
}

// cutSource splits a source into its form and its argument.
func cutSource(src string) (form, arg string, err error) {
	form, arg, _ = strings.Cut(src, ":")
	if form == "docker" {
		rest, ok := strings.CutPrefix(arg, "//")
		if arg = rest; !ok {
			arg = ""
		}
	}
	if openers()[form] == nil || arg == "" {
		return "", "", fmt.Errorf("source %q is not one of %s", src, sourceForms)
	}
	return form, arg, nil
}

// openSource opens a source in one of [sourceForms].
func openSource(ctx context.Context, src string, platform oci.Platform, images string) (*layer.Source, error) {
	form, arg, err := cutSource(src)
	if err != nil {
		return nil, err
	}
	s, err := openers()[form](ctx, arg, platform, images)
	if err != nil {
		return nil, fmt.Errorf("source %q: %w", src, err)
	}
	return s, nil
}
