// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"encoding/base64"
	"encoding/json"
	"path"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhereAStreamResumesAfterADeletion(t *testing.T) {
	for version, want := range map[string]string{"7": "6", "2": "1", "1": "1", "0": "0", "opaque": "opaque", "": ""} {
		assert.Equal(t, want, beforeDeletion(version), version)
	}
}

// The API server (DecodeContinue in k8s.io/apiserver/pkg/storage/continue.go) rejects keys that are not clean.
func TestTheNextPageBeginsAfterTheLastEventOfAPage(t *testing.T) {
	for last, want := range map[string]string{
		"shop/a":                               "shop/a\x00",
		"shop/\U0010FFFF":                      "shop/\U0010FFFF\x00",
		"shop/a\xff":                           "shop/b",
		"shop/a\uFFFDb":                        "shop/b",
		"shop/\xff":                            "shop0",
		"shop/a\U0010FFFF\U0010FFFF\uFFFDb":    "shop/b",
		"shop/\U0010FFFF\uFFFDa":               "shop0",
		"shop/\U0010FFFE\xff":                  "shop/\U0010FFFF",
		"shop/\uD7FF\xff":                      "shop/\uE000",
		"shop/\uFFFC\xff":                      "shop/\uFFFD",
		"shop/-\xff":                           "shop/.\x00",
		"shop/.-\xff":                          "shop/..\x00",
		"shop/.\xff":                           "shop/0",
		"shop/a-\xff":                          "shop/a.",
		"shop/a.\xff":                          "shop/a0",
		"a\xff":                                "b", // of a namespace
		"-\xff":                                ".\x00",
		".\xff":                                "0",
		"\xff":                                 "",
		"\U0010FFFF\xff":                       "",
		"\U0010FFFF\U0010FFFF\U0010FFFF\uFFFD": "",
	} {
		content, err := json.Marshal(map[string]any{"v": "meta.k8s.io/v1", "rv": 7, "start": last + "\x00"})
		require.NoError(t, err)
		next, err := base64.RawURLEncoding.DecodeString(nextPage(base64.RawURLEncoding.EncodeToString(content)))
		require.NoError(t, err)
		if want == "" {
			assert.Empty(t, next, "%q", last)
			continue
		}
		assert.Greater(t, want, last)
		assert.Equal(t, "/"+want, path.Clean("/"+want))
		wanted, err := json.Marshal(map[string]any{"v": "meta.k8s.io/v1", "rv": 7, "start": want})
		require.NoError(t, err)
		assert.JSONEq(t, string(wanted), string(next), "%q", last)
	}
}
