// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhatIsKeptCoversWhatIsWanted(t *testing.T) {
	label := func(keys ...string) (rules []Rule) {
		for _, key := range keys {
			rules = append(rules, Rule{TagName: key, Key: key})
		}
		return rules
	}
	regex := func(r string) []Rule { return []Rule{{KeyRegex: r}} }
	for name, test := range map[string]struct {
		kept, keptAnnotations     []Rule
		wanted, wantedAnnotations []Rule
		want                      bool
	}{
		"nothing is wanted":                   {label("app"), nil, nil, nil, true},
		"nothing is kept":                     {nil, nil, label("app"), nil, false},
		"the same":                            {label("app", "tier"), nil, label("app", "tier"), nil, true},
		"another order":                       {label("app", "tier"), nil, label("tier", "app"), nil, true},
		"one less":                            {label("app", "tier"), nil, label("tier"), nil, true},
		"one more":                            {label("app"), nil, label("app", "tier"), nil, false},
		"an annotation of the same key":       {label("app"), nil, nil, label("app"), false},
		"the same annotation":                 {nil, label("app"), nil, label("app"), true},
		"the same regular expression":         {regex("app/.*"), nil, regex("app/.*"), nil, true},
		"another regular expression":          {regex("app/.*"), nil, regex("app/x.*"), nil, false},
		"a key that it matches":               {regex("app/.*"), nil, label("app/name"), nil, true},
		"a key of which it matches a part":    {regex("app/.*"), nil, label("my-app/name"), nil, false},
		"a key of the regular expression":     {label("app/name"), nil, regex("app/name"), nil, false},
		"the same key with another tag, from": {label("app"), nil, []Rule{{TagName: "x", Key: "app", From: "deployment"}}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			kept, err := New(test.kept, test.keptAnnotations)
			require.NoError(t, err)
			wanted, err := New(test.wanted, test.wantedAnnotations)
			require.NoError(t, err)
			written, err := json.Marshal(kept.Kept())
			require.NoError(t, err)
			var stored Kept
			require.NoError(t, json.Unmarshal(written, &stored))
			assert.Equal(t, test.want, stored.Covers(wanted.Kept()))
		})
	}
}
