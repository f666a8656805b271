"""What runs in a cluster, in terms of workloads: pure functions from objects that were read to views for people."""
