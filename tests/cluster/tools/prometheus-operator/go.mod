// For its custom resource definitions only: nothing is built from it.
module workload-stamp.io/tests/cluster/tools/prometheus-operator

go 1.26.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
