// For its custom resource definitions only: nothing is built from it.
module workload-stamp.io/tests/cluster/tools/cert-manager

go 1.26.0

require github.com/cert-manager/cert-manager v1.21.2
