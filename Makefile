# SPDX-License-Identifier: Apache-2.0
#
# make builds everything from pinned and verified Go modules: a machine needs only Go, make and git.
# All results are under build/.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
# Two jobs at a time: while one program is downloaded or linked, another compiles. A make that make
# runs shares them.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j2
endif
ifneq ($(filter clean,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif

# Ignore a workspace around the checkout, and do not rebuild only because of a commit. The same flags
# everywhere let go build, go test and the linter share what is compiled: -trimpath and no cgo, as in
# a release. What debuggers need is not in a release; the compiler takes a tenth more time for it.
export GOWORK      := off
export GOFLAGS     := $(shell go env GOFLAGS) -buildvcs=false -trimpath -gcflags=all=-dwarf=false
export CGO_ENABLED := 0

# If the compiler collects garbage less often, it takes an eighth less time. This is for builds only:
# go test would pass it on to the tests.
COMPILING := GOGC=400
BUILD     := $(COMPILING) go build

OTELCOL      := build/otelcol-kubeevents
COMPARISON   := build/comparison/otelcol
MEASURED     := build/measured/otelcol
TRACED       := build/traced/otelcol
OCB          := build/tools/builder
IMAGER       := build/tools/image
MDATAGEN     := build/tools/mdatagen
LINTER       := build/tools/golangci-lint
ACTIONLINT   := build/tools/actionlint
VULNCHECK    := build/tools/govulncheck
HELM         := build/tools/helm
HELM_DOCS    := build/tools/helm-docs
COSIGN       := build/tools/cosign
DEMO         := build/demo
SIMULATION   := build/simulation.test
# $(call programs,DIRECTORY) is a control plane without a real node.
programs      = $(addprefix $(1)/,$(if $(filter %-kine,$(1)),kine,etcd) kube-apiserver kube-controller-manager kube-scheduler kwok)
CONTROLPLANE := $(call programs,build/controlplane)
# The programs of a real node, which only Linux can run.
ifeq ($(shell go env GOOS),linux)
NODE_BINARIES := $(addprefix build/controlplane/,containerd containerd-shim-runc-v2 ctr kubelet kube-proxy node workload)
# The image of this machine, which the tests run on a real node.
NODE_IMAGE    := build/image/otelcol-kubeevents-linux-$(shell go env GOHOSTARCH).tar
endif
BACKENDS     := $(addprefix build/backends/,loki prometheus promtool)

# The control planes of older Kubernetes minors, the oldest first. tools/pin-kubernetes pins one.
# That of the newest one with kine instead of etcd has the name kine.
OLDER  := $(patsubst tools/kubernetes-%/go.mod,%,$(sort $(wildcard tools/kubernetes-*/go.mod)))
OLDEST := $(firstword $(OLDER))
older  = $(call programs,build/controlplane-$(1))

VERSION := $(shell cat VERSION)

# The program of a release, for a platform such as linux/amd64.
release = build/dist/otelcol-kubeevents_$(VERSION)_$(subst /,_,$(1))$(if $(filter windows/%,$(1)),.exe)

# The modules with Go code that is not generated. make tests and lints each on its own.
MODULES := $(patsubst %/go.mod,%,$(wildcard $(addsuffix /go.mod,. controlplane distribution e2e tools)))

# The sources of the Collector and of the demo.
SOURCES      := $(shell find . \( -path ./build -o -path ./controlplane -o -path ./deploy -o -path ./e2e -o -path ./tools \) -prune -o -name '*.go' ! -name '*_test.go' -print)
DEMO_SOURCES := $(shell find controlplane -type f ! -name '*_test.go' ! -name 'go.*')

# The race detector needs cgo, and cgo a C compiler. It crashes if timers of a synctest bubble run on
# two processors at once (golang/go#78156), so each test program has one. What it finds does not
# depend on that.
ifneq ($(shell command -v $$(go env CC)),)
RACE := CGO_ENABLED=1 go test -vet=off -race -cpu 1
else
RACE := echo "no C compiler found: testing without the race detector"; go test -vet=off
endif
# The linter runs vet, which go test would also run on all dependencies.
TEST := go test -vet=off

.PHONY: help
help: ## Print this list
	@echo "Targets:"
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1@\2/p' Makefile | awk -F@ '{ printf "%-24s%s\n", $$1, $$2 }'

.PHONY: build
build: $(OTELCOL) ## Build the Collector with the kube_events receiver: build/otelcol-kubeevents

.PHONY: controlplane
controlplane: $(CONTROLPLANE) $(NODE_BINARIES) ## Build etcd, Kubernetes, kwok and containerd for the demo and the tests: build/controlplane

.PHONY: backends
backends: $(BACKENDS) ## Build Loki, Prometheus and promtool for the tests: build/backends

.PHONY: run
# The addresses of the Collector: the page of events, the metric, and its own metrics.
run: export PAGE_ENDPOINT ?= 127.0.0.1:8090
run: export PROMETHEUS_ENDPOINT ?= 127.0.0.1:9464
run: export OTELCOL_METRICS_PORT ?= 8888
run: $(OTELCOL) $(DEMO) $(if $(KUBECONFIG),,$(CONTROLPLANE) $(if $(filter real,$(NODE)),$(NODE_BINARIES))) ## Show the events of the cluster in KUBECONFIG (read only), or of a demo on an embedded control plane; NODE=real runs containers (Linux, root)
	@exec $(DEMO) -kubeconfig "$$KUBECONFIG" $(if $(filter real,$(NODE)),-node real)

# The packages of e2e that need only the Collector and the control plane. make test runs these;
# make test-all runs the others.
RECEIVER_SUITES := . ./elector ./faults ./internal/... ./replay ./simulation ./versions

# A suite is a target. Two run at a time, those first that mostly wait: e2e. One that fails stops no
# other. What a suite prints comes when it ends.
run_suites = +@$(MAKE) -k -Oline $(addprefix suite-,$(1))
# $(call e2e,DIRECTORY) tests packages of e2e with the control plane in DIRECTORY. The tests mostly wait,
# so more packages run at a time than there are processors.
e2e = cd e2e && KUBEBUILDER_ASSETS="$(CURDIR)/$(1)" $(TEST) -count=1 -p 3

# The race detector makes the simulation ten times slower, and compiles all clients of Kubernetes
# once more for it. So the simulation runs without it here. make test-all looks for data races in
# random environments; what breaks a promise there by chance, make test finds exactly. Two packages
# have tests that are smaller with it, so they also run without it. The test programs of e2e are
# clients of a Collector that has no race detector.
.PHONY: test
test: $(OTELCOL) $(CONTROLPLANE) $(SIMULATION) ## Test the receiver: unit tests, golden outputs, the simulation, and against a real control plane
	$(call run_suites,e2e packages full-size simulation)

.PHONY: suite-e2e suite-packages suite-full-size suite-simulation
suite-e2e:
	@$(call e2e,build/controlplane) $(RECEIVER_SUITES)
suite-packages:
	@$(RACE) $$(go list ./... | grep -v /test/)
suite-full-size:
	@$(TEST) ./internal/ledger ./resolver
suite-simulation:
	@($(SIMULATE) -corpus -seeds 500) && $(TEST) $$(go list ./test/... | grep -v '/test/simulation$$')

# The root package of e2e also runs with the oldest Kubernetes version.
OTHER_MODULES := $(filter-out . e2e,$(MODULES))

.PHONY: test-all
test-all: $(OTELCOL) $(COMPARISON) $(CONTROLPLANE) $(NODE_BINARIES) $(BACKENDS) $(HELM) $(NODE_IMAGE) $(SIMULATION) $(call older,$(OLDEST)) ## Test what make test leaves out: backends, chart, page, image, real node, older Kubernetes, examples
	$(call run_suites,all-e2e race-simulation more-simulation small-limits allocations $(OTHER_MODULES) kubernetes-$(OLDEST))

.PHONY: suite-all-e2e suite-race-simulation suite-more-simulation suite-small-limits suite-allocations suite-kubernetes-$(OLDEST)
suite-all-e2e:
	@$(call e2e,build/controlplane) $$(go list ./... | grep -vxF "$$(go list $(RECEIVER_SUITES))")
suite-race-simulation:
	@$(RACE) ./test/apiserver
	@$(RACE) -timeout 30m -run TestRandomEnvironments ./test/simulation -args -races -seeds 100
suite-more-simulation:
	@$(SIMULATE) -test.run TestRandomEnvironments -first 501 -seeds 750
suite-small-limits:
	@go run ./test/simulation/mutants -small-limits -seeds 300
suite-allocations:
	@$(ALLOCATIONS)
suite-kubernetes-$(OLDEST):
	@$(call e2e,build/controlplane-$(OLDEST)) .

# The tests of the image look at built programs, of which Go's cache of results knows nothing.
.PHONY: $(addprefix suite-,$(OTHER_MODULES))
$(addprefix suite-,$(OTHER_MODULES)): suite-%:
	@cd $* && export KUBEBUILDER_ASSETS="$(CURDIR)/build/controlplane" && $(if $(filter tools,$*),$(TEST) -count=1,$(RACE)) ./...

# Packages that only tests use do not count, nor does generated code.
.PHONY: cover
cover: ## Measure how much of the receiver's code its unit tests reach
	@mkdir -p build && $(TEST) -coverprofile=build/cover.out \
		-coverpkg=$$(go list ./... | grep -v -e /test/ -e metadata | paste -sd, -) \
		$$(go list ./... | grep -v /test/) >/dev/null && go tool cover -func=build/cover.out | tail -1

.PHONY: faults
faults: $(OTELCOL) $(CONTROLPLANE) $(call older,kine) $(NODE_BINARIES) $(HELM) $(NODE_IMAGE) ## Cause faults, count lost and repeated records, and write test/RESULTS.md
	@mkdir -p docs
	@cd e2e && KUBEBUILDER_ASSETS="$(CURDIR)/build/controlplane" FAULTS_REPORT="$(CURDIR)/test/RESULTS.md" \
		go test -count=1 -timeout 60m -parallel 6 -run TestFaults -v ./faults
	@cd e2e && KUBEBUILDER_ASSETS="$(CURDIR)/build/controlplane-kine" FAULTS_REPORT="$(CURDIR)/test/RESULTS.md" \
		go test -count=1 -timeout 60m -parallel 6 -run TestFaults -v ./faults
	@$(call on-node,CLUSTER_REPORT="$(CURDIR)/test/RESULTS.md") -timeout 20m -run TestCluster

.PHONY: soak
soak: $(CONTROLPLANE) $(NODE_BINARIES) $(HELM) $(NODE_IMAGE) ## Cause faults on a real node for SOAK=1h, check counts, memory and goroutines, and write test/RESULTS.md
	@$(call on-node,SOAK="$(or $(SOAK),1h)" CLUSTER_REPORT="$(CURDIR)/test/RESULTS.md") -timeout 0 -run TestSoak

# $(call on-node,VARIABLES) runs tests of the image on a real node.
on-node = cd e2e && KUBEBUILDER_ASSETS="$(CURDIR)/build/controlplane" $(1) go test -count=1 -v ./cluster

# For some versions: make test-versions VERSIONS="1.32 newest kine". This prints the page, and does not
# write it: all of it is from one commit.
VERSIONS ?= $(OLDER) newest kine

.PHONY: test-versions
test-versions: $(OTELCOL) $(CONTROLPLANE) $(foreach minor,$(filter-out newest,$(VERSIONS)),$(call older,$(minor))) ## Run the tests of e2e against each Kubernetes version, and write docs/compatibility.md
	@cd e2e && go run ./versions $(if $(filter file,$(origin VERSIONS)),-page ../docs/compatibility.md) $(patsubst %-newest,%,$(addprefix ../build/controlplane-,$(VERSIONS)))

.PHONY: record-producers
record-producers: $(OTELCOL) $(CONTROLPLANE) $(NODE_BINARIES) ## Record events of real kubelets, schedulers and controllers into testdata/producers/kubernetes (Linux, root)
	@cd e2e && KUBEBUILDER_ASSETS="$(CURDIR)/build/controlplane" go test -count=1 -timeout 60m -parallel 20 -v ./producers -args -record

# Without the race detector, which makes allocations of its own: with it, these tests are skipped.
ALLOCATIONS := $(TEST) -count=1 -v -run Allocations ./internal/logrecord ./resolver

# All tests of the simulation, random environments among them. The build notes rare states: see internal/reached.
SIMULATE := cd test/simulation && ../../$(SIMULATION) -test.timeout 0

# With a runtime that lets runs replay exactly, made from the toolchain's own files.
.PHONY: $(SIMULATION)
$(SIMULATION):
	@go run ./test/simulation/runtimeoverlay build/_runtime
	@GOROOT="$(CURDIR)/build/_runtime/goroot" $(COMPILING) build/_runtime/goroot/bin/go test -c -vet=off -tags reached \
		-overlay build/_runtime/overlay.json -o $@ ./test/simulation

.PHONY: simulate
simulate: $(SIMULATION) ## Run the receiver in SEEDS=10000 simulated environments, or replay SEED=n and print what happens
	@$(SIMULATE) -test.run TestRandomEnvironments \
		$(if $(SEED),-seed $(SEED),-table -seeds $(or $(SEEDS),10000) -first $(or $(FIRST),1) -digests $(CURDIR)/build/digests.txt -rare $(CURDIR)/build/rare-seeds.txt)

.PHONY: mutants
mutants: ## Put deliberate faults into the receiver, check that the simulation or a test finds each, and write test/RESULTS.md
	@go run ./test/simulation/mutants $(or $(MUTANTS_FLAGS),-write test/RESULTS.md)

.PHONY: generated-mutants
generated-mutants: ## Put faults into the receiver's core that a program makes, list those that nothing finds, and write test/RESULTS.md
	@go run ./test/simulation/mutants -generated 60 -seeds 100 $(or $(MUTANTS_FLAGS),-write test/RESULTS.md)

.PHONY: comparison
comparison: $(COMPARISON) ## Build the Collector with contrib's k8s_events for the benchmarks: build/comparison/otelcol

.PHONY: bench
bench: ## Measure each stage of the receiver, and owner lookups; for benchstat
	@go test -run '^$$' -bench . -count $(or $(COUNT),1) . ./internal/... ./resolver

# Without SCENARIOS, it measures everything on one clean commit and writes test/PERFORMANCE.md. With
# SCENARIOS, it prints the results of these scenarios; with BENCH_FLAGS=-write, it also replaces
# their parts of the page. BENCH_FLAGS are flags of e2e/bench (BENCH_FLAGS=-h prints them).
# The scenario ha measures the distribution, and the others the Collectors of e2e/bench.
BENCHED := $(if $(filter-out ha,$(or $(SCENARIOS),all)),$(MEASURED) $(TRACED) $(COMPARISON)) $(if $(filter ha,$(or $(SCENARIOS),ha)),$(OTELCOL))

.PHONY: bench-e2e
bench-e2e: $(BENCHED) build/controlplane/etcd build/controlplane/kube-apiserver ## Compare the whole Collector with other receivers, and write test/PERFORMANCE.md
	@cd e2e && go run ./bench $(BENCH_FLAGS) $(SCENARIOS)

.PHONY: lint
lint: $(LINTER) $(ACTIONLINT) ## Check style, common mistakes, workflows, that go.mod files are tidy, and that nobody has changed the modules of the image
	@$(ACTIONLINT) .github/workflows/*.yaml
	@cd $(SHIPPED) && go mod verify
	@failed=; for module in $(MODULES); do \
		echo "linting module $$module"; \
		(cd $$module && tidy=0 && { go mod tidy -diff || tidy=1; } && \
			$(COMPILING) $(CURDIR)/$(LINTER) run --config $(CURDIR)/.golangci.yml ./... && exit $$tidy) || failed="$$failed $$module"; \
	done; [ -z "$$failed" ] || { echo "the linter reports problems in:$$failed"; exit 1; }

# The module whose program is in the image.
SHIPPED := distribution/otelcol

.PHONY: vulncheck
vulncheck: $(VULNCHECK) ## Look for known vulnerabilities in what the receiver and the distribution call; needs the Go vulnerability database
	@for module in . $(SHIPPED); do echo "looking for known vulnerabilities in module $$module"; \
		(cd $$module && $(CURDIR)/$(VULNCHECK) ./...) || exit 1; done

# $(call render,NAME,NAMESPACE) renders the plain manifest NAME from the chart.
render = { echo "\# Rendered from deploy/chart with deploy/manifests/values/$(1).yaml. To change it, run make generate." && \
	$(CURDIR)/$(HELM) template kube-events deploy/chart --namespace $(2) --skip-tests --values deploy/manifests/values/$(1).yaml $(3); \
	} > deploy/manifests/$(1).yaml
RENDER_MANIFESTS := $(call render,default,kube-events) && $(call render,ha,kube-events) && $(call render,single,kube-events) && \
	$(call render,namespaced,team-a) && $(call render,trial,kube-events) && \
	$(call render,integrations,kube-events,--show-only templates/integrations.yaml) && \
	$(call render,prometheusrule,kube-events,--show-only templates/prometheusrule.yaml) && \
	$(CURDIR)/$(HELM_DOCS) --chart-search-root deploy/chart --log-level warning

.PHONY: generate
generate: $(MDATAGEN) $(OCB) manifests ## Generate documentation.md and internal/metadata from metadata.yaml, the dashboards, deploy/manifests, and distribution/otelcol
	PATH="$(CURDIR)/build/tools:$$PATH" go generate ./...
	cd distribution && PATH="$(CURDIR)/build/tools:$$PATH" go generate ./...
	$(GENERATE_OTELCOL)
	cd tools && go generate ./...

# ocb ignores the versions in the go.mod that it replaces.
GENERATE_OTELCOL := $(CURDIR)/$(OCB) --config distribution/builder.yaml --skip-compilation

.PHONY: manifests
manifests: $(HELM) $(HELM_DOCS) ## Render deploy/manifests from the chart, and write deploy/chart/README.md from its values
	@$(RENDER_MANIFESTS)

# Generate in a copy, so that the check never changes the working tree.
.PHONY: check-generated
check-generated: $(MDATAGEN) $(OCB) $(HELM) $(HELM_DOCS) ## Fail if generated files are stale
	@rm -rf build/regenerated && mkdir -p build/regenerated
	@git ls-files --cached --others --exclude-standard -- . ':!controlplane' ':!e2e' | while read -r file; do \
		if [ -e "$$file" ]; then mkdir -p "build/regenerated/$$(dirname "$$file")" && cp "$$file" "build/regenerated/$$file"; fi; \
	done
	@cd build/regenerated && PATH="$(CURDIR)/build/tools:$$PATH" go generate ./...
	@cd build/regenerated/distribution && PATH="$(CURDIR)/build/tools:$$PATH" go generate ./...
	@cd build/regenerated/tools && go generate ./...
	@cd build/regenerated && $(RENDER_MANIFESTS)
	@cd build/regenerated && $(GENERATE_OTELCOL)
	@cd build/regenerated && find . -type f | while read -r file; do \
		diff -u "$(CURDIR)/$$file" "$$file" || { echo "$$file is stale: run make generate"; exit 1; }; \
	done
	@echo "generated files are up to date"

.PHONY: clean
clean: ## Remove all results of builds
	rm -rf build

# The Collector for other systems. For one of them: make dist PLATFORMS=linux/arm64
PLATFORMS ?= linux/amd64 linux/arm64 darwin/arm64 windows/amd64
RELEASES   = $(foreach p,$(PLATFORMS),$(call release,$(p)))

# The programs, and the software bill of materials of each.
DIST_FILES = $(notdir $(RELEASES) $(addsuffix .cdx.json,$(RELEASES)))

.PHONY: dist
dist: check-version $(IMAGER) $(RELEASES) ## Build the Collector for all platforms, with bills of materials and checksums: build/dist
	@$(IMAGER) sbom -created "$(CREATED)" $(RELEASES)
	@cd build/dist && { command -v sha256sum >/dev/null && sha256sum $(DIST_FILES) || shasum -a 256 $(DIST_FILES); } > SHA256SUMS
	@cat build/dist/SHA256SUMS

# The image for both platforms. For one of them: make image IMAGE_PLATFORMS=linux/arm64
IMAGE           ?= ghcr.io/kubeevents/otelcol-kubeevents:$(VERSION)
IMAGE_PLATFORMS ?= linux/amd64 linux/arm64
IMAGE_OUTPUT    ?= build/image
IMAGE_PROGRAMS   = $(foreach p,$(IMAGE_PLATFORMS),$(call release,$(p)))

# The commit is a label of the image, and its time is the time of the image.
REVISION = $(shell git describe --always --exclude='*' --abbrev=40 --dirty 2>/dev/null)
CREATED  = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null),0)

.PHONY: image
image: check-version $(IMAGER) $(IMAGE_PROGRAMS) ## Build the container image, as archives for docker, kind and containerd: build/image
	@$(IMAGER) build -name "$(IMAGE)" -revision "$(REVISION)" -created "$(CREATED)" \
		-modules "$$(go env GOMODCACHE)" -output "$(IMAGE_OUTPUT)" $(IMAGE_PROGRAMS)

build/image/otelcol-kubeevents-linux-%.tar: $(IMAGER) build/dist/otelcol-kubeevents_$(VERSION)_linux_%
	@$(MAKE) image IMAGE_PLATFORMS=linux/$*

.PHONY: push
push: check-image-name image ## Push the image of all platforms to a registry: make push IMAGE=REGISTRY/NAME:TAG
	@$(IMAGER) push "$(IMAGE_OUTPUT)/otelcol-kubeevents.tar" "$(IMAGE)" > "$(IMAGE_OUTPUT)/pushed" && cat "$(IMAGE_OUTPUT)/pushed"

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
push-chart: $(HELM) ## Push the chart to a registry: make push-chart CHARTS=oci://REGISTRY/NAME
	@[ "$(origin CHARTS)" != file ] || { echo "the registry has no name: make push-chart CHARTS=oci://REGISTRY/NAME"; exit 1; }
	@rm -rf "$(CHART_OUTPUT)" && $(HELM) package deploy/chart --destination "$(CHART_OUTPUT)" >/dev/null
	@$(HELM) push "$(CHART_OUTPUT)/kube-events-$(VERSION).tgz" "$(CHARTS)" $(HELM_FLAGS) > "$(CHART_OUTPUT)/helm.log" 2>&1 || \
		{ cat "$(CHART_OUTPUT)/helm.log"; exit 1; }
	@awk '/^Pushed: / { name = $$2 } /^Digest: / { print "pushed " name "@" $$2 }' "$(CHART_OUTPUT)/helm.log" > "$(CHART_OUTPUT)/pushed"
	@cat "$(CHART_OUTPUT)/pushed"

# Releases: .github/RELEASING.md. The tag that a maintainer pushes:
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
sign: $(COSIGN) ## Sign what push and push-chart have pushed, and the checksums of dist; with KEY=FILE, without an identity
	@$(COSIGN) sign $(COSIGN_FLAGS) --recursive "$(call pushed,$(IMAGE_OUTPUT))"
	@$(COSIGN) sign $(COSIGN_FLAGS) "$(call pushed,$(CHART_OUTPUT))"
	@$(COSIGN) sign-blob $(COSIGN_FLAGS) --new-bundle-format --bundle build/dist/SHA256SUMS.sigstore.json build/dist/SHA256SUMS

# The modules in directories of this repository that distribution/builder.yaml names. Go finds their
# versions by tags of their own.
NESTED_MODULES := $(sort $(shell sed -n 's|^ *path: \([a-z].*\)|\1|p' distribution/builder.yaml))
REMOTE         ?= origin

.PHONY: tags
tags: check-release ## Push the tags of the distribution's modules to REMOTE=origin, after the tag of the version
	@git push "$(REMOTE)" $(foreach module,$(NESTED_MODULES),"v$(VERSION)^{commit}:refs/tags/$(module)/v$(VERSION)")

.PHONY: rehearse-release
rehearse-release: $(COSIGN) $(HELM) $(OCB) $(CONTROLPLANE) $(NODE_BINARIES) ## Release a clone of this commit to a registry in memory, and check what is there
	@cd tools && REHEARSE_RELEASE=1 go test -count=1 -timeout 2h -v -run TestRehearsal ./image

# make generate writes the sources of the program (see distribution/builder.yaml).
build/dist/otelcol-kubeevents_$(VERSION)_%: distribution/otelcol/go.mod distribution/otelcol/go.sum $(wildcard $(addprefix distribution/pageexporter/*.,css js tmpl)) $(SOURCES)
	@echo "building the Collector for $* (the first time takes a few minutes) ..."
	@cd distribution/otelcol && CGO_ENABLED=0 GOOS=$(word 1,$(subst _, ,$*)) GOARCH=$(basename $(word 2,$(subst _, ,$*))) \
		$(BUILD) -ldflags "-s -w" -o ../../$@ .

# On this machine runs exactly what is released and what is in the image.
HOST_RELEASE := $(call release,$(shell go env GOHOSTOS)/$(shell go env GOHOSTARCH))

$(OTELCOL): $(HOST_RELEASE)
	@install $< $@

# These have packages of the API server. Two builds at a time would compile each of them twice. While
# one then waits for a large package or links, another compiles.
ifneq ($(if $(KUBECONFIG),,$(filter run,$(MAKECMDGOALS)))$(filter test test-all faults test-versions,$(MAKECMDGOALS)),)
$(HOST_RELEASE) $(DEMO) $(HELM): | build/controlplane/kube-apiserver
endif

$(IMAGER): tools/go.mod tools/go.sum $(filter-out %_test.go,$(wildcard tools/image/*.go))
	@echo "building the program that makes images ..."
	@cd tools && $(BUILD) -o ../$@ ./image

$(MEASURED) $(TRACED): build/%/otelcol: $(OCB) e2e/bench/%/builder.yaml go.mod go.sum $(SOURCES)
	@echo "building a Collector for the benchmarks ..."
	@mkdir -p $(@D)
	@$(COMPILING) $(OCB) --config e2e/bench/$*/builder.yaml
	@mv $(@D)/ocb/otelcol $@

$(COMPARISON): $(OCB) e2e/bench/comparison/builder.yaml
	@echo "building the Collector with k8s_events (the first time takes a few minutes) ..."
	@mkdir -p $(@D)
	@$(COMPILING) $(OCB) --config e2e/bench/comparison/builder.yaml
	@mv $(@D)/ocb/otelcol $@

$(DEMO): controlplane/go.mod controlplane/go.sum $(DEMO_SOURCES)
	@echo "building the demo ..."
	@cd controlplane && $(BUILD) -o ../$@ ./cmd/demo

# The programs that a module of tools/ pins. The last part of a package's path is its program's name.
$(OCB) $(MDATAGEN): tools/collector/go.mod tools/collector/go.sum
$(HELM) $(HELM_DOCS) $(COSIGN) $(ACTIONLINT): tools/release/go.mod tools/release/go.sum
$(LINTER) $(VULNCHECK): tools/lint/go.mod tools/lint/go.sum
$(OCB) $(MDATAGEN) $(HELM) $(HELM_DOCS) $(COSIGN) $(ACTIONLINT) $(LINTER) $(VULNCHECK):
	@echo "building $(@F) (the first time may take a few minutes) ..."
	@cd $(<D) && $(BUILD) -ldflags "-s -w" -o ../../$@ $$(go list tool | grep "/$(@F)$$")

# Kubernetes' own build sets the version of its binaries. Without these flags, the version is
# v0.0.0.
BINARIES           := tools/kubernetes/go.mod tools/kubernetes/go.sum
kubernetes_version  = $(shell awk '$$1 == "k8s.io/kubernetes" { print substr($$2, 2) }' tools/$(1)/go.mod)
KUBERNETES_VERSION := $(call kubernetes_version,kubernetes)
VERSION_PACKAGE    := k8s.io/component-base/version
version_flags       = -X $(VERSION_PACKAGE).gitVersion=v$(1) \
	-X $(VERSION_PACKAGE).gitMajor=$(word 1,$(subst ., ,$(1))) \
	-X $(VERSION_PACKAGE).gitMinor=$(word 2,$(subst ., ,$(1)))

# $(call kubernetes,MODULE,VERSION,PROGRAMS) builds programs of one module in one go, because they
# share most packages. A pattern rule with several targets runs once for all of them; here, % stands
# for a part of "controlplane".
kubernetes = cd tools/$(1) && $(BUILD) -ldflags "-s -w $(call version_flags,$(2))" -o ../../$(@D)/ $(3)
CMD       := k8s.io/kubernetes/cmd

build/%plane/kube-apiserver build/%plane/kwok: $(BINARIES)
	@echo "building Kubernetes $(KUBERNETES_VERSION), etcd and kwok (the first time takes some minutes) ..."
	@mkdir -p $(@D)
	@$(call kubernetes,kubernetes,$(KUBERNETES_VERSION),$(CMD)/kube-apiserver sigs.k8s.io/kwok/cmd/kwok)

build/%plane/etcd build/%plane/kube-controller-manager build/%plane/kube-scheduler: $(BINARIES) | build/%plane/kube-apiserver
	@$(call kubernetes,kubernetes,$(KUBERNETES_VERSION),$(addprefix $(CMD)/kube-,controller-manager scheduler))
	@cd tools/kubernetes && $(BUILD) -ldflags "-s -w" -o ../../$(@D)/etcd go.etcd.io/etcd/server/v3

build/%plane/kubelet build/%plane/kube-proxy: $(BINARIES) | $(CONTROLPLANE)
	@echo "building kubelet and kube-proxy $(KUBERNETES_VERSION) ..."
	@$(call kubernetes,kubernetes,$(KUBERNETES_VERSION),$(CMD)/kubelet $(CMD)/kube-proxy)

# $(call build_older,MINOR,VERSION) has the rules for the control plane of an older minor. Its etcd
# and kwok are those of the newest one.
define build_older
build/%-$(1)/kube-apiserver build/%-$(1)/kube-controller-manager build/%-$(1)/kube-scheduler: tools/kubernetes-$(1)/go.mod tools/kubernetes-$(1)/go.sum | $(CONTROLPLANE)
	@echo "building Kubernetes $(2) (the first time takes some minutes) ..."
	@mkdir -p $$(@D)
	@$$(call kubernetes,kubernetes-$(1),$(2),$(addprefix $(CMD)/kube-,apiserver controller-manager scheduler))

build/controlplane-$(1)/etcd build/controlplane-$(1)/kwok: build/controlplane-$(1)/%: build/controlplane/%
	@mkdir -p $$(@D) && ln -f $$< $$@
endef
$(foreach minor,$(OLDER),$(eval $(call build_older,$(minor),$(call kubernetes_version,kubernetes-$(minor)))))

# Without cgo, kine has a driver for SQLite that is pure Go.
build/controlplane-kine/kine: tools/cluster/go.mod tools/cluster/go.sum
	@echo "building kine (the first time takes a few minutes) ..."
	@cd tools/cluster && $(BUILD) -ldflags "-s -w" -o ../../$@ github.com/k3s-io/kine

$(filter-out %/kine,$(call older,kine)): build/controlplane-kine/%: build/controlplane/%
	@mkdir -p $(@D) && ln -f $< $@

# The version of containerd is also a flag of its build.
CONTAINERD_VERSION := $(shell awk '$$1 == "github.com/containerd/containerd/v2" { print $$2 }' tools/cluster/go.mod)

build/%plane/containerd build/%plane/containerd-shim-runc-v2 build/%plane/ctr: tools/cluster/go.mod tools/cluster/go.sum
	@echo "building containerd $(CONTAINERD_VERSION) ..."
	@mkdir -p $(@D)
	@cd tools/cluster && $(BUILD) -ldflags "-s -w -X github.com/containerd/containerd/v2/version.Version=$(CONTAINERD_VERSION)" \
		-o ../../$(@D)/ $(addprefix github.com/containerd/containerd/v2/cmd/,containerd containerd-shim-runc-v2 ctr)

build/%plane/node build/%plane/workload: controlplane/go.mod controlplane/go.sum $(DEMO_SOURCES)
	@echo "building the programs of a real node ..."
	@mkdir -p $(@D)
	@cd controlplane && $(BUILD) -ldflags "-s -w" -o ../$(@D)/ ./cmd/node ./cmd/workload

build/backends/loki: tools/backends/go.mod tools/backends/go.sum
	@echo "building Loki (the first time takes a few minutes) ..."
	@cd tools/backends && $(BUILD) -ldflags "-s -w" -o ../../$@ github.com/grafana/loki/v3/cmd/loki

# Without service discovery for clouds, which is most of the code of Prometheus.
build/%ends/prometheus build/%ends/promtool: tools/backends/go.mod tools/backends/go.sum
	@echo "building Prometheus ..."
	@mkdir -p $(@D)
	@cd tools/backends && $(BUILD) -tags remove_all_sd -ldflags "-s -w" -o ../../$(@D)/ $(addprefix github.com/prometheus/prometheus/cmd/,prometheus promtool)
