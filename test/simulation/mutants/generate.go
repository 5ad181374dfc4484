// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"slices"
	"strings"
)

// insertion is text that a file gets at an offset.
type insertion struct {
	offset int
	text   string
}

// generator makes all mutants of files. They are compiled into one program, which decides at each
// place which of them it has: a build for each would take most of the time.
type generator struct {
	files   *token.FileSet
	fields  map[*ast.SelectorExpr]*types.Selection // of the package, that only read a field
	file    string
	source  []byte
	mutants []mutant

	function string // that the walk is in

	prefixes, suffixes []insertion // in the order of the walk: an outer node is before its inner nodes
}

// mutate returns the content of a file with its mutants, which the package at importPath selects.
func (g *generator) mutate(parsed *ast.File, importPath string) (string, error) {
	file := g.files.Position(parsed.Pos()).Filename
	source, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	g.file, g.source, g.prefixes, g.suffixes = file, source, nil, nil
	g.prefixes = append(g.prefixes, insertion{g.offset(parsed.Name.End()), fmt.Sprintf("; import mutation %q", importPath)})
	ast.Inspect(parsed, g.visit)
	slices.Reverse(g.suffixes)
	insertions := slices.Concat(g.suffixes, g.prefixes)
	slices.SortStableFunc(insertions, func(a, b insertion) int { return a.offset - b.offset })
	var b strings.Builder
	at := 0
	for _, i := range insertions {
		b.Write(source[at:i.offset])
		b.WriteString(i.text)
		at = i.offset
	}
	b.Write(source[at:])
	return b.String(), nil
}

func (g *generator) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		g.function = n.Name.Name
	case *ast.GenDecl:
		return n.Tok == token.VAR // Constants and types have no place for a condition.
	case *ast.IfStmt:
		g.condition(n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			g.never(n.Cond, "the loop does not run")
		}
	case *ast.SwitchStmt:
		if n.Tag == nil {
			g.cases(n)
		}
	case *ast.BinaryExpr:
		g.binary(n)
	case *ast.SelectorExpr:
		if other := otherField(g.fields[n]); other != "" {
			g.wrap(n, "is "+other, "mutation.Other(%d, ", ", "+g.text(n.X)+"."+other+")")
		}
	case *ast.ReturnStmt:
		for _, e := range n.Results {
			if isDecision(e) {
				g.condition(e)
			}
		}
	case *ast.BlockStmt:
		g.statements(n.List)
	case *ast.CaseClause:
		g.statements(n.Body)
	case *ast.CommClause:
		g.statements(n.Body)
	}
	return true
}

func (g *generator) condition(e ast.Expr) {
	g.always(e, "is always so")
	g.never(e, "is never so")
}

func (g *generator) cases(s *ast.SwitchStmt) {
	for _, clause := range s.Body.List {
		for _, e := range clause.(*ast.CaseClause).List {
			g.condition(e)
		}
	}
}

// isDecision reports whether an expression is true or false by its form.
func isDecision(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return slices.Contains([]token.Token{token.LAND, token.LOR, token.EQL, token.NEQ,
			token.LSS, token.GTR, token.LEQ, token.GEQ}, e.Op)
	case *ast.UnaryExpr:
		return e.Op == token.NOT
	}
	return false
}

func (g *generator) binary(e *ast.BinaryExpr) {
	switch e.Op {
	case token.LAND:
		g.always(e.X, "does not count")
		g.always(e.Y, "does not count")
	case token.LOR:
		g.never(e.X, "does not count")
		g.never(e.Y, "does not count")
	case token.LSS, token.GTR:
		if !mayRepeat(e) {
			return
		}
		g.wrap(e, "also if equal", "(", " || mutation.IsAtLimit(%d, "+g.text(e.X)+" == "+g.text(e.Y)+"))")
	case token.LEQ, token.GEQ:
		if !mayRepeat(e) {
			return
		}
		g.wrap(e, "not if equal", "(", " && !mutation.IsAtLimit(%d, "+g.text(e.X)+" == "+g.text(e.Y)+"))")
	}
}

// mayRepeat reports whether an expression can be evaluated twice: all that it calls only reads.
func mayRepeat(e ast.Expr) bool {
	only := true
	ast.Inspect(e, func(n ast.Node) bool {
		call, isCall := n.(*ast.CallExpr)
		if !isCall || len(call.Args) == 0 {
			return true
		}
		switch f := call.Fun.(type) {
		case *ast.Ident:
			only = only && slices.Contains([]string{"len", "cap", "min", "max"}, f.Name)
		case *ast.SelectorExpr:
			only = only && slices.Contains([]string{"Since", "Sub"}, f.Sel.Name)
		}
		return true
	})
	return only
}

// statements leaves out one statement of a list at a time.
func (g *generator) statements(list []ast.Stmt) {
	for _, s := range list {
		if canBeLeftOut(s, g.text(s)) {
			g.wrap(s, "is left out", "if !mutation.LeavesOut(%d) { ", " }")
		}
	}
}

// canBeLeftOut excludes what does not compile without the statement, and what no promise is about:
// logs. A program without an unlock ends at once.
func canBeLeftOut(s ast.Stmt, text string) bool {
	if strings.Contains(text, "ock()") || strings.Contains(text, "ogger.") || strings.Contains(text, "log.") ||
		strings.HasPrefix(text, "panic(") {
		return false
	}
	switch s := s.(type) {
	case *ast.ExprStmt, *ast.IncDecStmt, *ast.SendStmt:
		return true
	case *ast.AssignStmt:
		return s.Tok != token.DEFINE && !strings.HasPrefix(text, "_")
	case *ast.BranchStmt:
		return s.Tok == token.CONTINUE
	}
	return false
}

func (g *generator) always(e ast.Expr, what string) { g.wrap(e, what, "mutation.Always(%d, ", ")") }
func (g *generator) never(e ast.Expr, what string)  { g.wrap(e, what, "mutation.Never(%d, ", ")") }

// wrap adds a mutant: text before and after a node, one of which has its number.
func (g *generator) wrap(n ast.Node, what, before, after string) {
	m := mutant{number: len(g.mutants) + 1}
	text, _, _ := strings.Cut(g.text(n), "\n")
	m.file, m.line = g.file, g.files.Position(n.Pos()).Line
	m.name = fmt.Sprintf("%s %s: %s: %s", g.file, g.function, strings.TrimSpace(text), what)
	g.mutants = append(g.mutants, m)
	numbered := func(text string) string { return strings.ReplaceAll(text, "%d", fmt.Sprint(m.number)) }
	g.prefixes = append(g.prefixes, insertion{g.offset(n.Pos()), numbered(before)})
	g.suffixes = append(g.suffixes, insertion{g.offset(n.End()), numbered(after)})
}

func (g *generator) offset(at token.Pos) int { return g.files.Position(at).Offset }

func (g *generator) text(n ast.Node) string {
	return string(g.source[g.offset(n.Pos()):g.offset(n.End())])
}
