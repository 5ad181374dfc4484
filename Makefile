# SPDX-License-Identifier: Apache-2.0
#
# make builds everything from pinned and verified Go modules: a machine needs only Go, make and git.
# All results are under build/.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Two jobs at a time: while one program is downloaded or linked, another compiles.
MAKEFLAGS += --no-print-directory -j2
ifneq ($(filter clean,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif

# Ignore a workspace around the checkout, and do not rebuild only because of a commit.
export GOWORK  := off
export GOFLAGS := $(shell go env GOFLAGS) -buildvcs=false

OTELCOL      := build/otelcol-kubeevents
COMPARISON   := build/comparison/otelcol
NEWEST       := build/newest/otelcol
MEASURED     := build/measured/otelcol
OCB          := build/tools/builder
IMAGER       := build/tools/image
MDATAGEN     := build/tools/mdatagen
LINTER       := build/tools/golangci-lint
VULNCHECK    := build/tools/govulncheck
HELM         := build/tools/helm
DEMO         := build/demo
CONTROLPLANE := $(addprefix build/controlplane/,etcd kube-apiserver kube-controller-manager kube-scheduler kwok)
# The programs of a real node, which only Linux can run.
ifeq ($(shell go env GOOS),linux)
NODE_BINARIES := $(addprefix build/controlplane/,containerd containerd-shim-runc-v2 ctr kubelet kube-proxy node workload)
# The image of this machine, which the tests run on a real node.
NODE_IMAGE    := build/image/otelcol-kubeevents-linux-$(shell go env GOHOSTARCH).tar
endif
BACKENDS     := $(addprefix build/backends/,loki prometheus promtool)

# The control planes of older Kubernetes minors, the oldest first. tools/pin-kubernetes pins one.
OLDER  := $(patsubst tools/kubernetes-%/go.mod,%,$(sort $(wildcard tools/kubernetes-*/go.mod)))
OLDEST := $(firstword $(OLDER))
older  = $(addprefix build/controlplane-$(1)/,etcd kube-apiserver kube-controller-manager kube-scheduler kwok)

VERSION := $(shell cat VERSION)

# The program of a release, for a platform such as linux/amd64.
release = build/dist/otelcol-kubeevents_$(VERSION)_$(subst /,_,$(1))$(if $(filter windows/%,$(1)),.exe)

# The modules with Go code. make tests and lints each on its own.
MODULES := $(patsubst %/go.mod,%,$(wildcard $(addsuffix /go.mod,. controlplane deploy/dashboards \
	distribution/image distribution/linesexporter distribution/pageexporter e2e)))

# The sources of the Collector and of the demo.
SOURCES      := $(shell find . \( -path ./build -o -path ./controlplane -o -path ./deploy -o -path ./distribution/image -o -path ./e2e \) -prune -o -name '*.go' ! -name '*_test.go' -print)
DEMO_SOURCES := $(shell find controlplane -type f ! -name '*_test.go' ! -name 'go.*')

# The race detector needs cgo, and cgo a C compiler.
ifeq ($(shell go env CGO_ENABLED),1)
RACE := -race
else
RACE_NOTICE := @echo "no C compiler found: testing without the race detector"
endif

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

# The tests of e2e mostly wait, so more of its packages run at a time than there are processors. Its
# root package also runs with the oldest Kubernetes version.
.PHONY: test
test: $(OTELCOL) $(COMPARISON) $(CONTROLPLANE) $(NODE_BINARIES) $(BACKENDS) $(HELM) $(NODE_IMAGE) $(call older,$(OLDEST)) ## Run all tests: unit, golden, fuzz seeds, and those against a real control plane
	$(RACE_NOTICE)
	@failed=; for module in $(MODULES); do \
		echo "testing module $$module"; \
		(cd $$module && KUBEBUILDER_ASSETS="$(CURDIR)/build/controlplane" go test $(RACE) $$(case $$module in e2e) echo -count=1 -p 3;; distribution/image) echo -count=1;; esac) ./...) || failed="$$failed $$module"; \
	done; \
	echo "testing with Kubernetes $(OLDEST)"; \
	(cd e2e && KUBEBUILDER_ASSETS="$(CURDIR)/build/controlplane-$(OLDEST)" go test $(RACE) -count=1 .) || failed="$$failed kubernetes-$(OLDEST)"; \
	$(ALLOCATIONS) || failed="$$failed allocations"; \
	$(SIMULATE) -seeds 2000 || failed="$$failed simulation"; \
	[ -z "$$failed" ] || { echo "tests failed in:$$failed"; exit 1; }

.PHONY: faults
faults: $(OTELCOL) $(CONTROLPLANE) $(NODE_BINARIES) $(HELM) $(NODE_IMAGE) ## Cause faults, count lost and repeated records, and write docs/reliability.md
	@mkdir -p docs
	@cd e2e && KUBEBUILDER_ASSETS="$(CURDIR)/build/controlplane" FAULTS_REPORT="$(CURDIR)/docs/reliability.md" \
		go test -count=1 -timeout 60m -parallel 6 -run TestFaults -v ./faults
	@$(call on-node,CLUSTER_REPORT="$(CURDIR)/docs/reliability.md") -timeout 20m -run TestCluster

.PHONY: soak
soak: $(CONTROLPLANE) $(NODE_BINARIES) $(HELM) $(NODE_IMAGE) ## Cause faults on a real node for SOAK=1h, check counts, memory and goroutines, and write docs/reliability.md
	@$(call on-node,SOAK="$(or $(SOAK),1h)" CLUSTER_REPORT="$(CURDIR)/docs/reliability.md") -timeout 0 -run TestSoak

# $(call on-node,VARIABLES) runs tests of the image on a real node.
on-node = cd e2e && KUBEBUILDER_ASSETS="$(CURDIR)/build/controlplane" $(1) go test -count=1 -v ./cluster

# For some versions: make test-versions VERSIONS="1.32 newest"
VERSIONS ?= $(OLDER) newest

.PHONY: test-versions
test-versions: $(OTELCOL) $(CONTROLPLANE) $(foreach minor,$(filter-out newest,$(VERSIONS)),$(call older,$(minor))) ## Run the tests of e2e against each Kubernetes version, and write docs/compatibility.md
	@cd e2e && go run ./versions $(patsubst %-newest,%,$(addprefix ../build/controlplane-,$(VERSIONS)))

.PHONY: record-producers
record-producers: $(OTELCOL) $(CONTROLPLANE) $(NODE_BINARIES) ## Record events of real kubelets, schedulers and controllers into testdata/producers/kubernetes (Linux, root)
	@cd e2e && KUBEBUILDER_ASSETS="$(CURDIR)/build/controlplane" go test -count=1 -timeout 60m -parallel 20 -v ./producers -args -record

# Without the race detector, which makes allocations of its own: with it, these tests are skipped.
ALLOCATIONS := go test -count=1 -v -run Allocations ./internal/logrecord ./internal/memory ./internal/watch ./resolver

# Without the race detector, which makes the simulation ten times slower. go test
# ./internal/simulation uses it.
SIMULATE := go test -count=1 -timeout 0 -run TestRandomEnvironments ./internal/simulation -args

.PHONY: simulate
simulate: ## Run the receiver in SEEDS=10000 simulated environments, or replay SEED=n and print what happens
	@go test -c -o build/simulation.test ./internal/simulation
	@cd internal/simulation && ../../build/simulation.test -test.run TestRandomEnvironments -test.timeout 0 \
		$(if $(SEED),-seed $(SEED),-table -seeds $(or $(SEEDS),10000) -first $(or $(FIRST),1))

.PHONY: mutants
mutants: ## Put deliberate faults into the receiver, check that the simulation finds each, and write docs/reliability.md
	@go run ./internal/simulation/mutants -write docs/reliability.md $(MUTANTS_FLAGS)

.PHONY: comparison
comparison: $(COMPARISON) ## Build the Collector with contrib's k8s_events for the benchmarks: build/comparison/otelcol

.PHONY: bench
bench: ## Measure each stage of the receiver, and owner lookups; for benchstat
	@go test -run '^$$' -bench . -count $(or $(COUNT),1) . ./internal/... ./resolver

# Without SCENARIOS, it measures everything on one clean commit and writes docs/performance.md. With
# SCENARIOS, it prints the results of these scenarios; with BENCH_FLAGS=-write, it also replaces
# their parts of the page. BENCH_FLAGS are flags of e2e/bench (BENCH_FLAGS=-h prints them).
.PHONY: bench-e2e
bench-e2e: $(MEASURED) $(COMPARISON) $(NEWEST) build/controlplane/etcd build/controlplane/kube-apiserver ## Compare the whole Collector with other receivers, and write docs/performance.md
	@cd e2e && go run ./bench $(BENCH_FLAGS) $(SCENARIOS)

# With the flags of the Collector's build, the linter finds compiled packages in the build cache.
.PHONY: lint
lint: export CGO_ENABLED := 0
lint: export GOFLAGS += -trimpath -tags=timetzdata
lint: $(LINTER) vulncheck ## Check style, common mistakes, known vulnerabilities, and that go.mod files are tidy
	@failed=; for module in $(MODULES); do \
		echo "linting module $$module"; \
		(cd $$module && tidy=0 && { go mod tidy -diff || tidy=1; } && \
			$(CURDIR)/$(LINTER) run --config $(CURDIR)/.golangci.yml ./... && exit $$tidy) || failed="$$failed $$module"; \
	done; [ -z "$$failed" ] || { echo "the linter reports problems in:$$failed"; exit 1; }

# Exit code 3 means that govulncheck found vulnerabilities. Without access to the database, the
# check prints a message, but does not fail.
.PHONY: vulncheck
vulncheck: $(VULNCHECK) ## Look for known vulnerabilities in what the receiver calls; needs the Go vulnerability database
	@$(VULNCHECK) ./... || { code=$$?; \
		[ $$code -ne 3 ] || exit 1; \
		echo "known vulnerabilities were NOT checked: cannot reach the database"; }

# $(call render,NAME,NAMESPACE) renders the plain manifest NAME from the chart.
render = { echo "\# Rendered from deploy/chart with deploy/manifests/values/$(1).yaml. To change it, run make generate." && \
	$(CURDIR)/$(HELM) template kube-events deploy/chart --namespace $(2) --values deploy/manifests/values/$(1).yaml $(3); \
	} > deploy/manifests/$(1).yaml
RENDER_MANIFESTS := $(call render,default,kube-events) && $(call render,ha,kube-events) && \
	$(call render,namespaced,team-a) && $(call render,trial,kube-events) && \
	$(call render,integrations,kube-events,--show-only templates/integrations.yaml) && \
	$(call render,prometheusrule,kube-events,--show-only templates/prometheusrule.yaml)

.PHONY: generate
generate: $(MDATAGEN) manifests ## Generate documentation.md and internal/metadata from metadata.yaml, the dashboards, and deploy/manifests
	PATH="$(CURDIR)/build/tools:$$PATH" go generate ./...
	cd deploy/dashboards && go generate ./...

.PHONY: manifests
manifests: $(HELM) ## Render deploy/manifests from the chart
	@$(RENDER_MANIFESTS)

# Generate in a copy, so that the check never changes the working tree.
.PHONY: check-generated
check-generated: $(MDATAGEN) $(HELM) ## Fail if generated files are stale
	@rm -rf build/regenerated && mkdir -p build/regenerated
	@git ls-files --cached --others --exclude-standard -- . ':!controlplane' ':!distribution' ':!e2e' ':!tools' | while read -r file; do \
		if [ -e "$$file" ]; then mkdir -p "build/regenerated/$$(dirname "$$file")" && cp "$$file" "build/regenerated/$$file"; fi; \
	done
	@cd build/regenerated && PATH="$(CURDIR)/build/tools:$$PATH" go generate ./...
	@cd build/regenerated/deploy/dashboards && go generate ./...
	@cd build/regenerated && $(RENDER_MANIFESTS)
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

.PHONY: dist
dist: check-version $(RELEASES) ## Build the Collector for all platforms, with checksums: build/dist
	@cd build/dist && { command -v sha256sum >/dev/null && sha256sum $(notdir $(RELEASES)) || shasum -a 256 $(notdir $(RELEASES)); } > SHA256SUMS
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
	@$(IMAGER) push "$(IMAGE_OUTPUT)/otelcol-kubeevents.tar" "$(IMAGE)"

.PHONY: check-image-name
check-image-name:
	@[ "$(origin IMAGE)" != file ] || { echo "the image has no name: make push IMAGE=REGISTRY/NAME:TAG"; exit 1; }

# The manifest of the builder cannot read the version from another file.
.PHONY: check-version
check-version:
	@grep -qx "  version: $(VERSION)" distribution/builder.yaml || \
		{ echo "the version in distribution/builder.yaml is not $(VERSION): set it to the version in VERSION"; exit 1; }

# ocb writes the Collector's sources to build/ocb (see distribution/builder.yaml).
build/ocb/main.go: $(OCB) distribution/builder.yaml go.mod go.sum distribution/linesexporter/go.mod distribution/pageexporter/go.mod
	@mkdir -p $(@D)
	@$(OCB) --config distribution/builder.yaml --skip-compilation

# The program contains the time zones, because images have none.
build/dist/otelcol-kubeevents_$(VERSION)_%: build/ocb/main.go $(wildcard distribution/pageexporter/page.*) $(SOURCES)
	@echo "building the Collector for $* (the first time takes a few minutes) ..."
	@cd build/ocb && CGO_ENABLED=0 GOOS=$(word 1,$(subst _, ,$*)) GOARCH=$(basename $(word 2,$(subst _, ,$*))) \
		go build -trimpath -tags timetzdata -ldflags "-s -w" -o ../../$@ .

# On this machine runs exactly what is released and what is in the image.
$(OTELCOL): $(call release,$(shell go env GOHOSTOS)/$(shell go env GOHOSTARCH))
	@install $< $@

$(IMAGER): distribution/image/go.mod distribution/image/go.sum $(filter-out %_test.go,$(wildcard distribution/image/*.go))
	@echo "building the program that makes images ..."
	@cd distribution/image && CGO_ENABLED=0 go build -trimpath -o ../../$@ .

$(MEASURED): $(OCB) e2e/bench/measured/builder.yaml go.mod go.sum $(SOURCES)
	@echo "building the Collector for the benchmarks ..."
	@mkdir -p $(@D)
	@$(OCB) --config e2e/bench/measured/builder.yaml
	@mv build/measured/ocb/otelcol $@

$(NEWEST): $(OCB) e2e/bench/newest/builder.yaml
	@echo "building the Collector with the newest k8s_events (the first time takes a few minutes) ..."
	@mkdir -p $(@D)
	@$(OCB) --config e2e/bench/newest/builder.yaml
	@mv $(@D)/ocb/otelcol $@

# This uses the Collector builder of the same version, because a builder builds only its own
# version.
$(COMPARISON): e2e/bench/comparison/builder.yaml e2e/bench/comparison/go.mod e2e/bench/comparison/go.sum
	@echo "building the Collector with k8s_events (the first time takes a few minutes) ..."
	@cd $(<D) && CGO_ENABLED=0 go build -trimpath -o ../../../$(@D)/builder go.opentelemetry.io/collector/cmd/builder
	@$(@D)/builder --config $<
	@mv $(@D)/ocb/otelcol $@

$(DEMO): controlplane/go.mod controlplane/go.sum $(DEMO_SOURCES)
	@echo "building the demo ..."
	@cd controlplane && CGO_ENABLED=0 go build -trimpath -o ../$@ ./cmd/demo

$(OCB) $(MDATAGEN): build/tools/%: tools/collector/go.mod tools/collector/go.sum
	@echo "building $* ..."
	@cd tools/collector && CGO_ENABLED=0 go build -trimpath -o ../../$@ go.opentelemetry.io/collector/cmd/$*

$(HELM): tools/helm/go.mod tools/helm/go.sum
	@echo "building helm (the first time takes a few minutes) ..."
	@cd tools/helm && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o ../../$@ helm.sh/helm/v4/cmd/helm

$(LINTER): tools/lint/go.mod tools/lint/go.sum
	@echo "building golangci-lint (the first time takes a few minutes) ..."
	@cd tools/lint && CGO_ENABLED=0 go build -trimpath -o ../../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(VULNCHECK): tools/vulncheck/go.mod tools/vulncheck/go.sum
	@echo "building govulncheck ..."
	@cd tools/vulncheck && CGO_ENABLED=0 go build -trimpath -o ../../$@ golang.org/x/vuln/cmd/govulncheck

# Kubernetes' own build sets the version of its binaries. Without these flags, the version is
# v0.0.0.
BINARIES           := tools/kubernetes/go.mod tools/kubernetes/go.sum
kubernetes_version  = $(shell awk '$$1 == "k8s.io/kubernetes" { print substr($$2, 2) }' tools/$(1)/go.mod)
KUBERNETES_VERSION := $(call kubernetes_version,kubernetes)
VERSION_PACKAGE    := k8s.io/component-base/version
version_flags       = -X $(VERSION_PACKAGE).gitVersion=v$(1) \
	-X $(VERSION_PACKAGE).gitMajor=$(word 1,$(subst ., ,$(1))) \
	-X $(VERSION_PACKAGE).gitMinor=$(word 2,$(subst ., ,$(1)))
VERSION_FLAGS      := $(call version_flags,$(KUBERNETES_VERSION))

# Build them one after the other, because they share most packages.
build/controlplane/kube-controller-manager: | build/controlplane/kube-apiserver
build/controlplane/kube-scheduler: | build/controlplane/kube-controller-manager
build/controlplane/kube-proxy: | build/controlplane/kube-scheduler
build/controlplane/etcd build/controlplane/kwok: | build/controlplane/kube-scheduler
build/controlplane/kubelet: | build/controlplane/kube-proxy
build/backends/promtool: | build/backends/prometheus

build/controlplane/kube-%: $(BINARIES)
	@echo "building kube-$* $(KUBERNETES_VERSION) (the first time takes a few minutes) ..."
	@cd tools/kubernetes && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w $(VERSION_FLAGS)" -o ../../$@ k8s.io/kubernetes/cmd/kube-$*

build/controlplane/kubelet: $(BINARIES)
	@echo "building kubelet $(KUBERNETES_VERSION) (the first time takes a few minutes) ..."
	@cd tools/kubernetes && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w $(VERSION_FLAGS)" -o ../../$@ k8s.io/kubernetes/cmd/kubelet

build/controlplane/etcd: $(BINARIES)
	@echo "building etcd ..."
	@cd tools/kubernetes && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o ../../$@ go.etcd.io/etcd/server/v3

build/controlplane/kwok: $(BINARIES)
	@echo "building kwok ..."
	@cd tools/kubernetes && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o ../../$@ sigs.k8s.io/kwok/cmd/kwok

# $(call build_older,MINOR,VERSION) has the rules for the control plane of an older minor. Its etcd
# and kwok are those of the newest one.
define build_older
build/controlplane-$(1)/kube-controller-manager: | build/controlplane-$(1)/kube-apiserver
build/controlplane-$(1)/kube-scheduler: | build/controlplane-$(1)/kube-controller-manager
build/controlplane-$(1)/kube-%: tools/kubernetes-$(1)/go.mod tools/kubernetes-$(1)/go.sum | build/controlplane/kube-scheduler
	@echo "building kube-$$* $(2) (the first time takes a few minutes) ..."
	@cd $$(<D) && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w $(call version_flags,$(2))" -o ../../$$@ k8s.io/kubernetes/cmd/kube-$$*

build/controlplane-$(1)/etcd build/controlplane-$(1)/kwok: build/controlplane-$(1)/%: build/controlplane/%
	@mkdir -p $$(@D) && ln -f $$< $$@
endef
$(foreach minor,$(OLDER),$(eval $(call build_older,$(minor),$(call kubernetes_version,kubernetes-$(minor)))))

# The version of containerd is also a flag of its build.
CONTAINERD         := build/controlplane/containerd build/controlplane/containerd-shim-runc-v2 build/controlplane/ctr
CONTAINERD_VERSION := $(shell awk '$$1 == "github.com/containerd/containerd/v2" { print $$2 }' tools/containerd/go.mod)

build/controlplane/containerd-shim-runc-v2 build/controlplane/ctr: | build/controlplane/containerd

$(CONTAINERD): build/controlplane/%: tools/containerd/go.mod tools/containerd/go.sum
	@echo "building $* $(CONTAINERD_VERSION) ..."
	@cd tools/containerd && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X github.com/containerd/containerd/v2/version.Version=$(CONTAINERD_VERSION)" \
		-o ../../$@ github.com/containerd/containerd/v2/cmd/$*

build/controlplane/node build/controlplane/workload: build/controlplane/%: controlplane/go.mod controlplane/go.sum $(DEMO_SOURCES)
	@echo "building the program $* of a real node ..."
	@cd controlplane && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o ../$@ ./cmd/$*

build/backends/loki: tools/loki/go.mod tools/loki/go.sum
	@echo "building Loki (the first time takes a few minutes) ..."
	@cd tools/loki && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o ../../$@ github.com/grafana/loki/v3/cmd/loki

# Without service discovery for clouds, which is most of the code of Prometheus.
build/backends/prometheus build/backends/promtool: build/backends/%: tools/prometheus/go.mod tools/prometheus/go.sum
	@echo "building $* ..."
	@cd tools/prometheus && CGO_ENABLED=0 go build -tags remove_all_sd -trimpath -ldflags "-s -w" -o ../../$@ github.com/prometheus/prometheus/cmd/$*
