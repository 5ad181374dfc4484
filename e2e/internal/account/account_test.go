// SPDX-License-Identifier: Apache-2.0

package account_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/account"
)

func TestJudge(t *testing.T) {
	// record has the occurrences of the event "a" up to a count. Its log.record.uid is the count.
	record := func(count, occurrences int64) account.Record {
		return account.Record{Event: "a", UID: string(rune('0' + count)), Count: count, Occurrences: occurrences}
	}
	rejected := record(2, 1)
	rejected.Rejected = true
	regrouped := record(2, 2)
	regrouped.UID = "another"
	for name, test := range map[string]struct {
		records []account.Record
		want    account.Outcome
	}{
		"all delivered":                    {[]account.Record{record(1, 1), record(2, 1)}, account.Outcome{Made: 2, Delivered: 2}},
		"one record for two occurrences":   {[]account.Record{record(2, 2)}, account.Outcome{Made: 2, Delivered: 2}},
		"nothing came":                     {nil, account.Outcome{Made: 2, Lost: 2}},
		"the first is lost":                {[]account.Record{record(2, 1)}, account.Outcome{Made: 2, Delivered: 1, Lost: 1}},
		"one is rejected":                  {[]account.Record{record(1, 1), rejected}, account.Outcome{Made: 2, Delivered: 1, Rejected: 1}},
		"one is repeated":                  {[]account.Record{record(1, 1), record(2, 1), record(1, 1)}, account.Outcome{Made: 2, Delivered: 2, Repeated: 1}},
		"two come again, under a new uid":  {[]account.Record{record(1, 1), record(2, 1), regrouped}, account.Outcome{Made: 2, Delivered: 2, Surplus: 2}},
		"of an event that nobody made":     {[]account.Record{record(1, 1), record(2, 1), {Event: "b", UID: "b", Count: 1, Occurrences: 1}}, account.Outcome{Made: 2, Delivered: 2, Surplus: 1}},
		"lost, though the other is double": {[]account.Record{record(1, 1), record(1, 1)}, account.Outcome{Made: 2, Delivered: 1, Lost: 1, Repeated: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, account.Judge(map[string]int64{"a": 2}, test.records))
		})
	}
}
