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

	areas := map[string]string{"TestTable": "a", "TestSkipped": "a", "TestOne": "b", "TestParent": "b"}
	var r result
	require.NoError(t, r.count(ran{outcomes: found, repeated: []string{"TestOne"}}, areas))
	assert.Equal(t, map[string]counts{"a": {1, 1, 1}, "b": {2, 1, 0}}, r.Areas)
	assert.Equal(t, counts{3, 2, 1}, r.All())
	assert.Equal(t, []string{"TestParent", "TestTable/bad"}, r.Failed)
	assert.Equal(t, []string{"TestSkipped"}, r.Skipped)
	assert.Equal(t, []string{"TestOne"}, r.Repeated)
	assert.ErrorContains(t, r.failure(), "TestTable/bad")

	areas["TestThatIsNew"] = "b"
	assert.ErrorContains(t, r.count(ran{outcomes: found}, areas), "TestThatIsNew did not run")
}

func TestOutputThatIsCutOff(t *testing.T) {
	_, err := parse(strings.NewReader(`{"Action":"pass","Te`), &strings.Builder{})
	assert.ErrorContains(t, err, "read the output of go test -json")
}

func TestEveryTestHasAnArea(t *testing.T) {
	found, err := areasOfTests("..")
	require.NoError(t, err)
	tests := map[string]int{}
	for _, area := range found {
		tests[area]++
	}
	for _, area := range areas {
		assert.Positive(t, tests[area.title], area.title)
	}
	assert.Equal(t, areaOf("watch_test.go"), found["TestFilters"])
}
