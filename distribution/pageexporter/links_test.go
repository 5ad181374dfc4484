// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAValueIsALinkThatAddsOrRemovesIt(t *testing.T) {
	f := filterFrom(map[string][]string{"namespace": {"demo"}, "text": {"Image"}, "from": {"2026-03-01T11:30:00Z"}, "until": {"2026-03-01T11:31:00Z"}})
	const rest = "from=2026-03-01T11%3A30%3A00Z&namespace=demo&"
	assert.Equal(t, link{"?" + rest + "reason=BackOff&text=image&until=2026-03-01T11%3A31%3A00Z", false}, f.Link("reason", "BackOff"))
	assert.Equal(t, link{"?from=2026-03-01T11%3A30%3A00Z&text=image&until=2026-03-01T11%3A31%3A00Z", true}, f.Link("namespace", "demo"))
	assert.Equal(t, link{".", false}, filterFrom(nil).Link("reason", ""), "an event without a reason")
	assert.Equal(t, "?namespace=demo&text=image", f.Unzoomed())
	assert.Equal(t, []chosenValue{
		{"Message", "image", "?" + rest + "until=2026-03-01T11%3A31%3A00Z"},
		{"Namespace", "demo", "?from=2026-03-01T11%3A30%3A00Z&text=image&until=2026-03-01T11%3A31%3A00Z"},
	}, f.Values())
	assert.Empty(t, filterFrom(map[string][]string{"minutes": {"10"}, "warnings": {"only"}}).Values(), "they have controls of their own")
}
