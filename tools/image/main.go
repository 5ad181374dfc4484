// SPDX-License-Identifier: Apache-2.0

// Image makes the container image of the distribution otelcol-kubeevents without a container
// engine, and pushes it to a registry. It also describes the programs of a release:
//
//	image build [flags] PROGRAM...
//	image push ARCHIVE REGISTRY/NAME:TAG
//	image sbom [flags] PROGRAM...
//
// Each PROGRAM is the Collector for one platform. From the same programs and flags, build always
// writes the same archives. sbom writes a software bill of materials next to each program.
package main

import (
	"context"
	"debug/buildinfo"
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

var errUsage = errors.New("usage: image build|sbom [flags] PROGRAM..., or image push ARCHIVE REGISTRY/NAME:TAG")

func run(ctx context.Context, arguments []string, stdout io.Writer) error {
	switch {
	case len(arguments) > 1 && arguments[0] == "build":
		return build(arguments[1:], stdout)
	case len(arguments) > 1 && arguments[0] == "sbom":
		return writeBills(arguments[1:])
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

// writeBills writes the software bill of materials of each program to PROGRAM.cdx.json.
func writeBills(arguments []string) error {
	flags := flag.NewFlagSet("image sbom", flag.ContinueOnError)
	created := flags.Int64("created", 0, "the time of the commit, in `seconds` since 1970")
	repository := flags.String("repository", ".", "the `directory` of the sources")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errUsage
	}
	r := release{created: time.Unix(*created, 0).UTC()}
	if err := r.read(*repository); err != nil {
		return err
	}
	for _, program := range flags.Args() {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return err
		}
		text, err := r.describe(info)
		if err != nil {
			return err
		}
		if err := writeFile(program+".cdx.json", text); err != nil {
			return err
		}
	}
	return nil
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
	r.config, err = os.ReadFile(filepath.Join(repository, "tools", "image", "config.yaml"))
	return err
}
