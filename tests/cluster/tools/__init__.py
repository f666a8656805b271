"""Builds the programs that the cluster tests run, from Go modules, into a cache outside the tree.

`python -m tests.cluster.tools build` makes what is missing, `list` tells what there is. Needs Go and nothing that is
not in Python's standard library. Knows nothing of how the programs are started.
"""
