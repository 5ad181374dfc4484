// SPDX-License-Identifier: Apache-2.0

package position

import (
	"maps"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnEventIsDeliveredUpToTheVersionOfItsStream(t *testing.T) {
	for name, tt := range map[string]struct {
		streams   map[string]uint64
		namespace string
		version   uint64
		want      bool
	}{
		"no position":                {nil, "a", 1, false},
		"no position and no version": {nil, "a", 0, false},
		"below":                      {map[string]uint64{"a": 7}, "a", 6, true},
		"equal":                      {map[string]uint64{"a": 7}, "a", 7, true},
		"above":                      {map[string]uint64{"a": 7}, "a", 8, false},
		"another namespace":          {map[string]uint64{"b": 7}, "a", 6, false},
		"cluster-wide":               {map[string]uint64{"": 7}, "a", 7, true},
		"above cluster-wide":         {map[string]uint64{"": 7}, "a", 8, false},
		"cluster-wide is higher":     {map[string]uint64{"": 9, "a": 7}, "a", 8, true},
		"namespace is higher":        {map[string]uint64{"": 7, "a": 9}, "a", 8, true},
		"no namespace":               {map[string]uint64{"": 7}, "", 7, true},
		"no namespace, streams of namespaces alone": {map[string]uint64{"a": 7}, "", 7, false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, at(tt.streams).Reached(tt.namespace, tt.version))
		})
	}
}

func TestAStreamStartsAtTheHigherOfItsOwnVersionAndTheClusterWideOne(t *testing.T) {
	for name, tt := range map[string]struct {
		streams map[string]uint64
		stream  string
		want    uint64
	}{
		"its own":                 {map[string]uint64{"a": 7}, "a", 7},
		"cluster-wide":            {map[string]uint64{"": 8}, "a", 8},
		"its own is higher":       {map[string]uint64{"": 8, "a": 9}, "a", 9},
		"cluster-wide is higher":  {map[string]uint64{"": 8, "a": 7}, "a", 8},
		"none":                    {map[string]uint64{"b": 8}, "a", 0},
		"cluster-wide has no own": {map[string]uint64{"b": 8}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			version, ok := at(tt.streams).Of(tt.stream)
			assert.Equal(t, tt.want, version)
			assert.Equal(t, tt.want > 0, ok)
		})
	}
}

func TestAMergeKnowsTheCluster(t *testing.T) {
	low, high := map[string]uint64{"a": 1}, map[string]uint64{"a": 2}
	for name, tt := range map[string]struct{ p, other, want Position }{
		"both unknown":  {Position{"", 0, low}, Position{"", 0, high}, Position{"", 0, high}},
		"one known":     {Position{"x", 0, low}, Position{"", 0, high}, Position{"x", 0, high}},
		"other known":   {Position{"", 0, low}, Position{"x", 0, high}, Position{"x", 0, high}},
		"the same":      {Position{"x", 0, low}, Position{"x", 0, high}, Position{"x", 0, high}},
		"another":       {Position{"x", 0, low}, Position{"y", 0, high}, Position{"x", 0, low}},
		"with no other": {Position{"x", 0, low}, Position{}, Position{"x", 0, low}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tt.want, tt.p.Merge(tt.other)) })
	}
}

func TestOfTwoHistoriesTheLaterCounts(t *testing.T) {
	high, low := Position{"x", 1, map[string]uint64{"a": 100, "b": 90}}, Position{"x", 2, map[string]uint64{"a": 50}}
	assert.Equal(t, low, high.Merge(low))
	assert.Equal(t, low, low.Merge(high))
	low.Cluster = "y"
	assert.Equal(t, high, high.Merge(low), "of another cluster")
}

// fellTo reports whether a stream of p is lower in other, or missing there.
func (p Position) fellTo(other Position) bool {
	for stream, version := range p.Streams {
		if p.History == other.History && other.Streams[stream] < version {
			return true
		}
	}
	return p.History > other.History
}

func TestDataThatIsNoPositionCannotBeRead(t *testing.T) {
	for name, tt := range map[string]struct {
		data map[string]string
		want string
	}{
		"no data":         {nil, `the key "streams" is missing`},
		"no streams":      {map[string]string{"cluster": "x"}, `the key "streams" is missing`},
		"empty":           {map[string]string{"streams": ""}, `the key "streams" is not a JSON object of strings`},
		"null":            {map[string]string{"streams": "null"}, `it is null`},
		"no object":       {map[string]string{"streams": `["1"]`}, `the key "streams" is not a JSON object of strings`},
		"numbers":         {map[string]string{"streams": `{"a":1}`}, `the key "streams" is not a JSON object of strings`},
		"more than one":   {map[string]string{"streams": `{"a":"1"}{}`}, `the key "streams" is not a JSON object of strings`},
		"no number":       {map[string]string{"streams": `{"a":"x"}`}, `the key "streams" has "x" for the stream "a"`},
		"zero":            {map[string]string{"streams": `{"a":"0"}`}, `the key "streams" has "0" for the stream "a"`},
		"negative":        {map[string]string{"streams": `{"a":"-1"}`}, `the key "streams" has "-1" for the stream "a"`},
		"null version":    {map[string]string{"streams": `{"a":null}`}, `the key "streams" has "" for the stream "a"`},
		"above 64 bits":   {map[string]string{"streams": `{"a":"18446744073709551616"}`}, `which is not a resource version`},
		"with whitespace": {map[string]string{"streams": `{"a":" 1"}`}, `which is not a resource version`},
		"no history":      {map[string]string{"streams": `{}`, "history": "-1"}, `the key "history" has "-1", which is not a number`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decode(tt.data)
			assert.ErrorContains(t, err, tt.want)
		})
	}
	p, err := decode(map[string]string{"streams": "{}"})
	require.NoError(t, err)
	assert.Equal(t, at(map[string]uint64{}), p)
}

func TestThePositionIsReadable(t *testing.T) {
	data := map[string]string{"other": "kept"}
	require.NoError(t, Position{"the-uid", 0, map[string]uint64{"": 7, "b": 1 << 63, "a": 12}}.encode(data))
	assert.Equal(t, map[string]string{"other": "kept", "cluster": "the-uid", "streams": `{"":"7","a":"12","b":"9223372036854775808"}`}, data)
	require.NoError(t, Position{"the-uid", 3, map[string]uint64{"": 7}}.encode(data))
	assert.Equal(t, map[string]string{"other": "kept", "cluster": "the-uid", "history": "3", "streams": `{"":"7"}`}, data)
}

func FuzzPositions(f *testing.F) {
	f.Add("x", "", "a", uint64(1), uint64(2), uint64(3), uint64(0))
	f.Add("", "a\"b", "ü", uint64(1<<63), uint64(0), uint64(7), uint64(1))
	f.Fuzz(func(t *testing.T, cluster, one, two string, u, v, w, history uint64) {
		if !utf8.ValidString(one) || !utf8.ValidString(two) {
			t.Skip("namespaces are text")
		}
		a := Position{cluster, 0, map[string]uint64{one: u, two: v}}
		b := Position{"", history, map[string]uint64{two: w}}
		c := at(map[string]uint64{"": v, one: w})
		before := maps.Clone(a.Streams)

		merged := a.Merge(b)
		assert.Equal(t, merged, b.Merge(a), "commutative")
		assert.Equal(t, merged.Merge(c), a.Merge(b.Merge(c)), "associative")
		assert.Equal(t, merged, merged.Merge(a), "idempotent")
		assert.False(t, a.fellTo(merged) || b.fellTo(merged), "no version falls")
		assert.Equal(t, before, a.Streams, "the operands stay as they are")
		if history > 0 {
			a.Streams = nil // Those of b count.
		}
		for _, namespace := range []string{"", one, two} {
			for _, version := range []uint64{u, v, w} {
				assert.Equal(t, a.Reached(namespace, version) || b.Reached(namespace, version) ||
					at(map[string]uint64{"": b.Streams[""], namespace: a.Streams[namespace]}).Reached(namespace, version) ||
					at(map[string]uint64{"": a.Streams[""], namespace: b.Streams[namespace]}).Reached(namespace, version),
					merged.Reached(namespace, version), "reached by the merge if by one of the two")
				reached, ok := merged.Of(namespace)
				assert.Equal(t, ok && version <= reached, merged.Reached(namespace, version))
			}
		}

		data := map[string]string{}
		require.NoError(t, merged.encode(data))
		decoded, err := decode(data)
		require.NoError(t, err)
		assert.Equal(t, merged, decoded)
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"":"7","a":"12"}`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, streams string) {
		p, err := decode(map[string]string{"cluster": "x", "streams": streams})
		if err != nil {
			return
		}
		data := map[string]string{}
		require.NoError(t, p.encode(data))
		again, err := decode(data)
		require.NoError(t, err)
		assert.Equal(t, p, again)
	})
}

func TestAStreamWithoutAVersionIsNotEncoded(t *testing.T) {
	data := map[string]string{}
	require.NoError(t, at(map[string]uint64{"a": 0, "b": 7}).encode(data))
	decoded, err := decode(data)
	require.NoError(t, err)
	assert.Equal(t, map[string]uint64{"b": 7}, decoded.Streams)
}

func TestOnlyAHigherVersionIsRaised(t *testing.T) {
	tests := map[string]struct {
		streams, versions, want map[string]uint64
		raised                  bool
	}{
		"higher":       {map[string]uint64{"a": 6}, map[string]uint64{"a": 7}, map[string]uint64{"a": 7}, true},
		"equal":        {map[string]uint64{"a": 7}, map[string]uint64{"a": 7}, map[string]uint64{"a": 7}, false},
		"lower":        {map[string]uint64{"a": 8}, map[string]uint64{"a": 7}, map[string]uint64{"a": 8}, false},
		"a new stream": {map[string]uint64{"a": 8}, map[string]uint64{"b": 7}, map[string]uint64{"a": 8, "b": 7}, true},
		"no version":   {map[string]uint64{}, map[string]uint64{"a": 0}, map[string]uint64{}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.raised, raise(test.streams, test.versions))
			assert.Equal(t, test.want, test.streams)
		})
	}
}

func TestOnlyStreamsOfAnEarlierHistoryStartAfterIt(t *testing.T) {
	earlier := Position{Cluster: "x", History: 1, Streams: map[string]uint64{"a": 7, "b": 9}}
	tests := map[string]struct {
		position Position
		want     map[string]uint64
	}{
		"a later history": {Position{Cluster: "x", History: 2, Streams: map[string]uint64{"a": 3}}, map[string]uint64{"a": 3, "b": 1}},
		"the same":        {Position{Cluster: "x", History: 1, Streams: map[string]uint64{"a": 8}}, map[string]uint64{"a": 8}},
		"another cluster": {Position{Cluster: "y", History: 2, Streams: map[string]uint64{"a": 3}}, map[string]uint64{"a": 3}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.want, test.position.startingAfter(earlier).Streams) })
	}
}
