# Makes the manifest of the Collector that the benchmarks compare with out of distribution/builder.yaml:
# the same components, and k8s_events and k8s_attributes in the newest versions of contrib that the module proxy
# has, that can be verified and that the Collector's version can have.
#
# k8s_attributes v1.0.0 is that of the Collector's version. Its tests need a module in a version that the module
# proxy does not have (pkg/semconvtest v0.161.0). v0.160.0 is the one before.
#
# The checksum database does not have k8s_events v0.148.0 and v0.152.0. The module proxy does not
# have v0.147.0, v0.149.0 to v0.151.0, v0.153.0, v0.155.0, v0.158.0 and v0.161.0; other versions were
# not tried. k8sconfig v0.146.0 needs modules that the checksum database does not have, so a later version
# replaces it.
#
# kubernetes-event-exporter (github.com/resmoio/kubernetes-event-exporter) is not measured: the module
# proxy of the machine that runs the benchmarks does not have it.
s|^\(  module: .*/kubeeventsreceiver\)/.*|\1/e2e/bench/comparison|
s|^  name: .*|  name: otelcol|
s|^  output_path: .*|  output_path: build/comparison/ocb|
/^receivers:/a\
  - gomod: github.com/open-telemetry/opentelemetry-collector-contrib/receiver/k8seventsreceiver v0.146.0
/^processors:/a\
  - gomod: github.com/open-telemetry/opentelemetry-collector-contrib/processor/k8sattributesprocessor v0.160.0
s|=> \.\./\.\./resolver|=> ../../../resolver|
s|=> \.\./prometheus|=> ../../../distribution/prometheus|
$a\
  # Only tests need this module, and the module proxy does not have this version.\
  - github.com/open-telemetry/opentelemetry-collector-contrib/internal/k8sleaderelectortest v0.146.0 => github.com/open-telemetry/opentelemetry-collector-contrib/internal/k8sleaderelectortest v0.145.0
