// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// complaints are the methods and the variables that get the receiver's messages of warnings and errors.
// Other arguments of these methods have no spaces. What a message is put together of are literals.
var complaints = []string{"Warn", "Error", "Failed", "setAside", "message"}

// readMessages are all that the receiver may say of what does not work: literals for the complaints, and
// the errors that become its status, in which … is what is filled in.
func readMessages(t *testing.T) (messages []string) {
	t.Helper()
	inspectReceiver(t, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.FuncDecl:
			if n.Name.Name == "explain" && n.Recv == nil || n.Name.Name == "RejectingLong" {
				messages = append(messages, formatsIn(n)...)
			}
		case *ast.CallExpr:
			if method, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(complaints, method.Sel.Name) {
				messages = append(messages, literals(n.Args)...)
			}
		case *ast.AssignStmt:
			if variable, ok := n.Lhs[0].(*ast.Ident); ok && slices.Contains(complaints, variable.Name) {
				messages = append(messages, literals(n.Rhs)...)
			}
		}
		return true
	})
	slices.Sort(messages)
	return slices.DeleteFunc(slices.Compact(messages), func(m string) bool { return !strings.Contains(m, " ") })
}

// inspectReceiver walks through the code of all of the receiver's packages.
func inspectReceiver(t *testing.T, inspect func(ast.Node) bool) {
	t.Helper()
	root := harness.InRepository()
	others := []string{"build", "controlplane", "distribution", "e2e", "test", "tools", "testdata", "metadata", ".git"}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && slices.Contains(others, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err == nil {
			ast.Inspect(file, inspect)
		}
		return err
	}))
}

// literals are the texts among expressions.
func literals(expressions []ast.Expr) (texts []string) {
	for _, expression := range expressions {
		if text := literal(expression); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// literal is a text, or several that are added; empty if it is none.
func literal(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		if left, right := literal(e.X), literal(e.Y); left != "" && right != "" {
			return left + right
		}
	}
	return ""
}

var verb = regexp.MustCompile(`%[a-z]`)

// formatsIn are the errors that a function makes, up to what is filled in first.
func formatsIn(function *ast.FuncDecl) (texts []string) {
	ast.Inspect(function, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok {
			for _, text := range literals(call.Args[:min(1, len(call.Args))]) {
				texts = append(texts, verb.Split(text, 2)[0]+"…")
			}
		}
		return true
	})
	return texts
}
