# SPDX-License-Identifier: Apache-2.0
#
# The Collector with the kube_events receiver, for linux/amd64 and linux/arm64:
#
#     docker buildx build --platform linux/amd64,linux/arm64 --tag otelcol-kubeevents .
#
# The compiler runs on the platform of the build machine, and cross-compiles.
FROM --platform=$BUILDPLATFORM golang:1.26.8-trixie@sha256:bdca99a00bc16590cb1a0bb4e698f5fc5d6a64e4d5eef13d9f18a0ee08e5fa65 AS build
WORKDIR /src
COPY . .
ARG TARGETOS
ARG TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/root/.cache/go-build \
    make dist PLATFORMS=$TARGETOS/$TARGETARCH && \
    cp build/dist/otelcol-kubeevents_*_${TARGETOS}_${TARGETARCH} /otelcol-kubeevents

# The image has only certificates, a user and the program: no shell, no libraries.
FROM gcr.io/distroless/static-debian13:nonroot@sha256:f7f8f729987ad0fdf6b05eeeae94b26e6a0f613bdf46feea7fc40f7bd72953e6
COPY --from=build /otelcol-kubeevents /otelcol-kubeevents
USER 65532:65532
ENTRYPOINT ["/otelcol-kubeevents"]
CMD ["--config=/etc/otelcol/config.yaml"]
