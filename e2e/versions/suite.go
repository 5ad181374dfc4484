// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// suite is the package e2e with the programs of a control plane.
type suite struct {
	binaries string
}

// outcomes are how tests ended, by their full names: pass, fail or skip.
type outcomes map[string]string

// ran is a run of the suite.
type ran struct {
	outcomes
	// repeated has the tests that failed in the whole suite and passed when they ran again without
	// the other tests.
	repeated []string
}

// runAndRepeat runs the suite, and then again the tests that failed: on a busy machine, a test may
// fail because of the tests that run at the same time.
func (s suite) runAndRepeat(ctx context.Context) (ran, error) {
	first, err := s.run(ctx, nil)
	failed := first.failedAtTop()
	if err != nil || len(failed) == 0 {
		return ran{outcomes: first}, err
	}
	fmt.Fprintln(os.Stderr, "running again:", strings.Join(failed, ", "))
	second, err := s.run(ctx, failed)
	if err != nil {
		return ran{}, err
	}
	stillFailing := second.failedAtTop()
	maps.Copy(first, second)
	repeated := slices.DeleteFunc(failed, func(name string) bool { return slices.Contains(stillFailing, name) })
	return ran{first, repeated}, nil
}

// failedAtTop returns the tests that failed, without their subtests.
func (o outcomes) failedAtTop() (failed []string) {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if o[name] == "fail" && !strings.Contains(name, "/") {
			failed = append(failed, name)
		}
	}
	return failed
}

// run runs the tests with these names; nil means all of them.
func (s suite) run(ctx context.Context, only []string) (outcomes, error) {
	arguments := []string{"test", "-json", "-count=1", "-timeout=60m"}
	if only != nil {
		arguments = append(arguments, "-run", "^("+strings.Join(only, "|")+")$")
	}
	command := exec.CommandContext(ctx, "go", append(arguments, ".")...)
	// In CI, a test fails if a program is missing. Otherwise, it would be skipped.
	command.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+s.binaries, "CI=true")
	command.Stderr = os.Stderr
	printed, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	found, errParse := parse(printed, os.Stderr)
	errRun := command.Wait()
	switch {
	case errParse != nil:
		return nil, errParse
	case len(found) == 0 || errRun != nil && len(found.failedAtTop()) == 0:
		return nil, errors.Join(errors.New("the tests did not run to their end"), errRun)
	}
	return found, nil
}

// parse reads what go test -json prints. It copies the output of tests that failed, and what no
// test has printed.
func parse(printed io.Reader, failures io.Writer) (outcomes, error) {
	found, outputs := outcomes{}, map[string][]string{}
	messages := json.NewDecoder(printed)
	for {
		var message struct{ Action, Test, Output string }
		err := messages.Decode(&message)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the output of go test -json: %w", err)
		}
		switch {
		case message.Action == "output" && message.Test == "":
			_, _ = io.WriteString(failures, message.Output)
		case message.Action == "output":
			outputs[message.Test] = append(outputs[message.Test], message.Output)
		case message.Test != "" && slices.Contains([]string{"pass", "fail", "skip"}, message.Action):
			found[message.Test] = message.Action
			if message.Action == "fail" {
				_, _ = io.WriteString(failures, strings.Join(outputs[message.Test], ""))
			}
			delete(outputs, message.Test)
		}
	}
}
