// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
)

// areas are what the page has a row for, with the files that have the tests.
var areas = []struct {
	title string
	files []string
}{
	{"Credentials, permissions, health", []string{"auth", "rbac", "health"}},
	{"Watch: lists, resume, relist, failures of the API server, filters", []string{"watch", "features"}},
	{"Counting: recorders of both styles, `dedup_interval`", []string{"accounting", "repeat"}},
	{"Records: attributes, times, `start_at`, hostile events", []string{"records", "hostile", "tenant_linux"}},
	{"Involved objects: API versions, UIDs, nodes, containers", []string{"references"}},
	{"Owners: chains of this version's controllers, custom resources, lookups", []string{"owners", "lookups", "hanging", "namespaces"}},
	{"Labels and annotations as attributes", []string{"extract"}},
	{"Metric, and the receiver's own telemetry", []string{"metrics", "telemetry"}},
	{"Delivery, storage, restarts", []string{"delivery", "restart", "fsync"}},
	{"Configuration, and the built Collector", []string{"config", "collector"}},
}

// areasOfTests returns the area of each test of a package, by the test's name.
func areasOfTests(directory string) (map[string]string, error) {
	found := map[string]string{}
	files, err := filepath.Glob(filepath.Join(directory, "*_test.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		tests, err := testsOf(file)
		if err != nil {
			return nil, err
		}
		area := areaOf(file)
		if area == "" && len(tests) > 0 {
			return nil, fmt.Errorf("the tests of %s have no row on the page: add the file to areas", file)
		}
		for _, name := range tests {
			found[name] = area
		}
	}
	return found, nil
}

// areaOf returns the area of a file; empty if it has none.
func areaOf(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), "_test.go")
	for _, area := range areas {
		for _, file := range area.files {
			if file == name {
				return area.title
			}
		}
	}
	return ""
}

// testsOf returns the names of the tests of a file.
func testsOf(path string) (names []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if ok && function.Recv == nil && strings.HasPrefix(function.Name.Name, "Test") && function.Name.Name != "TestMain" {
			names = append(names, function.Name.Name)
		}
	}
	return names, nil
}
