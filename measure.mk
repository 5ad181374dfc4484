# SPDX-License-Identifier: Apache-2.0
#
# What takes hours or writes a page of results. The rules below build what only tests and measurements
# need: an older Kubernetes, kine, a real node, backends, the simulation, and other Collectors.

# Only Linux can run the programs of a real node, and the image.
ifeq ($(shell go env GOOS),linux)
NODE_PROGRAMS := $(addprefix build/controlplane/,containerd containerd-shim-runc-v2 ctr kubelet kube-proxy node workload)
NODE_IMAGE    := build/image/otelcol-kubeevents-linux-$(shell go env GOHOSTARCH).tar
endif
# The control planes of the oldest Kubernetes version that is tested, and of the newest one with kine instead
# of etcd. tools/pin-kubernetes pins the oldest.
OLDEST     := $(call programs,build/controlplane-1.32,etcd)
KINE       := $(call programs,build/controlplane-kine,kine)
BACKENDS   := $(addprefix build/backends/,loki prometheus promtool)
COMPARISON := build/comparison/otelcol
SIMULATION := build/simulation.test

.PHONY: faults
faults: $(OTELCOL) $(CONTROLPLANE) $(KINE) $(NODE_PROGRAMS) $(HELM) $(NODE_IMAGE) ## Cause faults, count lost and repeated records, and write test/RESULTS.md
	@cd e2e && for store in controlplane controlplane-kine; do \
		KUBEBUILDER_ASSETS="$(CURDIR)/build/$$store" FAULTS_REPORT="$(CURDIR)/test/RESULTS.md" \
			go test -count=1 -timeout 60m -parallel 6 -run TestFaults -v ./faults || exit 1; done
	@$(call on-node,CLUSTER_REPORT="$(CURDIR)/test/RESULTS.md") -timeout 30m -run TestNode/releases

.PHONY: soak
soak: $(CONTROLPLANE) $(NODE_PROGRAMS) $(HELM) $(NODE_IMAGE) ## Cause faults on a real node for SOAK=1h, check counts, memory and goroutines, and write test/RESULTS.md
	@$(call on-node,SOAK="$(or $(SOAK),1h)" CLUSTER_REPORT="$(CURDIR)/test/RESULTS.md") -timeout 0 -run TestSoak

.PHONY: outages
outages: $(CONTROLPLANE) $(NODE_PROGRAMS) $(HELM) $(NODE_IMAGE) ## Take the API server and then the backend away from the chart's default for OUTAGES="10m 1h", and write test/RESULTS.md
	@$(call on-node,OUTAGES="$(or $(OUTAGES),10m 1h)" CLUSTER_REPORT="$(CURDIR)/test/RESULTS.md") -timeout 0 -run TestOutages

# $(call on-node,VARIABLES) runs tests of the image on a real node.
on-node = cd e2e && KUBEBUILDER_ASSETS="$(CURDIR)/build/controlplane" $(1) go test -count=1 -v ./node

.PHONY: record-producers
record-producers: $(OTELCOL) $(CONTROLPLANE) $(NODE_PROGRAMS) ## Record events of real kubelets, schedulers and controllers into testdata/producers/kubernetes (Linux, root)
	@cd e2e && KUBEBUILDER_ASSETS="$(CURDIR)/build/controlplane" go test -count=1 -timeout 60m -run TestNode -v ./node -args -record

.PHONY: test-versions
test-versions: $(OTELCOL) $(OLDEST) $(KINE) ## Run the tests of the receiver against the oldest Kubernetes version, and with kine
	@for version in $(notdir $(patsubst %/,%,$(sort $(dir $(OLDEST) $(KINE))))); do \
		echo "testing with build/$$version"; ( $(call e2e,build/$$version) ./receiver ) || exit 1; done

.PHONY: simulate
simulate: $(SIMULATION) ## Run the receiver in the simulated environments of SEEDS=10000 seeds, or replay SEED=n and print what happens
	@$(SIMULATE) -test.run TestRandomEnvironments \
		$(if $(SEED),-seed $(SEED),-seeds $(or $(SEEDS),10000) -first $(or $(FIRST),1) -digests $(CURDIR)/build/digests.txt)

.PHONY: generated-mutants
generated-mutants: ## Put faults into the receiver's core that a program makes, and list those that nothing finds
	@go run ./test/simulation/mutants $(MUTANTS_FLAGS)

.PHONY: bench
bench: ## Measure each stage of the receiver, and owner lookups; for benchstat
	@go test -run '^$$' -bench . -count $(or $(COUNT),1) . ./internal/...
	@for module in resolver distribution/ownersprocessor; do (cd $$module && go test -run '^$$' -bench . -count $(or $(COUNT),1) .) || exit 1; done

.PHONY: build-times
build-times: ## Build what make run needs with an empty build cache, and print where the processor time goes
	@rm -rf build/times && mkdir -p build/times/graphs
	@GOCACHE="$(CURDIR)/build/times/cache" BUILD_TIMES="$(CURDIR)/build/times/graphs" $(MAKE) -B $(OTELCOL) $(DEMO) $(CONTROLPLANE)
	@rm -rf build/times/cache && cd tools && go run ./buildtimes ../build/times/graphs/*

.PHONY: comparison
comparison: $(COMPARISON) ## Build the Collector with contrib's k8s_events and k8s_attributes for the benchmarks: build/comparison/otelcol

# SCENARIOS names some scenarios, and BENCH_FLAGS are flags of e2e/bench (BENCH_FLAGS=-h prints them).
# BENCH_FLAGS=-write replaces the sections of test/PERFORMANCE.md.
.PHONY: bench-e2e
bench-e2e: $(OTELCOL) $(COMPARISON) $(CONTROLPLANE) ## Compare the distribution's Collector with one that has k8s_events and k8s_attributes
	@cd e2e && go run ./bench $(BENCH_FLAGS) $(SCENARIOS)

# The distribution with k8s_events and k8s_attributes in addition: the benchmarks compare components, not Collectors.
$(COMPARISON): build/tools/builder distribution/builder.yaml e2e/bench/comparison.sed
	@echo "building the Collector with k8s_events and k8s_attributes (the first time takes a few minutes) ..."
	@mkdir -p $(@D) && sed -f e2e/bench/comparison.sed distribution/builder.yaml > $(@D)/builder.yaml
	@$(COMPILING) $< --config $(@D)/builder.yaml && mv $(@D)/ocb/otelcol $@

.PHONY: backends
backends: $(BACKENDS) ## Build Loki, Prometheus and promtool for the tests: build/backends

# The simulation runs with a changed runtime, made from the toolchain's own files, that lets runs replay
# exactly.
SIMULATE := cd test/simulation && ../../$(SIMULATION) -test.timeout 0
.PHONY: $(SIMULATION)
$(SIMULATION):
	@go run ./test/simulation/runtimeoverlay build/_runtime
	@GOROOT="$(CURDIR)/build/_runtime/goroot" $(COMPILING) build/_runtime/goroot/bin/go test -c -vet=off \
		-overlay build/_runtime/overlay.json -o $@ ./test/simulation

# An older Kubernetes has the newest etcd and kwok.
$(filter-out %/etcd %/kwok,$(OLDEST)) &: tools/kubernetes-1.32/go.mod tools/kubernetes-1.32/go.sum
	$(call kubernetes,,kubernetes-1.32,kube-apiserver kube-controller-manager kube-scheduler)
LINK = @mkdir -p $(@D) && ln -f $< $@
$(filter %/etcd %/kwok,$(OLDEST)): build/controlplane-1.32/%: build/controlplane/%
	$(LINK)
$(filter-out %/kine,$(KINE)): build/controlplane-kine/%: build/controlplane/%
	$(LINK)
# Without cgo, kine has a driver for SQLite that is pure Go.
build/controlplane-kine/kine: tools/cluster/go.mod tools/cluster/go.sum
	@cd tools/cluster && $(BUILD) "kine" ../../$@ -ldflags "-s -w" github.com/k3s-io/kine

build/controlplane/kubelet build/controlplane/kube-proxy &: tools/kubernetes/go.mod tools/kubernetes/go.sum
	$(call kubernetes,,kubernetes,kubelet kube-proxy)

build/controlplane/containerd build/controlplane/containerd-shim-runc-v2 build/controlplane/ctr &: tools/cluster/go.mod tools/cluster/go.sum
	@mkdir -p $(@D) && cd tools/cluster && version=$$(awk '$$1 == "github.com/containerd/containerd/v2" { print $$2 }' go.mod) && \
		$(BUILD) "containerd $$version" ../../$(@D)/ -ldflags "-s -w -X github.com/containerd/containerd/v2/version.Version=$$version" \
		$(addprefix github.com/containerd/containerd/v2/cmd/,containerd containerd-shim-runc-v2 ctr)

build/controlplane/node build/controlplane/workload &: controlplane/go.mod controlplane/go.sum $(DEMO_SOURCES)
	@mkdir -p $(@D) && cd controlplane && $(BUILD) "the programs of a real node" ../$(@D)/ -ldflags "-s -w" ./cmd/node ./cmd/workload

build/backends/loki: tools/backends/go.mod tools/backends/go.sum
	@cd tools/backends && $(BUILD) "Loki" ../../$@ -ldflags "-s -w" github.com/grafana/loki/v3/cmd/loki

# Without service discovery for clouds, which is most of the code of Prometheus.
build/backends/prometheus build/backends/promtool &: tools/backends/go.mod tools/backends/go.sum
	@mkdir -p $(@D) && cd tools/backends && $(BUILD) "Prometheus" ../../$(@D)/ -tags remove_all_sd -ldflags "-s -w" \
		$(addprefix github.com/prometheus/prometheus/cmd/,prometheus promtool)
