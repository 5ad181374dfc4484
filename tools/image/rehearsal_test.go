// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// rehearsal is a release of a clone of this commit: its remote is a directory, and its registry is in
// memory. The registry accepts only the credentials of docker login.
type rehearsal struct {
	clone     string // the directory of the sources
	published string // the directory of the remote
	registry  string // the address
	keys      string // the directory of a key pair for signatures
	tools     string // the directory of built programs
	nodes     string // the directory of a control plane and a real node
}

// releaseTargets are those of the release workflow, in its order.
var releaseTargets = []string{"check-release", "release-notes", "dist", "push", "push-chart", "sign", "tags"}

func TestTheWorkflowRunsWhatIsRehearsed(t *testing.T) {
	t.Parallel()
	var run []string
	for _, match := range regexp.MustCompile(`run: make (\S+)`).FindAllStringSubmatch(read(t, repository, ".github/workflows/release.yaml"), -1) {
		run = append(run, match[1])
	}
	assert.Equal(t, releaseTargets, run)
}

// TestRehearsal runs the targets of the release workflow, and checks as a user what they published. It builds the Collector for all platforms. So only `make rehearse-release` runs it.
func TestRehearsal(t *testing.T) {
	if os.Getenv("REHEARSE_RELEASE") == "" {
		t.Skip("it takes many minutes: make rehearse-release runs it")
	}
	r := newRehearsal(t)
	image, chart := r.registry+"/team/otelcol-kubeevents:"+version(t), r.registry+"/charts/kube-events:"+version(t)
	variables := map[string][]string{
		"push":       {"IMAGE=" + image},
		"push-chart": {"CHARTS=oci://" + r.registry + "/charts", "HELM_FLAGS=--plain-http"},
		"sign":       {"KEY=" + filepath.Join(r.keys, "cosign.key")},
		"tags":       {"REMOTE=" + r.published},
	}
	for _, target := range releaseTargets {
		r.make(t, append(variables[target], target)...)
	}

	pushedImage := pushedTo(t, filepath.Join(r.clone, "build", "image"), image)
	pushedChart := pushedTo(t, filepath.Join(r.clone, "build", "chart"), chart)
	t.Run("the checksums", r.checkChecksums)
	t.Run("the image", func(t *testing.T) { r.checkImage(t, pushedImage) })
	t.Run("the chart", func(t *testing.T) { r.checkChart(t, pushedImage) })
	t.Run("the installation", func(t *testing.T) { r.checkInstallation(t, pushedImage) })
	t.Run("the signatures", func(t *testing.T) { r.checkSignatures(t, pushedImage, pushedChart) })
	t.Run("the modules", r.checkModules)
}

// withLogin uses the credentials of docker login.
var withLogin = remote.WithAuthFromKeychain(authn.DefaultKeychain)

// newRehearsal clones this commit, and does what a maintainer does before a release.
func newRehearsal(t *testing.T) *rehearsal {
	t.Helper()
	sources, err := filepath.Abs(repository)
	require.NoError(t, err)
	r := &rehearsal{
		clone: filepath.Join(t.TempDir(), "clone"), published: newRemote(t), registry: startPrivateRegistry(t), keys: t.TempDir(),
		tools: filepath.Join(sources, "build", "tools"), nodes: filepath.Join(sources, "build", "controlplane"),
	}
	git(t, sources, "clone", "--quiet", "--no-tags", sources, r.clone)
	dateVersion(t, r.clone)
	git(t, r.clone, "tag", "v"+version(t))
	git(t, r.clone, "push", "--quiet", r.published, "v"+version(t))
	output, err := r.cosign(t, "generate-key-pair", "--output-key-prefix", filepath.Join(r.keys, "cosign"))
	require.NoError(t, err, output)
	t.Setenv("COSIGN_PASSWORD", "") // That of the key.
	return r
}

// startPrivateRegistry starts a registry in memory, and does what docker login does for it.
func startPrivateRegistry(t *testing.T) (address string) {
	t.Helper()
	open := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "maintainer" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		open.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	address = strings.TrimPrefix(server.URL, "http://")
	config, credentials := t.TempDir(), base64.StdEncoding.EncodeToString([]byte("maintainer:secret"))
	text := fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, address, credentials)
	require.NoError(t, os.WriteFile(filepath.Join(config, "config.json"), []byte(text), 0o600))
	t.Setenv("DOCKER_CONFIG", config)
	return address
}

// newRemote makes an empty repository, to which a clone can push.
func newRemote(t *testing.T) (directory string) {
	t.Helper()
	directory = t.TempDir()
	git(t, directory, "init", "--quiet", "--bare")
	return directory
}

// nestedModules are the directories of the resolver, and of modules that the manifest of the builder names. Go finds
// their versions only with tags of their own.
func nestedModules(t *testing.T, sources string) (directories []string) {
	t.Helper()
	manifest := read(t, sources, "distribution/builder.yaml")
	for _, match := range regexp.MustCompile(`- gomod: github\.com/kubeevents/kubeeventsreceiver/(\S+) `).FindAllStringSubmatch(manifest, -1) {
		directories = append(directories, match[1])
	}
	require.NotEmpty(t, directories)
	return append(directories, "resolver")
}

// pushedTo reads the file that a target writes about what it pushed.
func pushedTo(t *testing.T, output, tag string) name.Digest {
	t.Helper()
	pushed := strings.TrimSpace(read(t, output, "pushed"))
	require.True(t, strings.HasPrefix(pushed, "pushed "+tag+"@sha256:"), pushed)
	digest, err := name.NewDigest(strings.TrimPrefix(pushed, "pushed "))
	require.NoError(t, err)
	return digest
}

// renderChart returns the manifests of the chart in a registry.
func renderChart(t *testing.T, helm, registry string, flags ...string) string {
	t.Helper()
	arguments := []string{
		"template", "kube-events", "oci://" + registry + "/charts/kube-events", "--version", version(t), "--plain-http",
		"--set", "otlp.endpoint=http://gateway:4318",
	}
	command := exec.CommandContext(t.Context(), helm, append(arguments, flags...)...)
	command.Env = append(os.Environ(), "HELM_CACHE_HOME="+t.TempDir(), "HELM_CONFIG_HOME="+t.TempDir())
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return string(output)
}

// make runs a target in the clone, and prints what it prints.
func (r *rehearsal) make(t *testing.T, arguments ...string) {
	t.Helper()
	printed, err := runTarget(t, r.clone, arguments...)
	require.NoError(t, err, "make %v: %s", arguments, printed)
	t.Logf("make %s\n%s", strings.Join(arguments, " "), printed)
}

// cosign runs cosign in the directory of the programs.
func (r *rehearsal) cosign(t *testing.T, arguments ...string) (output string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(r.tools, "cosign"), arguments...)
	command.Dir = filepath.Join(r.clone, "build", "dist")
	if arguments[0] == "generate-key-pair" {
		command.Dir = r.keys
	}
	command.Env = append(os.Environ(), "COSIGN_PASSWORD=")
	text, err := command.CombinedOutput()
	return string(text), err
}

func (r *rehearsal) checkChecksums(t *testing.T) {
	dist := filepath.Join(r.clone, "build", "dist")
	files := map[string]bool{"SHA256SUMS": true, "SHA256SUMS.sigstore.json": true}
	for line := range strings.Lines(read(t, dist, "SHA256SUMS")) {
		sum, name, found := strings.Cut(strings.TrimSpace(line), "  ")
		require.True(t, found, line)
		assert.Equal(t, fmt.Sprintf("%x", sha256.Sum256([]byte(read(t, dist, name)))), sum, name)
		files[name] = true
		if program, isBill := strings.CutSuffix(name, ".cdx.json"); isBill {
			info, err := buildinfo.ReadFile(filepath.Join(dist, program))
			require.NoError(t, err)
			assert.Len(t, *decode(t, []byte(read(t, dist, name))).Components, len(info.Deps)+1, name)
		}
	}
	assert.GreaterOrEqual(t, len(files), 4)
	written, err := os.ReadDir(dist)
	require.NoError(t, err)
	for _, file := range written {
		assert.True(t, files[file.Name()], "%s has no checksum", file.Name())
	}
}

func (r *rehearsal) checkImage(t *testing.T, pushed name.Digest) {
	index, err := remote.Index(pushed, remote.WithContext(t.Context()), withLogin)
	require.NoError(t, err)
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	var platforms []string
	for _, part := range manifest.Manifests {
		platforms = append(platforms, part.Platform.String())
	}
	assert.Equal(t, []string{"linux/amd64", "linux/arm64"}, platforms)

	if runtime.GOOS != "linux" {
		return
	}
	pulled, err := remote.Image(pushed, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}), remote.WithContext(t.Context()), withLogin)
	require.NoError(t, err)
	output, err := exec.CommandContext(t.Context(), filepath.Join(rootOf(t, pulled), title), "--version").CombinedOutput()
	require.NoError(t, err, "%s", output)
	assert.Equal(t, "otelcol-kubeevents version "+version(t)+"\n", string(output))
}

func (r *rehearsal) checkChart(t *testing.T, image name.Digest) {
	helm := filepath.Join(r.tools, "helm")
	repository := image.Context().Name()
	byDigest := renderChart(t, helm, r.registry, "--set", "image.repository="+repository)
	assert.Contains(t, byDigest, "image: "+repository+":"+version(t)+"@"+image.DigestStr()+"\n")
}

// checkInstallation installs the chart and the image from the registry on a real node. If this machine
// cannot run one, it is skipped.
func (r *rehearsal) checkInstallation(t *testing.T, image name.Digest) {
	command := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-timeout=20m", "-run=^TestPublished$", "./node")
	command.Dir = filepath.Join(r.clone, "e2e")
	command.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+r.nodes, "PUBLISHED_IMAGE="+image.Context().Name()+"@"+image.DigestStr())
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	if bytes.Contains(output, []byte("--- SKIP: TestPublished")) {
		t.Skip(string(output))
	}
	require.Contains(t, string(output), "--- PASS: TestPublished")
}

func (r *rehearsal) checkSignatures(t *testing.T, image, chart name.Digest) {
	index, err := remote.Index(image, remote.WithContext(t.Context()), withLogin)
	require.NoError(t, err)
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	signed := []string{image.String(), chart.String()}
	for _, part := range manifest.Manifests {
		signed = append(signed, image.Context().Digest(part.Digest.String()).String())
	}
	key := filepath.Join(r.keys, "cosign.pub")
	for _, reference := range signed {
		output, err := r.cosign(t, "verify", "--key", key, "--insecure-ignore-tlog=true", reference)
		assert.NoError(t, err, "%s: %s", reference, output)
	}
	// A key needs no roots of trust, which cosign would download.
	roots := filepath.Join(t.TempDir(), "roots.json")
	output, err := r.cosign(t, "trusted-root", "create", "--out", roots)
	require.NoError(t, err, output)
	output, err = r.cosign(t, "verify-blob", "--key", key, "--insecure-ignore-tlog=true", "--trusted-root", roots,
		"--bundle", "SHA256SUMS.sigstore.json", "SHA256SUMS")
	assert.NoError(t, err, output)
}

// checkModules builds a Collector as users do, with the Dockerfile of examples/own-image. Go gets the modules of the
// tags from a module proxy of files.
func (r *rehearsal) checkModules(t *testing.T) {
	const root = "github.com/kubeevents/kubeeventsreceiver"
	proxy := t.TempDir()
	released := filepath.Join(t.TempDir(), "released")
	git(t, r.published, "clone", "--quiet", "--branch", "v"+version(t), r.published, released)
	publish(t, released, proxy, root, "")
	for _, directory := range nestedModules(t, r.clone) {
		publish(t, released, proxy, root+"/"+directory, directory)
	}
	program := buildDockerfile(t, filepath.Join(r.clone, "examples", "own-image"), moduleEnvironment(t, proxy, root)).program(t)
	info, err := buildinfo.ReadFile(program)
	require.NoError(t, err)
	ours := map[string]string{}
	for _, dependency := range info.Deps {
		if strings.HasPrefix(dependency.Path, root) {
			assert.Nil(t, dependency.Replace, dependency.Path)
			assert.NotEmpty(t, dependency.Sum, dependency.Path)
			ours[dependency.Path] = dependency.Version
		}
	}
	expected := map[string]string{root: "v" + version(t)}
	for _, directory := range nestedModules(t, r.clone) {
		expected[root+"/"+directory] = "v" + version(t)
	}
	assert.Equal(t, expected, ours)
	checkWithChart(t, r.clone, program)
}

// checkWithChart: the Collector would start with each golden output of the chart. In everything.yaml, the user adds
// components of other projects.
func checkWithChart(t *testing.T, sources, program string) {
	t.Helper()
	outputs, err := filepath.Glob(filepath.Join(sources, "e2e", "chart", "testdata", "*.yaml"))
	require.NoError(t, err)
	checked := 0
	for _, output := range outputs {
		name := filepath.Base(output)
		if strings.HasSuffix(name, ".values.yaml") || name == "everything.yaml" {
			continue
		}
		checked++
		_, text, found := strings.Cut(read(t, filepath.Dir(output), name), "\n  config.yaml: |\n")
		require.True(t, found, name)
		text, _, _ = strings.Cut(text, "\n---")
		text = strings.ReplaceAll(text, "/var/lib/otelcol", t.TempDir())
		config := filepath.Join(t.TempDir(), "config.yaml")
		require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
		command := exec.CommandContext(t.Context(), program, "validate", "--config="+config, "--feature-gates=+extension.healthcheck.useComponentStatus")
		for _, variable := range regexp.MustCompile(`env:([A-Z_]+)`).FindAllStringSubmatch(text, -1) {
			command.Env = append(command.Env, variable[1]+"=http://127.0.0.1:4317")
		}
		problems, err := command.CombinedOutput()
		assert.NoError(t, err, "%s: %s", name, problems)
	}
	assert.Greater(t, checked, 10)
}

// publish writes the module of a tag of a repository, in the form of a module proxy.
func publish(t *testing.T, sources, proxy, path, directory string) {
	t.Helper()
	v := module.Version{Path: path, Version: "v" + version(t)}
	tag := v.Version
	if directory != "" {
		tag = directory + "/" + tag
	}
	var packed bytes.Buffer
	require.NoError(t, zip.CreateFromVCS(&packed, v, sources, tag, directory))
	files := map[string][]byte{
		".info": fmt.Appendf(nil, `{"Version":%q,"Time":"2026-01-02T00:00:00Z"}`, v.Version),
		".mod":  []byte(git(t, sources, "show", tag+":"+filepath.ToSlash(filepath.Join(directory, "go.mod"))) + "\n"),
		".zip":  packed.Bytes(),
	}
	versions := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	require.NoError(t, os.MkdirAll(versions, 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(versions, "list"), []byte(v.Version+"\n"), 0o600))
	for suffix, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(versions, v.Version+suffix), content, 0o600))
	}
}

// moduleEnvironment makes Go read modules of this repository from a proxy of files, and others from
// the module cache of this machine, or from where it gets them otherwise. The unpublished modules must
// not get into that cache. Only they are in no checksum database.
func moduleEnvironment(t *testing.T, proxy, path string) []string {
	t.Helper()
	values := map[string]string{}
	for _, name := range []string{"GOPROXY", "GOMODCACHE", "GOFLAGS"} {
		output, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		require.NoError(t, err)
		values[name] = strings.TrimSpace(string(output))
	}
	return []string{
		"GOWORK=off",
		"GOPROXY=file://" + proxy + ",file://" + filepath.Join(values["GOMODCACHE"], "cache", "download") + "," + values["GOPROXY"],
		"GOMODCACHE=" + t.TempDir(),
		"GOFLAGS=" + strings.TrimSpace(values["GOFLAGS"]+" -mod=mod -modcacherw"),
		"GONOSUMDB=" + path,
	}
}
