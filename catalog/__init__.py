"""What is where in a workload: definitions of kinds, read and applied to objects. Knows nothing of admission."""
