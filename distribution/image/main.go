// SPDX-License-Identifier: Apache-2.0

// Image makes the container image of the distribution otelcol-kubeevents without a container
// engine, and pushes it to a registry:
//
//	image build [flags] PROGRAM...
//	image push ARCHIVE REGISTRY/NAME:TAG
//
// Each PROGRAM is the Collector for one platform. From the same programs and flags, build always
// writes the same archives.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: image build [flags] PROGRAM..., or image push ARCHIVE REGISTRY/NAME:TAG")

func run(ctx context.Context, arguments []string, stdout io.Writer) error {
	switch {
	case len(arguments) > 1 && arguments[0] == "build":
		return build(arguments[1:], stdout)
	case len(arguments) == 3 && arguments[0] == "push":
		pushed, err := push(ctx, arguments[1], arguments[2])
		if err == nil {
			fmt.Fprintln(stdout, "pushed", pushed)
		}
		return err
	}
	return errUsage
}

// build writes an archive for each program, and one for all of them.
func build(arguments []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("image build", flag.ContinueOnError)
	tagged := flags.String("name", "", "the image's `REGISTRY/NAME:TAG` once an archive is loaded")
	revision := flags.String("revision", "", "the `commit` of the sources, if it is known")
	created := flags.Int64("created", 0, "the time of the commit, in `seconds` since 1970")
	repository := flags.String("repository", ".", "the `directory` of the sources")
	cache := flags.String("modules", "", "Go's module cache, a `directory`")
	output := flags.String("output", "", "the `directory` of the archives")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errUsage
	}
	tag, err := parseTag(*tagged)
	if err != nil {
		return err
	}
	r := release{revision: *revision, created: time.Unix(*created, 0).UTC(), cache: *cache}
	if err := r.read(*repository); err != nil {
		return err
	}
	images, err := r.images(flags.Args())
	if err != nil {
		return err
	}
	return writeAll(*output, tag, images, r.labels(), stdout)
}

// read reads the files of the sources that the image has.
func (r *release) read(repository string) error {
	version, err := os.ReadFile(filepath.Join(repository, "VERSION"))
	if err != nil {
		return err
	}
	r.version = strings.TrimSpace(string(version))
	if r.license, err = os.ReadFile(filepath.Join(repository, "LICENSE")); err != nil {
		return err
	}
	r.config, err = os.ReadFile(filepath.Join(repository, "distribution", "image", "config.yaml"))
	return err
}
