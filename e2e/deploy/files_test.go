// SPDX-License-Identifier: Apache-2.0

package deploy

// entrypoint is the program of the image.
const entrypoint = "otelcol-kubeevents"
