// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// check parses the package of a directory, and finds where it reads fields.
func (g *generator) check(directory string) (files []*ast.File, err error) {
	names, err := filepath.Glob(filepath.Join(directory, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(g.files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, parsed)
	}
	exports, err := exportsOf(directory)
	if err != nil {
		return nil, err
	}
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
	config := types.Config{Importer: importer.ForCompiler(g.files, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	if _, err = config.Check(module+"/"+filepath.ToSlash(directory), g.files, files, info); err != nil {
		return nil, err
	}
	g.fields = info.Selections
	for _, file := range files {
		ast.Inspect(file, g.keepReads)
	}
	return files, nil
}

// exportsOf returns the files with the types of what a package imports, by its path.
func exportsOf(directory string) (map[string]string, error) {
	output, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./"+directory).Output()
	if err != nil {
		return nil, fmt.Errorf("cannot list what %s imports: %w", directory, err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(output)) {
		path, export, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = export
	}
	return exports, nil
}

// keepReads removes the fields that are written, whose address is taken, or that are a part of a longer
// expression of fields and methods: another value may not stand there.
func (g *generator) keepReads(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for _, e := range n.Lhs {
			g.removeFields(e)
		}
	case *ast.IncDecStmt:
		g.removeFields(n.X)
	case *ast.UnaryExpr:
		if n.Op.String() == "&" {
			g.removeFields(n.X)
		}
	case *ast.RangeStmt:
		g.removeFields(n.Key)
		g.removeFields(n.Value)
	case *ast.SelectorExpr:
		g.removeFields(n.X)
	case *ast.SliceExpr:
		g.removeFields(n.X) // An array must be addressable.
	}
	return true
}

func (g *generator) removeFields(e ast.Expr) {
	if e == nil {
		return
	}
	ast.Inspect(e, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			delete(g.fields, selector)
		}
		return true
	})
}

// otherField returns the next field of the same struct that has the same type; empty: there is none.
func otherField(s *types.Selection) string {
	if s == nil || s.Kind() != types.FieldVal || len(s.Index()) != 1 || !types.Comparable(s.Type()) {
		return ""
	}
	receiver := s.Recv()
	if pointer, ok := receiver.Underlying().(*types.Pointer); ok {
		receiver = pointer.Elem()
	}
	fields, ok := receiver.Underlying().(*types.Struct)
	if !ok {
		return ""
	}
	for i := 1; i < fields.NumFields(); i++ {
		other := fields.Field((s.Index()[0] + i) % fields.NumFields())
		if types.Identical(other.Type(), s.Type()) && other.Exported() == s.Obj().Exported() {
			return other.Name()
		}
	}
	return ""
}
