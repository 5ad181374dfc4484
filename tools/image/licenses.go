// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"

	"golang.org/x/mod/module"
)

// licenseFile matches the files of a module that must accompany a program.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents)([.-].*)?$`)

// licenses returns the licenses and notices of the modules of a program, which are in Go's module
// cache. A text that several modules have is there once. Go itself has the license of golang.org/x.
func licenses(info *buildinfo.BuildInfo, cache string) ([]byte, error) {
	var texts []string
	modules := map[string][]string{} // by text
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if strings.HasPrefix(m.Path, ".") {
			continue // It is of this repository.
		}
		found, err := licensesOf(m, cache)
		if err != nil {
			return nil, err
		}
		for _, text := range found {
			if modules[text] == nil {
				texts = append(texts, text)
			}
			modules[text] = append(modules[text], m.Path+" "+m.Version)
		}
	}
	var all strings.Builder
	fmt.Fprintln(&all, "This program contains the following modules, which have these licenses and notices.")
	for _, text := range texts {
		fmt.Fprintf(&all, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(modules[text], "\n"), text)
	}
	return []byte(all.String()), nil
}

func licensesOf(m *debug.Module, cache string) (texts []string, err error) {
	path, err := module.EscapePath(m.Path)
	if err != nil {
		return nil, err
	}
	version, err := module.EscapeVersion(m.Version)
	if err != nil {
		return nil, err
	}
	directory := filepath.Join(cache, path+"@"+version)
	files, err := os.ReadDir(directory)
	if err != nil {
		return nil, fmt.Errorf("no license of %s: %w", m.Path, err)
	}
	for _, file := range files {
		if !file.Type().IsRegular() || !licenseFile.MatchString(file.Name()) || filepath.Ext(file.Name()) == ".go" {
			continue
		}
		text, failed := os.ReadFile(filepath.Join(directory, file.Name())) //nolint:gosec // of Go's module cache
		err = errors.Join(err, failed)
		texts = append(texts, strings.TrimSpace(string(text)))
	}
	if len(texts) == 0 && err == nil {
		err = fmt.Errorf("no license of %s: %s has no file LICENSE or similar", m.Path, directory)
	}
	return texts, err
}
