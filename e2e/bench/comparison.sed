# Makes the manifest of the Collector that the benchmarks compare with out of distribution/builder.yaml:
# the same components, and k8s_events in the newest version of contrib that the module proxy has and that
# can be verified.
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
