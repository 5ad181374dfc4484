# SPDX-License-Identifier: Apache-2.0
#
# What .github/workflows/release.yaml publishes, and a rehearsal of it: see .github/RELEASING.md.

# The Collector for other systems. For one of them: make dist PLATFORMS=linux/arm64
PLATFORMS ?= linux/amd64 linux/arm64 darwin/arm64 windows/amd64
RELEASES   = $(foreach p,$(PLATFORMS),$(call release,$(p)))
# The programs, and the software bill of materials of each.
DIST_FILES = $(notdir $(RELEASES) $(addsuffix .cdx.json,$(RELEASES)))

# The commit is a label of the image, and its time is the time of the image.
REVISION = $(shell git describe --always --exclude='*' --abbrev=40 --dirty 2>/dev/null)
CREATED  = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null),0)

.PHONY: dist
dist: check-version build/tools/image $(RELEASES) ## Build the Collector for all platforms, with bills of materials and checksums: build/dist
	@build/tools/image sbom -created "$(CREATED)" $(RELEASES)
	@cd build/dist && { command -v sha256sum >/dev/null && sha256sum $(DIST_FILES) || shasum -a 256 $(DIST_FILES); } > SHA256SUMS
	@cat build/dist/SHA256SUMS

# The image for both platforms. For one of them: make image IMAGE_PLATFORMS=linux/arm64
IMAGE           ?= ghcr.io/kubeevents/otelcol-kubeevents:$(VERSION)
IMAGE_PLATFORMS ?= linux/amd64 linux/arm64
IMAGE_OUTPUT    ?= build/image
IMAGE_PROGRAMS   = $(foreach p,$(IMAGE_PLATFORMS),$(call release,$(p)))

.PHONY: image
image: check-version build/tools/image $(IMAGE_PROGRAMS) ## Build the container image, as archives for docker, kind and containerd: build/image
	@build/tools/image build -name "$(IMAGE)" -revision "$(REVISION)" -created "$(CREATED)" \
		-modules "$$(go env GOMODCACHE)" -output "$(IMAGE_OUTPUT)" $(IMAGE_PROGRAMS)

build/image/otelcol-kubeevents-linux-%.tar: build/tools/image build/dist/otelcol-kubeevents_$(VERSION)_linux_%
	@$(MAKE) image IMAGE_PLATFORMS=linux/$*

build/tools/image: tools/go.mod tools/go.sum $(filter-out %_test.go,$(wildcard tools/image/*.go))
	@cd tools && $(BUILD) "the program that makes images" ../$@ ./image

.PHONY: push
push: check-image-name image ## Push the image of all platforms to a registry: make push IMAGE=REGISTRY/NAME:TAG
	@build/tools/image push "$(IMAGE_OUTPUT)/oci" "$(IMAGE)" > "$(IMAGE_OUTPUT)/pushed" && cat "$(IMAGE_OUTPUT)/pushed"

.PHONY: check-image-name
check-image-name:
	@[ "$(origin IMAGE)" != file ] || { echo "the image has no name: make push IMAGE=REGISTRY/NAME:TAG"; exit 1; }

# The manifest of the builder cannot read the version from another file.
.PHONY: check-version
check-version:
	@grep -qx "  version: $(VERSION)" distribution/builder.yaml || \
		{ echo "the version in distribution/builder.yaml is not $(VERSION): set it to the version in VERSION"; exit 1; }

# The registry of the chart. A registry without TLS needs HELM_FLAGS=--plain-http.
CHARTS       ?= oci://ghcr.io/kubeevents/charts
CHART_OUTPUT ?= build/chart

.PHONY: push-chart
push-chart: $(HELM) ## Push the chart to a registry, with the digest of the image that push has pushed: make push-chart CHARTS=oci://REGISTRY/NAME
	@[ "$(origin CHARTS)" != file ] || { echo "the registry has no name: make push-chart CHARTS=oci://REGISTRY/NAME"; exit 1; }
	@[ -f "$(IMAGE_OUTPUT)/pushed" ] || { echo "the chart names the digest of the image, which is not pushed: make push IMAGE=REGISTRY/NAME:TAG"; exit 1; }
	@rm -rf "$(CHART_OUTPUT)" && mkdir -p "$(CHART_OUTPUT)" && cp -R deploy/chart "$(CHART_OUTPUT)/kube-events"
	@echo "  kubeevents.github.io/image: $(call pushed,$(IMAGE_OUTPUT))" >> "$(CHART_OUTPUT)/kube-events/Chart.yaml"
	@$(HELM) package "$(CHART_OUTPUT)/kube-events" --destination "$(CHART_OUTPUT)" >/dev/null
	@$(HELM) push "$(CHART_OUTPUT)/kube-events-$(VERSION).tgz" "$(CHARTS)" $(HELM_FLAGS) > "$(CHART_OUTPUT)/helm.log" 2>&1 || \
		{ cat "$(CHART_OUTPUT)/helm.log"; exit 1; }
	@awk '/^Pushed: / { name = $$2 } /^Digest: / { print "pushed " name "@" $$2 }' "$(CHART_OUTPUT)/helm.log" > "$(CHART_OUTPUT)/pushed"
	@cat "$(CHART_OUTPUT)/pushed"

# The tag that a maintainer pushes.
TAG ?= v$(VERSION)

.PHONY: check-release
check-release: check-version ## Check that this commit has the tag of its version, and that CHANGELOG.md has its date
	@[ "$(TAG)" = "v$(VERSION)" ] || { echo "the tag $(TAG) is not v$(VERSION): set the version in VERSION, or push the other tag"; exit 1; }
	@[ "$$(git rev-parse --quiet --verify "refs/tags/$(TAG)^{commit}")" = "$$(git rev-parse HEAD)" ] || \
		{ echo "this commit does not have the tag $(TAG): git tag $(TAG)"; exit 1; }
	@grep -Eqx '## \[$(VERSION)\] - [0-9]{4}-[0-9]{2}-[0-9]{2}' CHANGELOG.md || \
		{ echo "CHANGELOG.md has no date for $(VERSION): write \"## [$(VERSION)] - YEAR-MONTH-DAY\""; exit 1; }

# In the notes, links lead to the files of the tag.
REPOSITORY := https://github.com/kubeevents/kubeeventsreceiver

.PHONY: release-notes
release-notes: ## Write what CHANGELOG.md says about this version: build/release-notes.md
	@mkdir -p build
	@awk '/^## / { inside = index($$0, "## [$(VERSION)]") == 1; next } inside' CHANGELOG.md | \
		sed -E 's|\]\(([^):]+)\)|](REPOSITORY/blob/v$(VERSION)/\1)|g; s|REPOSITORY|$(REPOSITORY)|g' > build/release-notes.md
	@grep -q . build/release-notes.md || { echo "CHANGELOG.md has no section about $(VERSION)"; exit 1; }
	@cat build/release-notes.md

# cosign asks for an identity, and logs the signature in public. With a key, it does neither. It signs
# the image of each platform, too.
COSIGN_FLAGS = --yes $(if $(KEY),--key "$(KEY)" --tlog-upload=false)
pushed       = $$(sed 's/^pushed //' "$(1)/pushed")

.PHONY: sign
sign: build/tools/cosign ## Sign what push and push-chart have pushed, and the checksums of dist; with KEY=FILE, without an identity
	@$< sign $(COSIGN_FLAGS) --recursive "$(call pushed,$(IMAGE_OUTPUT))"
	@$< sign $(COSIGN_FLAGS) "$(call pushed,$(CHART_OUTPUT))"
	@$< sign-blob $(COSIGN_FLAGS) --new-bundle-format --bundle build/dist/SHA256SUMS.sigstore.json build/dist/SHA256SUMS

# The resolver, and the modules in directories of this repository that distribution/builder.yaml names. Go finds their
# versions by tags of their own.
NESTED_MODULES := $(sort resolver $(shell sed -n 's|^ *path: \([a-z].*\)|\1|p' distribution/builder.yaml))
REMOTE         ?= origin

.PHONY: tags
tags: check-release ## Push the tags of the nested modules to REMOTE=origin, after the tag of the version
	@git push "$(REMOTE)" $(foreach module,$(NESTED_MODULES),"v$(VERSION)^{commit}:refs/tags/$(module)/v$(VERSION)")

.PHONY: rehearse-release
rehearse-release: build/tools/cosign $(HELM) build/tools/builder $(CONTROLPLANE) $(NODE_PROGRAMS) ## Release a clone of this commit to a registry in memory, and check what is there
	@cd tools && REHEARSE_RELEASE=1 go test -count=1 -timeout 2h -v -run TestRehearsal ./image
