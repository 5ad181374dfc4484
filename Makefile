# SPDX-License-Identifier: Apache-2.0
#
# make builds everything from pinned and verified Go modules, under build/: a machine needs only Go, make
# and git. This file builds, runs, tests, lints and generates. release.mk publishes a release. measure.mk
# has what takes hours or writes pages of results, and builds what only tests need.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
# Suites of tests run two at a time, in a make of their own. Programs are built one after the other: go
# build uses all processors, and two builds at a time would compile shared packages twice.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j2
.NOTPARALLEL:
export STARTED := $(shell date +%s)
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
# $(BUILD) "NAME" OUTPUT FLAG... PACKAGE... builds programs, and prints how far it is.
BUILD := $(COMPILING) $(CURDIR)/tools/gobuild

VERSION := $(shell cat VERSION)
# The resolver, and its tests, which need the receiver's fake API server.
RESOLVER := resolver resolver/test
# The modules with Go code that is not generated. make tests and lints each on its own.
MODULES := . $(RESOLVER) controlplane $(addprefix distribution/,literalenvprovider pageexporter prometheus incidentsconnector ownersprocessor statusextension) e2e tools
# The module whose program is in the image. make generate writes it: see distribution/builder.yaml.
SHIPPED := distribution/otelcol
# The sources of the Collector, and of the demo.
SOURCES := $(shell find . \( -path ./build -o -path ./controlplane -o -path ./deploy -o -path ./e2e -o -path ./tools \) -prune \
	-o -name '*.go' ! -name '*_test.go' -print) $(wildcard $(addprefix distribution/pageexporter/*.,css js tmpl))
DEMO_SOURCES := $(shell find controlplane -type f ! -name '*_test.go' ! -name 'go.*')

OTELCOL := build/otelcol-kubeevents
DEMO    := build/demo
HELM    := build/tools/helm
# $(call programs,DIRECTORY,STORE) is a control plane without a real node.
programs      = $(addprefix $(1)/,$(2) kube-apiserver kube-controller-manager kube-scheduler kwok)
CONTROLPLANE := $(call programs,build/controlplane,etcd)

# $(call release,PLATFORM) is the Collector for a platform such as linux/amd64.
release = build/dist/otelcol-kubeevents_$(VERSION)_$(subst /,_,$(1))$(if $(filter windows/%,$(1)),.exe)

include measure.mk release.mk

.PHONY: help
help: ## Print this list
	@for file in Makefile release.mk measure.mk; do echo "$$file:"; \
		sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/make \1@\2/p' $$file | awk -F@ '{ printf "  %-24s%s\n", $$1, $$2 }'; done

.PHONY: build
build: $(OTELCOL) ## Build the Collector with the kube_events receiver: build/otelcol-kubeevents

.PHONY: run
# The addresses of the Collector: the page of events, the metric, and its own metrics.
run: export PAGE_ENDPOINT ?= 127.0.0.1:8090
run: export PROMETHEUS_ENDPOINT ?= 127.0.0.1:9464
run: export OTELCOL_METRICS_PORT ?= 8888
# What it builds the first time. tools/gobuild prints the number of each step.
run: export STEPS = $(if $(KUBECONFIG),2,4)
run: $(OTELCOL) $(DEMO) $(if $(KUBECONFIG),,$(CONTROLPLANE)) ## Show the events of the cluster in KUBECONFIG (read only), or of a demo on an embedded control plane
	@exec $(DEMO) -kubeconfig "$$KUBECONFIG"

# The linter runs vet, which go test would also run on all dependencies.
TEST := go test -vet=off
# The race detector needs a C compiler. It crashes if timers of a synctest bubble run on two processors at
# once (golang/go#78156), so each test program has one. What it finds does not depend on that.
ifneq ($(shell command -v $$(go env CC)),)
RACE := CGO_ENABLED=1 $(TEST) -race -cpu 1
else
RACE := echo "no C compiler found: testing without the race detector"; $(TEST)
endif

# A suite is a target. Two run at a time, those first that mostly wait: e2e. One that fails stops no
# other. What a suite prints comes when it ends.
run_suites = +@$(MAKE) -k -Oline $(addprefix suite-,$(1))
# $(call e2e,DIRECTORY) tests packages of e2e with the control plane in DIRECTORY. The tests mostly wait,
# so more packages run at a time than there are processors.
e2e = cd e2e && KUBEBUILDER_ASSETS="$(CURDIR)/$(1)" $(TEST) -count=1 -p 3 -timeout 30m
# The packages of e2e that need only the Collector and the control plane. make test-all runs the others.
RECEIVER_SUITES := ./receiver ./faults ./simulation ./internal/...

.PHONY: test suite-e2e suite-packages suite-no-race suite-simulation
test: $(OTELCOL) $(CONTROLPLANE) $(SIMULATION) ## Test the receiver: unit tests, golden outputs, the simulation, and against a real control plane
	$(call run_suites,e2e packages no-race simulation)
suite-e2e:
	@$(call e2e,build/controlplane) $(RECEIVER_SUITES)
suite-packages:
	@$(RACE) $(RECEIVER_PACKAGES) $(foreach module,$(RESOLVER),&& (cd $(module) && $(RACE) ./...))
# With the race detector, some packages have smaller tests, and none of their allocations.
suite-no-race: cover
# The race detector makes the simulation ten times slower. make test-all runs a part of it with it.
suite-simulation:
	@($(SIMULATE) -corpus -seeds 400) && $(TEST) $$(go list ./test/... | grep -v '/test/simulation$$')

RECEIVER_PACKAGES = $$(go list ./... | grep -v -e /test/ -e /distribution/)
# What tests of one package execute in others counts, too.
COVERAGE := build/coverage.out
COVERED  := github.com/kubeevents/kubeeventsreceiver/resolver/...
.PHONY: cover
cover: ## Test the packages of the receiver, and fail if less than 95 % of their statements are covered
	@mkdir -p build && $(TEST) -coverpkg=.,./internal/...,$(COVERED) -coverprofile=$(COVERAGE) $(RECEIVER_PACKAGES)
	@for module in $(RESOLVER); do \
		(cd $$module && $(TEST) -coverpkg=$(COVERED) -coverprofile=$(CURDIR)/build/coverage-of-module.out ./...) || exit 1; \
		grep -v ^mode: build/coverage-of-module.out >> $(COVERAGE); done
	@go tool cover -func=$(COVERAGE) | awk '/^total:/ { print "coverage: " $$3; exit $$3 + 0 < 95 }' || \
		{ echo "less than 95 % is covered: go tool cover -html=$(COVERAGE) shows what is not"; exit 1; }

OTHER_MODULES := $(filter-out . e2e $(RESOLVER),$(MODULES))
.PHONY: test-all suite-all-e2e suite-distribution suite-race-simulation suite-more-simulation $(addprefix suite-,$(OTHER_MODULES))
test-all: $(OTELCOL) $(COMPARISON) $(CONTROLPLANE) $(NODE_PROGRAMS) $(BACKENDS) $(HELM) $(NODE_IMAGE) $(SIMULATION) ## Test what make test leaves out: backends, chart, page, image, real node, examples
	$(call run_suites,all-e2e race-simulation more-simulation distribution $(OTHER_MODULES))
suite-all-e2e:
	@$(call e2e,build/controlplane) $$(go list ./... | grep -vxF "$$(go list $(RECEIVER_SUITES))")
# What the page and the connector share. Most of it is functions of one goroutine, for which the race detector
# costs minutes and finds nothing. The suites of the page and the connector use all of it with the race detector.
suite-distribution:
	@$(TEST) ./distribution/... && $(RACE) ./distribution/internal/incident ./distribution/internal/instance
suite-race-simulation:
	@$(RACE) -timeout 30m -run TestRandomEnvironments ./test/simulation -args -races -seeds 100
suite-more-simulation:
	@$(SIMULATE) -test.run TestRandomEnvironments -first 401 -seeds 600
# The tests of the image look at built programs, of which Go's cache of results knows nothing.
$(addprefix suite-,$(OTHER_MODULES)): suite-%:
	@cd $* && export KUBEBUILDER_ASSETS="$(CURDIR)/build/controlplane" && $(if $(filter tools,$*),$(TEST) -count=1,$(RACE)) ./...

.PHONY: lint
lint: build/tools/golangci-lint build/tools/actionlint ## Check style, common mistakes, workflows, that go.mod files are tidy, and that nobody has changed the modules of the image
	@build/tools/actionlint .github/workflows/*.yaml
	@cd $(SHIPPED) && go mod verify
	@failed=; for module in $(MODULES); do \
		echo "linting module $$module"; \
		(cd $$module && tidy=0 && { go mod tidy -diff || tidy=1; } && $(COMPILING) \
			$(CURDIR)/build/tools/golangci-lint run --config $(CURDIR)/.golangci.yml ./... && exit $$tidy) || failed="$$failed $$module"; \
	done; [ -z "$$failed" ] || { echo "the linter reports problems in:$$failed"; exit 1; }

VULNCHECK := build/tools/govulncheck
.PHONY: vulncheck
vulncheck: $(VULNCHECK) ## Look for known vulnerabilities in what the receiver and the distribution call; needs the Go vulnerability database
	@for module in . $(SHIPPED); do echo "looking for known vulnerabilities in module $$module"; \
		(cd $$module && $(CURDIR)/$(VULNCHECK) ./...) || exit 1; done

.PHONY: generate
generate: build/tools/mdatagen build/tools/builder manifests ## Generate documentation.md and internal/metadata from metadata.yaml, the dashboards, deploy/manifests, and distribution/otelcol
	PATH="$(CURDIR)/build/tools:$$PATH" go generate ./...
	@for module in pageexporter incidentsconnector ownersprocessor; do \
		(cd distribution/$$module && PATH="$(CURDIR)/build/tools:$$PATH" go generate ./...) || exit 1; done
	build/tools/builder --config distribution/builder.yaml --skip-compilation
	cd tools && go generate ./...

# $(call render,NAME,NAMESPACE,FLAGS) renders the plain manifest NAME from the chart.
render = { echo "\# Rendered from deploy/chart with deploy/manifests/values/$(1).yaml. To change it, run make generate." && \
	$(HELM) template kube-events deploy/chart --namespace $(2) --skip-tests --values deploy/manifests/values/$(1).yaml $(3); \
	} > deploy/manifests/$(1).yaml
.PHONY: manifests
manifests: $(HELM) build/tools/helm-docs ## Render deploy/manifests from the chart, and write deploy/chart/README.md from its values
	@$(foreach name,default ha single trial,$(call render,$(name),kube-events) &&) $(call render,namespaced,team-a)
	@$(foreach name,integrations prometheusrule,$(call render,$(name),kube-events,--show-only templates/$(name).yaml) &&) true
	@build/tools/helm-docs --chart-search-root deploy/chart --log-level warning

# Generate in a copy, so that the check never changes the working tree.
.PHONY: check-generated
check-generated: build/tools/mdatagen build/tools/builder $(HELM) build/tools/helm-docs ## Fail if generated files are stale
	@rm -rf build/regenerated && mkdir -p build/regenerated/build && ln -s $(CURDIR)/build/tools build/regenerated/build/tools
	@git ls-files --cached --others --exclude-standard | while read -r file; do [ ! -e "$$file" ] || echo "$$file"; done | \
		tar -cT - | tar -xC build/regenerated
	@cd build/regenerated && git init --quiet && git add --all
	@[ ! -d build/regenerated ] || $(MAKE) -C build/regenerated generate > build/regenerated.log 2>&1 || { cat build/regenerated.log; exit 1; }
	@cd build/regenerated && git add --all --intent-to-add && git diff --exit-code || { echo "generated files are stale: run make generate"; exit 1; }
	@echo "generated files are up to date"

.PHONY: clean
clean: ## Remove all results of builds
	rm -rf build

# On this machine runs exactly what is released and what is in the image.
$(OTELCOL): $(call release,$(shell go env GOHOSTOS)/$(shell go env GOHOSTARCH))
	@install $< $@
build/dist/otelcol-kubeevents_$(VERSION)_%: $(SHIPPED)/go.mod $(SHIPPED)/go.sum $(SOURCES)
	@cd $(SHIPPED) && GOOS=$(word 1,$(subst _, ,$*)) GOARCH=$(basename $(word 2,$(subst _, ,$*))) \
		$(BUILD) "1 the Collector for $*" ../../$@ -ldflags "-s -w" .

$(DEMO): controlplane/go.mod controlplane/go.sum $(DEMO_SOURCES)
	@cd controlplane && $(BUILD) "2 the demo" ../$@ ./cmd/demo

.PHONY: controlplane
controlplane: $(CONTROLPLANE) $(NODE_PROGRAMS) ## Build etcd, Kubernetes, kwok and containerd for the demo and the tests: build/controlplane
build/controlplane/etcd build/controlplane/kube-apiserver &: tools/kubernetes/go.mod tools/kubernetes/go.sum
	$(call kubernetes,3 ,kubernetes,kube-apiserver,go.etcd.io/etcd/server/v3)
	@mv $(@D)/server $(@D)/etcd
build/controlplane/kube-controller-manager build/controlplane/kube-scheduler build/controlplane/kwok &: tools/kubernetes/go.mod tools/kubernetes/go.sum
	$(call kubernetes,4 ,kubernetes,kube-controller-manager kube-scheduler,sigs.k8s.io/kwok/cmd/kwok)

# $(call kubernetes,STEP,MODULE,PROGRAMS,PACKAGES) builds programs of Kubernetes and packages, in the versions
# that tools/MODULE pins, in one go: they share most packages. Without -ldflags, their version is v0.0.0.
# Without inlining (-l), packages of Kubernetes itself, a third of all code, take a third less time to compile.
kubernetes = @mkdir -p $(@D) && cd tools/$(2) && $(BUILD) "$(1)$(3) $(call kubernetes_version,$(2))" ../../$(@D)/ \
	-gcflags "k8s.io/kubernetes/...=-dwarf=false -l" -ldflags "-s -w $(addprefix -X k8s.io/component-base/version.git,$(call version_fields,$(call kubernetes_version,$(2))))" \
	$(addprefix k8s.io/kubernetes/cmd/,$(3)) $(4)
kubernetes_version = $(shell awk '$$1 == "k8s.io/kubernetes" { print substr($$2, 2) }' tools/$(1)/go.mod)
version_fields     = Version=v$(1) Major=$(word 1,$(subst ., ,$(1))) Minor=$(word 2,$(subst ., ,$(1)))

# The programs that a module of tools/ pins. The last part of a package's path is its program's name.
build/tools/builder build/tools/mdatagen: tools/collector/go.mod tools/collector/go.sum
build/tools/helm build/tools/helm-docs build/tools/cosign build/tools/actionlint: tools/release/go.mod tools/release/go.sum
build/tools/golangci-lint build/tools/govulncheck: tools/lint/go.mod tools/lint/go.sum
$(addprefix build/tools/,builder mdatagen helm helm-docs cosign actionlint golangci-lint govulncheck):
	@cd $(<D) && $(BUILD) "$(@F)" ../../$@ -ldflags "-s -w" $$(go list tool | grep "/$(@F)$$")
