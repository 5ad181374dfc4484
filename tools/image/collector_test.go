// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These tests look at the image of the Collector itself, for the processor of this machine.

// archiveName is the file that `make image` writes for the processor of this machine.
const archiveName = "otelcol-kubeevents-linux-" + runtime.GOARCH + ".tar"

// runMake runs a target in a directory with the sources, for the processor of this machine.
func runMake(t *testing.T, sources, output string, arguments ...string) (printed string, err error) {
	t.Helper()
	return runTarget(t, sources, append(arguments, "IMAGE_PLATFORMS=linux/"+runtime.GOARCH, "IMAGE_OUTPUT="+output)...)
}

// runTarget runs a target in a directory with the sources.
func runTarget(t *testing.T, sources string, arguments ...string) (printed string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "make", arguments...)
	command.Dir = sources
	for _, variable := range os.Environ() {
		// Of the make that runs this test.
		if !strings.HasPrefix(variable, "MAKE") && !strings.HasPrefix(variable, "MFLAGS") {
			command.Env = append(command.Env, variable)
		}
	}
	text, err := command.CombinedOutput()
	return string(text), err
}

func makeImage(t *testing.T, sources, output string, variables ...string) {
	t.Helper()
	printed, err := runMake(t, sources, output, append(variables, "image", "IMAGE="+testName)...)
	require.NoError(t, err, printed)
}

// makeOnce makes the Collector's image, which all tests share.
var makeOnce sync.Once

// collectorImage returns the image of the Collector. Without the Collector's program, building
// takes minutes, so the test is then skipped.
func collectorImage(t *testing.T) v1.Image {
	t.Helper()
	program := filepath.Join(repository, "build", "dist", fmt.Sprintf("otelcol-kubeevents_%s_linux_%s", version(t), runtime.GOARCH))
	if _, err := os.Stat(program); err != nil {
		if os.Getenv("CI") != "" {
			require.NoError(t, err, "make image builds it")
		}
		t.Skipf("%v: make image builds it", err)
	}
	makeOnce.Do(func() { makeImage(t, repository, temporary) })
	return onlyImage(t, filepath.Join(temporary, archiveName))
}

func TestTheProgramNeedsNothingFromTheImage(t *testing.T) {
	t.Parallel()
	program := filepath.Join(rootOf(t, collectorImage(t)), title)
	binary, err := elf.Open(program)
	require.NoError(t, err)
	defer func() { _ = binary.Close() }()
	assert.Equal(t, map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH], binary.Machine)
	libraries, err := binary.ImportedLibraries()
	require.NoError(t, err)
	assert.Empty(t, libraries)
	for _, header := range binary.Progs {
		assert.NotEqual(t, elf.PT_INTERP, header.Type, "a static program has no dynamic linker")
	}

	info, err := buildinfo.ReadFile(program)
	require.NoError(t, err)
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	assert.Equal(t, "true", settings["-trimpath"])
	assert.Empty(t, settings["-tags"], "with other tags, every package is compiled once more")

	content, err := os.ReadFile(program)
	require.NoError(t, err)
	assert.True(t, bytes.Contains(content, []byte("Antarctica/DumontDUrville")), "the image has no time zones, so the program has them")
}

func TestTheCollectorStartsWithTheDefaultConfiguration(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the program is for Linux")
	}
	i := collectorImage(t)
	root := rootOf(t, i)
	config, err := i.ConfigFile()
	require.NoError(t, err)
	program := filepath.Join(root, config.Config.Entrypoint[0])

	output, err := exec.CommandContext(t.Context(), program, "--version").CombinedOutput()
	require.NoError(t, err, "%s", output)
	assert.Equal(t, "otelcol-kubeevents version "+version(t)+"\n", string(output))

	arguments := []string{"validate"}
	for _, argument := range config.Config.Cmd {
		arguments = append(arguments, strings.Replace(argument, "=/", "="+root+"/", 1))
	}
	output, err = exec.CommandContext(t.Context(), program, arguments...).CombinedOutput()
	require.NoError(t, err, "%s", output)
	assert.Empty(t, string(output))
}

func TestTheDistributionHasWhatUsersNeed(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the program is for Linux")
	}
	program := filepath.Join(rootOf(t, collectorImage(t)), title)
	config := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(config, []byte(everyComponent), 0o600))
	output, err := exec.CommandContext(t.Context(), program, "validate", "--config", config).CombinedOutput()
	require.NoError(t, err, "%s", output)
}

// everyComponent sends events and the metric to backends as users do.
const everyComponent = `
receivers:
  kube_events:

processors:
  memory_limiter: {check_interval: 1s, limit_mib: 400}
  batch:
  resource: {attributes: [{key: deployment.environment.name, value: production, action: upsert}]}
  filter: {error_mode: ignore, logs: {log_record: ['attributes["k8s.event.reason"] == "Pulled"']}}
  transform:
    log_statements:
      - set(log.time, Time("2026-01-02 03:04", "%Y-%m-%d %H:%M", "America/New_York")) where log.body == ""
  cumulative_to_delta:

extensions:
  health_check:
  pprof:
  basicauth/client: {client_auth: {username: user, password: secret}}
  file_storage: {directory: .}

connectors:
  kube_rollouts: {storage: file_storage, stamp: true}

exporters:
  debug:
  otlp_grpc: {endpoint: "example.com:4317"}
  otlp_http: {endpoint: "https://example.com:4318"}
  prometheus: {endpoint: "127.0.0.1:0"}
  otlp_http/basicauth: {endpoint: "https://example.com:4318", auth: {authenticator: basicauth/client}}

service:
  extensions: [health_check, pprof, basicauth/client, file_storage]
  pipelines:
    logs:
      receivers: [kube_events]
      processors: [memory_limiter, resource, filter, transform, batch]
      exporters: [debug, otlp_grpc, otlp_http, kube_rollouts]
    logs/stamped:
      receivers: [kube_rollouts]
      exporters: [debug]
    traces:
      receivers: [kube_rollouts]
      exporters: [otlp_http]
    metrics:
      receivers: [kube_events]
      processors: [memory_limiter, resource, batch]
      exporters: [prometheus, otlp_http/basicauth]
    metrics/delta:
      receivers: [kube_events]
      processors: [cumulative_to_delta]
      exporters: [otlp_http]
`

// TestTheDocumentationListsEveryComponent: README.md names what the program has.
func TestTheDocumentationListsEveryComponent(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the program is for Linux")
	}
	documentation, err := os.ReadFile(filepath.Join(repository, "distribution", "README.md"))
	require.NoError(t, err)
	output, err := exec.CommandContext(t.Context(), filepath.Join(rootOf(t, collectorImage(t)), title), "components").CombinedOutput()
	require.NoError(t, err, "%s", output)
	components, _, found := strings.Cut(string(output), "\nproviders:")
	require.True(t, found, "%s", output)
	names := regexp.MustCompile(`(?m)^ +- name: (\S+)$`).FindAllStringSubmatch(components, -1)
	assert.Greater(t, len(names), 20)
	for _, name := range names {
		if !strings.Contains(string(documentation), "`"+name[1]+"`") {
			t.Error("distribution/README.md does not list", name[1])
		}
	}
}

func TestTheModulesOfTheProgramAreListedWithTheirLicenses(t *testing.T) {
	t.Parallel()
	root := rootOf(t, collectorImage(t))
	bom := decode(t, []byte(read(t, root, sbomPath)))
	info, err := buildinfo.ReadFile(filepath.Join(root, title))
	require.NoError(t, err)
	assert.Len(t, *bom.Components, len(info.Deps)+1, "all modules, and the standard library")
	assert.Contains(t, urls(bom), "pkg:golang/github.com/kubeevents/kubeeventsreceiver@v"+version(t))

	licenses := read(t, root, modulesPath)
	for _, m := range info.Deps {
		if m.Replace == nil {
			assert.Contains(t, licenses, "\n"+m.Path+" "+m.Version+"\n")
		}
	}
}

// TestTwoBuildsOfACommitAreTheSame builds the commit again, from a copy of the sources in another
// directory and without its Git history.
func TestTwoBuildsOfACommitAreTheSame(t *testing.T) {
	t.Parallel()
	one := collectorImage(t)
	config, err := one.ConfigFile()
	require.NoError(t, err)

	sources, output := t.TempDir(), t.TempDir()
	copySources(t, sources)
	makeImage(t, sources, output, "REVISION="+config.Config.Labels["org.opencontainers.image.revision"],
		fmt.Sprint("CREATED=", config.Created.Unix()))
	first, err := one.Digest()
	require.NoError(t, err)
	second, err := onlyImage(t, filepath.Join(output, archiveName)).Digest()
	require.NoError(t, err)
	assert.Equal(t, first, second)
}

func TestMakePushPushesToTheGivenName(t *testing.T) {
	t.Parallel()
	expected, err := collectorImage(t).Digest()
	require.NoError(t, err)
	to := startRegistry(t) + "/team/otelcol-kubeevents:1.2.3"
	printed, err := runMake(t, repository, t.TempDir(), "push", "IMAGE="+to)
	require.NoError(t, err, printed)
	assert.Contains(t, printed, "pushed "+to+"@sha256:")
	tag, err := name.NewTag(to)
	require.NoError(t, err)
	pulled, err := remote.Image(tag, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}), remote.WithContext(t.Context()))
	require.NoError(t, err)
	actual, err := pulled.Digest()
	require.NoError(t, err)
	assert.Equal(t, expected, actual, "the name does not change the image")
}

func TestMakePushWithoutAName(t *testing.T) {
	t.Parallel()
	printed, err := runMake(t, repository, t.TempDir(), "check-image-name")
	require.Error(t, err)
	assert.Contains(t, printed, "make push IMAGE=REGISTRY/NAME:TAG")
}

// copySources copies the files that Git knows, and those that it would add.
func copySources(t *testing.T, to string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
	command.Dir = repository
	var stderr bytes.Buffer
	command.Stderr = &stderr
	list, err := command.Output()
	if err != nil {
		t.Skipf("the sources are not a Git repository: %v: %s", err, stderr.String())
	}
	for _, path := range strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		info, err := os.Stat(filepath.Join(repository, path))
		if os.IsNotExist(err) {
			continue // It was removed, but not yet from Git.
		}
		require.NoError(t, err)
		content, err := os.ReadFile(filepath.Join(repository, path))
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(to, filepath.Dir(path)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(to, path), content, info.Mode().Perm()))
	}
}
