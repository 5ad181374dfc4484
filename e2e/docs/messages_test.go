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

// source is the receiver's Go code.
type source struct {
	functions []*ast.FuncDecl
}

// readMessages are all that the receiver may say of what does not work: the messages of its
// logger's Warn and Error, and the errors that become its status. What is filled in is … in them.
func readMessages(t *testing.T) (messages []string) {
	t.Helper()
	s := parse(t)
	for _, function := range s.functions {
		ast.Inspect(function, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if ok && isComplaint(call) {
				texts := s.texts(function, call.Args[0])
				require.NotEmpty(t, texts, "a message in %s is computed in a way that this test does not understand", function.Name.Name)
				messages = append(messages, texts...)
			}
			return true
		})
		if function.Name.Name == "explain" {
			messages = append(messages, statusTexts(function)...)
		}
	}
	slices.Sort(messages)
	return slices.DeleteFunc(slices.Compact(messages), func(m string) bool { return m == "" }) // Another package has logged it.
}

// parse reads all of the receiver's packages.
func parse(t *testing.T) (s source) {
	t.Helper()
	files := token.NewFileSet()
	root := harness.InRepository()
	others := []string{"build", "controlplane", "distribution", "e2e", "tools", "testdata", "metadata", ".git"}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path != root && slices.Contains(others, entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok {
				s.functions = append(s.functions, function)
			}
		}
		return nil
	})
	require.NoError(t, err)
	return s
}

// isComplaint reports whether a call is logger.Warn or logger.Error, whatever holds the logger.
func isComplaint(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || method.Sel.Name != "Warn" && method.Sel.Name != "Error" || len(call.Args) == 0 {
		return false
	}
	switch holder := method.X.(type) {
	case *ast.Ident:
		return strings.EqualFold(holder.Name, "logger")
	case *ast.SelectorExpr:
		return strings.EqualFold(holder.Sel.Name, "logger")
	default:
		return false
	}
}

// texts are what an expression in a function may come to: constants, what is put together of them,
// local variables, and parameters.
func (s source) texts(function *ast.FuncDecl, expression ast.Expr) (texts []string) {
	switch e := expression.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return []string{text}
	case *ast.BinaryExpr:
		for _, left := range s.texts(function, e.X) {
			for _, right := range s.texts(function, e.Y) {
				texts = append(texts, left+right)
			}
		}
		return texts
	case *ast.Ident:
		if position, ok := parameter(function, e.Name); ok {
			return s.argumentsOf(function.Name.Name, position)
		}
		return s.assignedTo(function, e.Name)
	default:
		return nil
	}
}

func parameter(function *ast.FuncDecl, name string) (position int, ok bool) {
	for _, field := range function.Type.Params.List {
		for _, parameter := range field.Names {
			if parameter.Name == name {
				return position, true
			}
			position++
		}
	}
	return 0, false
}

// argumentsOf are what is passed to a function at a position, wherever it is called.
func (s source) argumentsOf(name string, position int) (texts []string) {
	for _, caller := range s.functions {
		ast.Inspect(caller, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			if method, ok := call.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == name && position < len(call.Args) {
				texts = append(texts, s.texts(caller, call.Args[position])...)
			}
			return true
		})
	}
	return texts
}

// assignedTo are what a local variable may hold.
func (s source) assignedTo(function *ast.FuncDecl, name string) (texts []string) {
	ast.Inspect(function, func(node ast.Node) bool {
		assignment, ok := node.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for i, left := range assignment.Lhs {
			if variable, ok := left.(*ast.Ident); ok && variable.Name == name && i < len(assignment.Rhs) {
				texts = append(texts, s.texts(function, assignment.Rhs[i])...)
			}
		}
		return true
	})
	return texts
}

var verb = regexp.MustCompile(`%[a-z]`)

// statusTexts are the errors that a function makes, up to what is filled in first.
func statusTexts(function *ast.FuncDecl) (texts []string) {
	ast.Inspect(function, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		if method, ok := call.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == "Errorf" {
			if format, ok := call.Args[0].(*ast.BasicLit); ok {
				text, _ := strconv.Unquote(format.Value)
				texts = append(texts, verb.Split(text, 2)[0]+"…")
			}
		}
		return true
	})
	return texts
}
