// SPDX-License-Identifier: Apache-2.0

// Package resolver finds out what owns a Kubernetes object.
package resolver
