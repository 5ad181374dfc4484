// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	proc "github.com/kubeevents/kubeeventsreceiver/controlplane/process"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// recipe is examples/backends in a directory that looks like the repository's root, so that the
// commands of its README work there as they stand, and store there what they store. Only the ports
// are others.
type recipe struct {
	root      string
	blocks    []block           // of the README
	addresses map[string]string // by the port that the README has
}

// recipePorts are those that the recipe's README lists.
var recipePorts = []string{"3100", "9096", "9090", "9466", "8890"}

func newRecipe(root string) (*recipe, error) {
	addresses, err := proc.FreeAddresses(len(recipePorts))
	if err != nil {
		return nil, err
	}
	r := &recipe{root: root, addresses: map[string]string{}}
	var replaced []string
	for i, port := range recipePorts {
		r.addresses[port] = addresses[i]
		replaced = append(replaced, port, strings.TrimPrefix(addresses[i], "127.0.0.1:"))
	}
	for path, target := range map[string]string{
		"build/backends": filepath.Dir(backend("loki")), "build/otelcol-kubeevents": harness.OtelcolPath(),
	} {
		err = errors.Join(err, r.link(path, target))
	}
	rules := filepath.Join(r.root, "deploy", "chart", "rules")
	err = errors.Join(err, os.MkdirAll(rules, 0o700), evaluateFileOften(rules))
	return r, errors.Join(err, r.copyFiles(strings.NewReplacer(replaced...)))
}

// link makes what is elsewhere part of the root.
func (r *recipe) link(path, target string) error {
	target, err := filepath.Abs(target)
	path = filepath.Join(r.root, path)
	return errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.Symlink(target, path))
}

func (r *recipe) copyFiles(ports *strings.Replacer) error {
	paths, err := filepath.Glob(harness.InRepository("examples", "backends", "*"))
	to := filepath.Join(r.root, "examples", "backends")
	err = errors.Join(err, os.MkdirAll(to, 0o700))
	for _, path := range paths {
		text, failed := os.ReadFile(path)
		changed := ports.Replace(string(text))
		err = errors.Join(err, failed, os.WriteFile(filepath.Join(to, filepath.Base(path)), []byte(changed), 0o600))
		if filepath.Base(path) == "README.md" {
			r.blocks = blocks(changed)
		}
	}
	return err
}

// start starts a program of build/ with the README's command.
func (r *recipe) start(program string, env ...string) (*process, error) {
	for _, b := range r.blocks {
		for command := range strings.Lines(b.text) {
			command, background := strings.CutSuffix(command, " &\n")
			if background && strings.HasPrefix(command, "build/"+program+" ") {
				words := strings.Fields(command)
				return start(r.root, env, words[0], words[1:]...)
			}
		}
	}
	return nil, fmt.Errorf("the recipe's README does not start %s", program)
}

// sh runs a command as a user does, and returns the lines that it prints.
func (r *recipe) sh(command string) ([]string, error) {
	output, err := proc.Shell(r.root, command)
	return strings.Split(output, "\n"), err
}

// queries are the commands below which the README has what they print.
func (r *recipe) queries() (queries []query) {
	for i, b := range r.blocks {
		if b.language == "text" {
			returns := strings.Split(strings.TrimSpace(b.text), "\n")
			queries = append(queries, query{language: "sh", text: r.blocks[i-1].text, returns: returns})
		}
	}
	return queries
}

// TestTheRecipe: the commands in the README of examples/backends print what it shows.
func TestTheRecipe(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("the recipe asks with curl, which is not installed: ", err)
	}
	r, err := newRecipe(t.TempDir())
	require.NoError(t, err)
	before := r.files(t)
	loki, prometheus, stop := r.startAll(t)
	require.Len(t, r.queries(), 2)
	for _, q := range r.queries() {
		eventually(t, func() error { return q.check(r.sh) })
	}
	eventually(t, prometheus.evaluatesItsRules)
	takesOldEvents(t, loki)
	stop()
	r.removeWhatWasStored(t, before)
}

// startAll starts all three at once, as the README does.
func (r *recipe) startAll(t *testing.T) (l *loki, p *prometheus, stop func()) {
	t.Helper()
	var started []*process
	for _, program := range []string{"backends/loki", "backends/prometheus", "otelcol-kubeevents"} {
		one, err := r.start(program, "KUBECONFIG="+all.cluster.Kubeconfig())
		require.NoError(t, err)
		t.Cleanup(func() {
			one.stop()
			if t.Failed() {
				t.Logf("%s:\n%s", program, one.Output)
			}
		})
		started = append(started, one)
	}
	return &loki{started[0], "http://" + r.addresses["3100"]}, &prometheus{started[1], "http://" + r.addresses["9090"]}, func() {
		for _, one := range slices.Backward(started) {
			one.stop()
		}
	}
}

// takesOldEvents: not only those of the last hour, though there are newer ones in the stream.
func takesOldEvents(t *testing.T, l *loki) {
	t.Helper()
	aboutNode := query{text: `{log_source="kube_events"} | k8s_object_kind="Node" | k8s_namespace_name=""`, returns: []string{"Node node-0 event: …"}}
	eventually(t, func() error { return aboutNode.check(l.messages) })
	past := metav1.NewTime(time.Now().Add(-2 * time.Hour))
	_, err := all.cluster.CoreV1().Events(metav1.NamespaceDefault).Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "old-"}, InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "node-0"},
		Type: "Normal", Reason: "Old", Message: "two hours ago", Count: 1, FirstTimestamp: past, LastTimestamp: past,
		Source: corev1.EventSource{Component: "recipe-test"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	aboutNode.returns = []string{"two hours ago"}
	eventually(t, func() error { return aboutNode.check(l.messages) })
}

// removeWhatWasStored does it with the README's command, and looks that nothing was stored
// elsewhere.
func (r *recipe) removeWhatWasStored(t *testing.T, before []string) {
	t.Helper()
	assert.Greater(t, len(r.files(t)), len(before))
	const stop = "kill %1 %2 %3\n"
	last := slices.IndexFunc(r.blocks, func(b block) bool { return strings.HasPrefix(b.text, stop) })
	require.GreaterOrEqual(t, last, 0, "the README has the commands that stop and remove all")
	_, err := r.sh(strings.TrimPrefix(r.blocks[last].text, stop))
	require.NoError(t, err)
	assert.Equal(t, before, r.files(t))
}

// files are all that there are below the root.
func (r *recipe) files(t *testing.T) (paths []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(r.root, func(path string, _ os.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	}))
	return paths
}
