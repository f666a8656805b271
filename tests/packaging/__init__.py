"""What is shipped and how the repository is kept: the wheel, the constraints, the absence of local addresses."""
