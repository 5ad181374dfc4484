// SPDX-License-Identifier: Apache-2.0

// Image makes the container image of the distribution otelcol-kubeevents without a container
// engine, and pushes it to a registry. It also describes the programs of a release:
//
//	image build [flags] PROGRAM...
//	image push DIRECTORY REGISTRY/NAME:TAG
//	image sbom [flags] PROGRAM...
//
// Each PROGRAM is the Collector for one platform. From the same programs and flags, build always
// writes the same files. sbom writes a software bill of materials next to each program.
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

var errUsage = errors.New("usage: image build|sbom [flags] PROGRAM..., or image push DIRECTORY REGISTRY/NAME:TAG")

func run(ctx context.Context, arguments []string, stdout io.Writer) error {
	if len(arguments) == 3 && arguments[0] == "push" {
		return push(ctx, arguments[1], arguments[2], stdout)
	}
	if len(arguments) == 0 || arguments[0] != "build" && arguments[0] != "sbom" {
		return errUsage
	}
	flags := flag.NewFlagSet("image "+arguments[0], flag.ContinueOnError)
	name := flags.String("name", "", "the image's `REGISTRY/NAME:TAG` once an archive is loaded")
	revision := flags.String("revision", "", "the `commit` of the sources, if it is known")
	created := flags.Int64("created", 0, "the time of the commit, in `seconds` since 1970")
	repository := flags.String("repository", ".", "the `directory` of the sources")
	cache := flags.String("modules", "", "Go's module cache, a `directory`")
	output := flags.String("output", "", "the `directory` of the archives")
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errUsage
	}
	r := release{revision: *revision, created: time.Unix(*created, 0).UTC(), cache: *cache}
	if err := r.read(*repository); err != nil {
		return err
	}
	if arguments[0] == "sbom" {
		return r.writeBills(flags.Args())
	}
	return r.build(flags.Args(), *name, *output, stdout)
}

// build writes an archive for each program, and the image of all of them.
func (r release) build(programs []string, name, output string, stdout io.Writer) error {
	tag, err := parseTag(name)
	if err != nil {
		return err
	}
	images, err := r.images(programs)
	if err != nil {
		return err
	}
	return writeAll(output, tag, images, r.labels(), stdout)
}

// writeBills writes the software bill of materials of each program to PROGRAM.cdx.json.
func (r release) writeBills(programs []string) error {
	for _, program := range programs {
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
	sources, err := os.OpenRoot(repository)
	if err != nil {
		return err
	}
	defer func() { _ = sources.Close() }()
	version, err := sources.ReadFile("VERSION")
	if err != nil {
		return err
	}
	r.version = strings.TrimSpace(string(version))
	if r.license, err = sources.ReadFile("LICENSE"); err != nil {
		return err
	}
	r.config, err = sources.ReadFile("tools/image/config.yaml")
	return err
}
