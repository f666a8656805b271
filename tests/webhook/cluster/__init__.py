"""Tests of the cluster room, against a small API server in the same process; the real one is in tests/cluster."""
