// Package engine builds a container image from a Dockerfile with the container engine of
// this host: buildah, podman or docker, the first that is installed.
//
// [Recipe.Build] runs the build and writes the image as a file that package oci opens.
// The package does not know what is in an image.
package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Engines are the programs that Build looks for, in this order.
const Engines = "buildah, podman or docker"

// Recipe describes one build.
type Recipe struct {
	File     string   // the Dockerfile
	Context  string   // the directory of the files that it copies; empty: that of File
	Target   string   // the stage; empty: "node" if File has one of that name, or else the last
	Args     []string // NAME=VALUE
	Contexts []string // NAME=DIR, further build contexts
	Platform string   // linux/amd64

	Output io.Writer // for what the engine prints
}

// Check returns an error for a mistake in the fields of r.
func (r Recipe) Check() error {
	for _, arg := range r.Args {
		if name, _, ok := strings.Cut(arg, "="); !ok || name == "" {
			return fmt.Errorf("build argument %q is not of the form NAME=VALUE", arg)
		}
	}
	for _, c := range r.Contexts {
		if name, dir, ok := strings.Cut(c, "="); !ok || name == "" || dir == "" {
			return fmt.Errorf("build context %q is not of the form NAME=DIR", c)
		}
	}
	return nil
}

// maxDockerfile bounds a Dockerfile, in bytes.
const maxDockerfile = 1 << 20

// Build builds the image and writes it into dir. It returns the source of the image as
// package imagebuild takes it.
func (r Recipe) Build(ctx context.Context, dir string) (source string, err error) {
	if err := r.Check(); err != nil {
		return "", err
	}
	args, err := r.args(filepath.Join(dir, "id"))
	if err != nil {
		return "", err
	}
	for _, e := range engines() {
		program, err := exec.LookPath(e.name)
		if err != nil {
			continue
		}
		if err := r.run(ctx, program, append([]string{e.build}, args...)); err != nil {
			return "", err
		}
		id, err := os.ReadFile(filepath.Join(dir, "id"))
		if err != nil {
			return "", fmt.Errorf("%s wrote no image ID: %w", e.name, err)
		}
		file := filepath.Join(dir, "image")
		return e.form + ":" + file, r.run(ctx, program, e.save(strings.TrimSpace(string(id)), file))
	}
	return "", fmt.Errorf("no program builds %q: install %s", r.File, Engines)
}

// engine is a program that builds images.
type engine struct {
	name  string
	build string                         // its command for a build; all have the same flags
	form  string                         // of the source that save writes
	save  func(id, file string) []string // its command that writes an image to a file
}

func engines() []engine {
	return []engine{
		{"buildah", "bud", "oci", func(id, file string) []string { return []string{"push", "--quiet", id, "oci:" + file} }},
		{"podman", "build", "oci-archive", func(id, file string) []string {
			return []string{"save", "--quiet", "--format", "oci-archive", "--output", file, id}
		}},
		{"docker", "build", "docker-archive", func(id, file string) []string { return []string{"save", "--output", file, id} }},
	}
}

// args returns the arguments of a build that writes the image's ID to the file id.
func (r Recipe) args(id string) ([]string, error) {
	info, err := os.Stat(r.File)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxDockerfile {
		return nil, fmt.Errorf("%q is not a Dockerfile", r.File)
	}
	text, err := os.ReadFile(r.File)
	if err != nil {
		return nil, err
	}
	args := []string{"--file", r.File, "--iidfile", id}
	target := r.Target
	if m := regexp.MustCompile(`(?mi)^[ \t]*FROM[ \t].*[ \t]AS[ \t]+(node)[ \t\r]*$`).FindSubmatch(text); target == "" && m != nil {
		target = string(m[1])
	}
	if target != "" {
		args = append(args, "--target", target)
	}
	if r.Platform != "" {
		args = append(args, "--platform", r.Platform)
	}
	for _, arg := range r.Args {
		args = append(args, "--build-arg", arg)
	}
	for _, c := range r.Contexts {
		args = append(args, "--build-context", c)
	}
	context := r.Context
	if context == "" {
		context = filepath.Dir(r.File)
	}
	return append(args, context), nil
}

// run runs a command of the engine. Its output goes to r.Output.
func (r Recipe) run(ctx context.Context, program string, args []string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = r.Output, r.Output
	err := cmd.Run()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("%s %s: %w: its output is above", filepath.Base(program), args[0], err)
	}
	return err
}
