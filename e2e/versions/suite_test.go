// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// printed is what go test -json prints, as far as it is read.
const printed = `
{"Action":"start","Package":"e2e"}
{"Action":"output","Package":"e2e","Output":"before all tests\n"}
{"Action":"run","Package":"e2e","Test":"TestTable"}
{"Action":"output","Package":"e2e","Test":"TestTable/good","Output":"good output\n"}
{"Action":"output","Package":"e2e","Test":"TestTable/bad","Output":"bad output\n"}
{"Action":"pass","Package":"e2e","Test":"TestTable/good","Elapsed":0.1}
{"Action":"fail","Package":"e2e","Test":"TestTable/bad","Elapsed":0.1}
{"Action":"fail","Package":"e2e","Test":"TestTable","Elapsed":0.1}
{"Action":"skip","Package":"e2e","Test":"TestSkipped","Elapsed":0}
{"Action":"pass","Package":"e2e","Test":"TestOne","Elapsed":1}
{"Action":"pass","Package":"e2e","Test":"TestParent/only","Elapsed":1}
{"Action":"fail","Package":"e2e","Test":"TestParent","Elapsed":1}
{"Action":"fail","Package":"e2e","Elapsed":2}
`

func TestResultsOfTheSuite(t *testing.T) {
	var output strings.Builder
	found, err := parse(strings.NewReader(printed), &output)
	require.NoError(t, err)
	assert.Equal(t, "before all tests\nbad output\n", output.String(), "only what helps to find a failure")
	assert.Equal(t, []string{"TestParent", "TestTable"}, found.failedAtTop())

	var r result
	r.count(ran{outcomes: found, repeated: []string{"TestOne"}})
	assert.Equal(t, counts{3, 2, 1}, r.Tests)
	assert.Equal(t, []string{"TestParent", "TestTable/bad"}, r.Failed)
	assert.Equal(t, []string{"TestSkipped"}, r.Skipped)
	assert.Equal(t, []string{"TestOne"}, r.Repeated)
	assert.ErrorContains(t, r.failure(), "TestTable/bad")
}

func TestOutputThatIsCutOff(t *testing.T) {
	_, err := parse(strings.NewReader(`{"Action":"pass","Te`), &strings.Builder{})
	assert.ErrorContains(t, err, "read the output of go test -json")
}
