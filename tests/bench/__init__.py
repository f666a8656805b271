"""Benchmarks: our server beside a bare echo, in one run, as ratios. `python -m tests.bench` runs them."""
