// SPDX-License-Identifier: Apache-2.0

// Package kinds knows which kinds of objects the API server serves, and where. It reads the two
// aggregated discovery documents (/api and /apis), which every supported server has, when the first
// kind is needed. It reads them again only if a reference names a kind that they do not have, or if
// a request shows that they are out of date. With their ETags, a document that has not changed
// costs one short answer.
//
// A reference may name its kind in several ways: with a version that is no longer served, with the
// group that it has left, or without either. [Catalogue.Find] returns the kinds that it may mean.
package kinds
