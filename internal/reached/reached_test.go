// SPDX-License-Identifier: Apache-2.0

package reached

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The compiler removes the calls of an empty function, and with them their texts.
func TestStateCostsAReleaseNothing(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "ignored.go", nil, 0)
	require.NoError(t, err)
	state, ok := file.Decls[len(file.Decls)-2].(*ast.FuncDecl)
	require.True(t, ok)
	require.Equal(t, "State", state.Name.Name)
	assert.Empty(t, state.Body.List)
}

func TestStatesAreNotedOnce(t *testing.T) {
	State("b")
	State("a")
	State("b")
	if Notes {
		assert.Equal(t, []string{"a", "b"}, Take())
	}
	assert.Empty(t, Take())
}
