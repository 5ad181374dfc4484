module github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver

go 1.26.0
