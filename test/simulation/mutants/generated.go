// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/token"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
)

// mutated are the packages, with those below them, that get generated mutants: the receiver's core.
var mutated = []string{"session", "leadership", "position", "memory", "delivery", "queue", "watch"}

const (
	module       = "github.com/kubeevents/kubeeventsreceiver"
	mutationPath = "internal/mutation" // The package is in the overlay only.
	mutation     = `package mutation

import (
	"os"
	"strconv"
)

var number, _ = strconv.Atoi(os.Getenv("` + variable + `"))

// Is reports whether the program is the mutant with this number.
func Is(n int) bool { return n == number }
`
)

// generate adds the files of a receiver that has all generated mutants. It returns these in an order
// that is random, and the same each time.
func generate(contents map[string]string) ([]mutant, error) {
	gen := &generator{files: token.NewFileSet()}
	contents[mutationPath+"/mutation.go"] = mutation
	for _, directory := range mutated {
		err := filepath.WalkDir(filepath.Join("internal", directory), func(file string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			before := len(gen.mutants)
			content, err := gen.mutate(file, module+"/"+mutationPath)
			if len(gen.mutants) > before {
				contents[file] = content
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	rand.New(rand.NewPCG(1, 0)).Shuffle(len(gen.mutants), func(i, j int) {
		gen.mutants[i], gen.mutants[j] = gen.mutants[j], gen.mutants[i]
	})
	return gen.mutants, nil
}
