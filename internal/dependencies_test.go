// SPDX-License-Identifier: Apache-2.0

package internal

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// values are the packages that every step may use: plain values, and the names of the conventions.
var values = []string{
	"internal/event", "internal/observation", "internal/extract", "internal/semconv", "internal/text", "resolver",
}

// allowed has, for each package of this module, the packages that it may import in addition to
// values, and why. A package that is not here may import values only. Dependencies point one way:
// from the receiver to the loop, from there to the steps, and from the steps to plain values. No
// step knows another step.
var allowed = map[string][]string{
	".": { // The component makes what lasts as long as the process.
		"internal/details", "internal/election", "internal/filter", "internal/health", "internal/journal", "internal/kind", "internal/kubeclient", "internal/logrecord",
		"internal/loop", "internal/metadata", "internal/owners", "internal/progress", "internal/series", "internal/userconfig", "internal/watch",
	},
	"internal/loop": { // The loop knows all steps.
		"internal/delivery", "internal/details", "internal/election", "internal/filter", "internal/health", "internal/kubeclient", "internal/ledger",
		"internal/logrecord", "internal/metadata", "internal/owners", "internal/progress", "internal/queue", "internal/series", "internal/watch",
	},
	"internal/text":           {},
	"internal/journal":        {}, // kube_incidents uses it, too.
	"internal/userconfig":     {}, // All components use it.
	"internal/kubeclient":     {"internal/userconfig"},
	"internal/owners":         {"internal/userconfig"},
	"internal/rights":         {},                          // kube_owners uses it, too.
	"resolver":                {"resolver/internal/kinds"}, // It is a module of its own.
	"resolver/internal/kinds": {},
	"internal/semconv":        {"internal/text", "resolver"},
	"internal/event":          {"internal/semconv", "internal/text", "resolver"}, // An event names its object by a resolver.Reference.
	"internal/kind":           {"internal/semconv"},
	"internal/filter":         {"internal/kind"},
	"internal/extract":        {"internal/kind", "internal/semconv", "internal/text", "resolver"},
	"internal/observation":    {"internal/extract", "resolver"},
	"internal/delivery":       {},                 // kube_incidents has its rule for errors, too.
	"internal/queue":          {"internal/watch"}, // It implements watch.Taker.
	"internal/election":       {},
	"internal/progress":       {"internal/journal", "internal/ledger"}, // What it notes is the ledger's.
	// It is the observer of these.
	"internal/health": {"internal/metadata", "internal/rights", "internal/watch"},
}

// onlyForTests are the packages that only tests use. They may import anything.
var onlyForTests = []string{"test", "internal/metadatatest"}

const module = "github.com/kubeevents/kubeeventsreceiver"

func TestDependenciesPointOneWay(t *testing.T) {
	for directory, imports := range importsOf(t) {
		may := values
		if more, ok := allowed[directory]; ok {
			may = slices.Concat(values, more)
			if isValue := slices.Contains(values, directory); isValue || len(more) == 0 {
				may = more
			}
		}
		for _, imported := range imports {
			assert.Contains(t, may, imported, "%s imports it: add it to allowed with a reason, or move the code", directory)
		}
	}
}

// importsOf returns what each directory of this module imports from this module, without its tests.
func importsOf(t *testing.T) map[string][]string {
	found := map[string][]string{}
	walk := func(file string, entry fs.DirEntry, err error) error {
		directory := path.Dir(file)
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			isOther := slices.Contains([]string{"build", "e2e", "controlplane", "distribution", "examples", "tools", ".git"}, file)
			if isOther || slices.Contains(onlyForTests, file) {
				return fs.SkipDir
			}
			return nil
		case !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", file), nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range parsed.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			if within, ok := strings.CutPrefix(name, module+"/"); ok {
				found[directory] = append(found[directory], within)
			}
		}
		return nil
	}
	require.NoError(t, fs.WalkDir(os.DirFS(".."), ".", walk))
	require.Contains(t, found, ".")
	return found
}
