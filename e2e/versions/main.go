// SPDX-License-Identifier: Apache-2.0

// Command versions runs the tests of e2e against one version of Kubernetes after the other, and
// writes docs/compatibility.md.
//
//	go run ./versions [-page FILE] directory...
//
// It runs in the directory e2e. Each argument is a directory with the programs of a control plane;
// `make test-versions` builds them. Without a file, it prints the page. All results of a page are
// from one commit.
package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/features"
)

func main() {
	if err := run(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "versions:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	flags := flag.NewFlagSet("versions", flag.ContinueOnError)
	file := flags.String("page", "", "the file to write the page to; empty: print it")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	commit, err := commit(ctx)
	if err != nil {
		return err
	}
	var p page
	errs := p.testAll(ctx, commit, flags.Args())
	pinned, err := pinned("..")
	p.Untested = slices.DeleteFunc(pinned, func(version string) bool {
		return slices.ContainsFunc(p.Results, func(r result) bool { return r.Kubernetes == version })
	})
	return errors.Join(errs, err, p.write(*file))
}

// pinned returns the versions of Kubernetes that the repository pins, the newest first, and then the
// oldest and those after it.
func pinned(repository string) (versions []string, err error) {
	modules, err := filepath.Glob(filepath.Join(repository, "tools", "kubernetes*", "go.mod"))
	if err != nil {
		return nil, err
	}
	for _, module := range modules {
		text, err := os.ReadFile(module)
		if err != nil {
			return nil, err
		}
		found := kubernetesVersion.FindSubmatch(text)
		if found == nil {
			return nil, fmt.Errorf("%s pins no version of k8s.io/kubernetes", module)
		}
		versions = append(versions, string(found[1]))
	}
	return versions, nil
}

var kubernetesVersion = regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes v(\S+)`)

// commit returns the commit of the checkout, which must have no changes: the page names the commit
// that was tested.
func commit(ctx context.Context) (string, error) {
	name, err := exec.CommandContext(ctx, "git", "describe", "--always", "--exclude=*", "--abbrev=10", "--dirty").Output()
	if err == nil && strings.Contains(string(name), "-dirty") {
		err = errors.New("the working tree has changes: commit them, because the page names the commit that was tested")
	}
	return strings.TrimSpace(string(name)), err
}

// testAll tests against all control planes. After one that does not work, it goes on with the next.
func (p *page) testAll(ctx context.Context, commit string, directories []string) error {
	var errs []error
	for _, directory := range directories {
		r, err := test(ctx, directory)
		if err == nil {
			r.Commit, r.Date = commit, time.Now().UTC().Format(time.DateOnly)
			p.Results = append(p.Results, r)
			err = r.failure()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", directory, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// test tests against the control plane whose programs are in a directory.
func test(ctx context.Context, directory string) (result, error) {
	binaries, err := filepath.Abs(directory)
	if err != nil {
		return result{}, err
	}
	var r result
	if err := r.inspect(ctx, binaries); err != nil {
		return result{}, err
	}
	fmt.Fprintf(os.Stderr, "testing with Kubernetes %s\n", r.Title())
	ran, err := suite{binaries}.runAndRepeat(ctx)
	if err != nil {
		return result{}, err
	}
	r.count(ran)
	return r, nil
}

// inspect notes the version and the features of a control plane.
func (r *result) inspect(ctx context.Context, binaries string) (err error) {
	if r.Store, err = otherStore(binaries); err != nil {
		return err
	}
	cp, err := controlplane.Start(ctx, controlplane.Options{Binaries: binaries})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Stop()) }()
	client, err := kubernetes.NewForConfig(cp.RESTConfig())
	if err != nil {
		return err
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	r.Kubernetes, r.Features = strings.TrimPrefix(version.GitVersion, "v"), map[string]bool{}
	for _, feature := range features.All() {
		if r.Features[feature.Name], err = feature.In(ctx, cp.RESTConfig()); err != nil {
			return err
		}
	}
	return nil
}

// otherStore returns the name and version of the program that keeps the cluster's data; empty if it
// is etcd.
func otherStore(binaries string) (string, error) {
	name := controlplane.StoreIn(binaries)
	if name == controlplane.Etcd {
		return "", nil
	}
	info, err := buildinfo.ReadFile(filepath.Join(binaries, name))
	if err != nil {
		return "", err
	}
	return name + " " + info.Main.Version, nil
}
