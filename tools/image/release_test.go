// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/zip"
)

// These tests run the targets of a release that take seconds, in a repository with one commit.
// TestRehearsal runs all of them.

// git runs Git in a directory, and returns what it prints.
func git(t *testing.T, directory string, arguments ...string) string {
	t.Helper()
	identity := []string{"-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "advice.detachedHead=false"}
	command := exec.CommandContext(t.Context(), "git", append(identity, arguments...)...)
	command.Dir = directory
	output, err := command.CombinedOutput()
	require.NoError(t, err, "git %v: %s", arguments, output)
	return strings.TrimSpace(string(output))
}

// commitSources commits the sources, as they are here, in a new repository.
func commitSources(t *testing.T) (directory string) {
	t.Helper()
	directory = t.TempDir()
	copySources(t, directory)
	git(t, directory, "init", "--quiet", "--initial-branch=main")
	git(t, directory, "add", "--all")
	git(t, directory, "commit", "--quiet", "--message=sources")
	return directory
}

// dateVersion does what a maintainer does before a release: it writes the date of the version.
func dateVersion(t *testing.T, directory string) {
	t.Helper()
	text := read(t, directory, "CHANGELOG.md")
	title := regexp.MustCompile(`(?m)^## \[` + regexp.QuoteMeta(version(t)) + `\] - .*$`)
	require.Regexp(t, title, text)
	text = title.ReplaceAllString(text, "## ["+version(t)+"] - 2026-01-02")
	require.NoError(t, os.WriteFile(filepath.Join(directory, "CHANGELOG.md"), []byte(text), 0o600))
	git(t, directory, "commit", "--quiet", "--all", "--allow-empty", "--message=release")
}

// A module with a file name such as "a: b.txt" cannot be downloaded by anybody.
func TestTheModulesCanBePublished(t *testing.T) {
	t.Parallel()
	sources := commitSources(t)
	for _, directory := range append(nestedModules(t, sources), ".") {
		checked, err := zip.CheckDir(filepath.Join(sources, directory))
		require.NoError(t, err, directory)
		require.NoError(t, checked.Err(), directory)
	}
}

func TestAReleaseNeedsItsTagAndItsDate(t *testing.T) {
	t.Parallel()
	sources, tag := commitSources(t), "v"+version(t)
	dateVersion(t, sources)

	printed, err := runTarget(t, sources, "check-release")
	require.Error(t, err)
	assert.Contains(t, printed, "this commit does not have the tag "+tag+": git tag "+tag)

	git(t, sources, "tag", tag)
	printed, err = runTarget(t, sources, "check-release", "TAG="+tag)
	require.NoError(t, err, printed)

	printed, err = runTarget(t, sources, "check-release", "TAG=v99.0.0")
	require.Error(t, err)
	assert.Contains(t, printed, "the tag v99.0.0 is not "+tag)

	changelog := strings.Replace(read(t, sources, "CHANGELOG.md"), "] - 2026-01-02\n", "] - unreleased\n", 1)
	require.NoError(t, os.WriteFile(filepath.Join(sources, "CHANGELOG.md"), []byte(changelog), 0o600))
	printed, err = runTarget(t, sources, "check-release")
	require.Error(t, err)
	assert.Contains(t, printed, "CHANGELOG.md has no date for "+version(t))

	git(t, sources, "commit", "--quiet", "--all", "--message=later")
	printed, err = runTarget(t, sources, "check-release")
	require.Error(t, err)
	assert.Contains(t, printed, "this commit does not have the tag", "the tag is on an older commit")
}

func TestReleaseNotesAreTheSectionOfTheVersion(t *testing.T) {
	t.Parallel()
	sources := commitSources(t)
	changelog := "# Changelog\n\n## [99.0.0] - 2027-01-01\n\n- Later.\n\n## [" + version(t) + "] - 2026-01-02\n\n### Added\n\n" +
		"- See [Upgrading](docs/upgrading.md#now) and [the site](https://example.com).\n\n## [0.0.1] - 2025-01-01\n\n- Earlier.\n"
	require.NoError(t, os.WriteFile(filepath.Join(sources, "CHANGELOG.md"), []byte(changelog), 0o600))
	printed, err := runTarget(t, sources, "release-notes")
	require.NoError(t, err, printed)
	expected := "\n### Added\n\n- See [Upgrading](https://github.com/kubeevents/kubeeventsreceiver/blob/v" + version(t) +
		"/docs/upgrading.md#now) and [the site](https://example.com).\n\n"
	assert.Equal(t, expected, read(t, sources, "build/release-notes.md"))
	assert.Equal(t, expected, printed)

	require.NoError(t, os.WriteFile(filepath.Join(sources, "CHANGELOG.md"), []byte("# Changelog\n"), 0o600))
	printed, err = runTarget(t, sources, "release-notes")
	require.Error(t, err)
	assert.Contains(t, printed, "CHANGELOG.md has no section about "+version(t))
}

// TestTheManifestForUsersHasTheVersionsOfTheDistribution: other versions are not tested together.
func TestTheManifestForUsersHasTheVersionsOfTheDistribution(t *testing.T) {
	t.Parallel()
	module := regexp.MustCompile(`- gomod: (\S+) (\S+)`)
	tested := map[string]string{}
	for _, match := range module.FindAllStringSubmatch(read(t, repository, "distribution/builder.yaml"), -1) {
		tested[match[1]] = strings.Replace(match[2], "v0.0.0", "v"+version(t), 1) // That of a directory.
	}
	used := module.FindAllStringSubmatch(read(t, repository, "examples/own-image/builder.yaml"), -1)
	require.NotEmpty(t, used)
	for _, match := range used {
		assert.Equal(t, tested[match[1]], match[2], match[1])
	}
}

// TestPushesNeedAName: that of the release belongs to the release workflow.
func TestPushesNeedAName(t *testing.T) {
	t.Parallel()
	for target, expected := range map[string]string{
		"check-image-name": "make push IMAGE=REGISTRY/NAME:TAG", "push-chart": "make push-chart CHARTS=oci://REGISTRY/NAME",
	} {
		printed, err := runTarget(t, repository, target, "--assume-old=build/tools/helm")
		require.Error(t, err)
		assert.Contains(t, printed, expected)
	}
}

// TestActionsArePinned: a tag of an action may move to other code, a commit cannot.
func TestActionsArePinned(t *testing.T) {
	t.Parallel()
	workflows, err := filepath.Glob(filepath.Join(repository, ".github", "workflows", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, workflows)
	pinned := regexp.MustCompile(`^(\./\.github/workflows/[a-z]+\.yaml|[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$`)
	for _, workflow := range workflows {
		used := regexp.MustCompile(`(?m)^ *(?:- )?uses: (.*)$`).FindAllStringSubmatch(read(t, filepath.Dir(workflow), filepath.Base(workflow)), -1)
		assert.NotEmpty(t, used, workflow)
		for _, match := range used {
			assert.Regexp(t, pinned, match[1], workflow)
		}
	}
}

// TestTheJobThatSignsUsesNoCache: another job, such as one of a pull request, may have written it.
func TestTheJobThatSignsUsesNoCache(t *testing.T) {
	t.Parallel()
	release := read(t, repository, ".github/workflows/release.yaml")
	assert.Contains(t, release, "id-token: write")
	assert.Contains(t, release, "\n          cache: false\n")
	assert.NotContains(t, release, "cache-dependency-path")
	assert.Contains(t, read(t, repository, ".github/workflows/ci.yaml"), "run: make vulncheck\n")
}

// TestVulncheckWithoutADatabase is no success.
func TestVulncheckWithoutADatabase(t *testing.T) {
	t.Parallel()
	directory, err := filepath.Abs(repository)
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "govulncheck")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho 'fetching vulnerabilities: no such host' && exit 1\n"), 0o700))
	relative, err := filepath.Rel(directory, program)
	require.NoError(t, err)
	printed, err := runTarget(t, repository, "vulncheck", "VULNCHECK="+relative)
	require.Error(t, err)
	assert.Contains(t, printed, "no such host")
}

// TestDependabotUpdatesEveryModule, except those that tools/pin-kubernetes writes.
func TestDependabotUpdatesEveryModule(t *testing.T) {
	t.Parallel()
	sources := t.TempDir()
	copySources(t, sources)
	written := regexp.MustCompile(`^tools/kubernetes.*$`)
	var modules []string
	require.NoError(t, filepath.WalkDir(sources, func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "go.mod" {
			return err
		}
		module, err := filepath.Rel(sources, filepath.Dir(path))
		if !written.MatchString(module) {
			modules = append(modules, filepath.Clean("/"+module))
		}
		return err
	}))
	var listed []string
	for _, match := range regexp.MustCompile(`(?m)^      - (/\S*)$`).FindAllStringSubmatch(read(t, repository, ".github/dependabot.yml"), -1) {
		listed = append(listed, match[1])
	}
	assert.ElementsMatch(t, modules, listed)
}
