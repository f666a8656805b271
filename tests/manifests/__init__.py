"""Tests of what is applied to a cluster: everything in `manifests/`, without a cluster.

`tests/cluster/test_installation.py` has the half that needs one.
"""
